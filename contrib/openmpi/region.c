/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* region.c - memory of MPI programs, registered. Open MPI's cache (rcache grdma) keeps registrations
 * that nobody uses; it is told when their memory is given back, marks them as invalid at once, and
 * drops them later. To find one there and return it takes as long as a short message. So who asks for
 * memory again that was lately asked for gets its registration without the cache's knowledge.
 *
 * We hold no reference for that: grdma takes memory that is given back while there is one for a
 * mistake of the program, and does not mark its registration. What is remembered is forgotten when
 * grdma drops it, which it tells us. If it is in use then, its LMR stays until it's returned: grdma
 * drops what it thinks unused to make room, and where the same memory is asked for with more access.
 *
 * With threads all go the long way. */
#include "udapl.h"

/* What dat_lmr_create() made. */
struct udapl_region {
	mca_btl_base_registration_handle_t handle;
	DAT_LMR_HANDLE lmr;
	mca_rcache_base_registration_t *cached;	/* NULL: the cache has dropped it */
	bool exposes;				/* a message's, to a peer */
	int uses;				/* that the cache doesn't know of */
};

struct registration {
	mca_rcache_base_registration_t base;
	struct udapl_region *region;
};

static struct udapl_region *region_of(mca_rcache_base_registration_t *reg)
{
	return ((struct registration *)reg)->region;
}

/* --- for the cache ------------------------------------------------------------------------------ */

static DAT_MEM_PRIV_FLAGS privileges(const mca_btl_udapl_module_t *m, int access)
{
	unsigned p = DAT_MEM_PRIV_LOCAL_READ_FLAG;

	if (access & MCA_RCACHE_ACCESS_LOCAL_WRITE) {
		p |= DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		/* iWARP: the answer to a read is a write of the peer */
		if (m->provider.rdma_write_for_rdma_read_req)
			p |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	}
	if (access & MCA_RCACHE_ACCESS_REMOTE_READ)
		p |= DAT_MEM_PRIV_REMOTE_READ_FLAG;
	if (access & MCA_RCACHE_ACCESS_REMOTE_WRITE)
		p |= DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	if (access & MCA_RCACHE_ACCESS_REMOTE_ATOMIC && m->atomics)
		p |= DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC;
	return (DAT_MEM_PRIV_FLAGS)p;
}

/* A window of one-sided programs allows everything. */
static bool is_for_a_message(int access)
{
	return (access & (MCA_RCACHE_ACCESS_REMOTE_READ | MCA_RCACHE_ACCESS_REMOTE_WRITE)) &&
	       !(access & MCA_RCACHE_ACCESS_REMOTE_ATOMIC);
}

static int register_range(void *context, void *base, size_t size,
			  mca_rcache_base_registration_t *reg)
{
	mca_btl_udapl_module_t *m = context;
	struct udapl_region *r = calloc(1, sizeof *r);
	DAT_REGION_DESCRIPTION region = { .for_va = base };
	DAT_VADDR at;
	DAT_VLEN length;

	if (!r)
		return OPAL_ERR_OUT_OF_RESOURCE;
	if (dat_lmr_create(m->ia, DAT_MEM_TYPE_VIRTUAL, region, size, m->pz,
			   privileges(m, reg->access_flags), DAT_VA_TYPE_VA, &r->lmr,
			   &r->handle.lmr_context, &r->handle.rmr_context, &length,
			   &at) != DAT_SUCCESS) {
		free(r);
		return OPAL_ERR_OUT_OF_RESOURCE;
	}
	r->cached = reg;
	r->exposes = is_for_a_message(reg->access_flags);
	((struct registration *)reg)->region = r;
	return OPAL_SUCCESS;
}

static int free_region(struct udapl_region *r)
{
	if (dat_lmr_free(r->lmr) != DAT_SUCCESS)
		return OPAL_ERROR;
	free(r);
	return OPAL_SUCCESS;
}

static void forget(mca_btl_udapl_module_t *m, const struct udapl_region *r)
{
	for (int i = 0; i < UDAPL_RECENT; i++)
		if (m->recent[i] == r)
			m->recent[i] = NULL;
}

static int deregister_range(void *context, mca_rcache_base_registration_t *reg)
{
	struct udapl_region *r = region_of(reg);

	forget(context, r);
	if (!r->uses)
		return free_region(r);
	r->cached = NULL;
	return OPAL_SUCCESS;
}

int udapl_rcache_init(mca_btl_udapl_module_t *m)
{
	mca_rcache_base_resources_t how = {
		.cache_name = m->name,
		.reg_data = m,
		.sizeof_reg = sizeof(struct registration),
		.register_mem = register_range,
		.deregister_mem = deregister_range,
	};

	m->rcache = mca_rcache_base_module_create("grdma", m, &how);
	return m->rcache ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

/* --- what was asked for lately -------------------------------------------------------------------- */

/* Memory that begins in this page is remembered here. */
static struct udapl_region **place(mca_btl_udapl_module_t *m, const void *base)
{
	uint64_t page = (uintptr_t)base >> 12;

	return &m->recent[page * 0x9e3779b97f4a7c15 >> 32 & (UDAPL_RECENT - 1)];
}

static bool serves(const struct udapl_region *r, const void *base, size_t size, int access)
{
	const unsigned char *first = base;
	const mca_rcache_base_registration_t *reg = r->cached;

	return !(reg->flags & MCA_RCACHE_FLAGS_INVALID) && !(access & ~reg->access_flags) &&
	       first >= reg->base && first + size - 1 <= reg->bound;
}

static struct udapl_region *ask_cache(mca_btl_udapl_module_t *m, void *base, size_t size, int access)
{
	mca_rcache_base_registration_t *reg = NULL;

	if (m->rcache->rcache_register(m->rcache, base, size, 0, access, &reg) != OPAL_SUCCESS)
		return NULL;
	if (!opal_using_threads())
		*place(m, base) = region_of(reg);
	return region_of(reg);
}

/* --- the interface --------------------------------------------------------------------------- */

mca_btl_base_registration_handle_t *udapl_register_mem(mca_btl_base_module_t *btl,
						       mca_btl_base_endpoint_t *e, void *base,
						       size_t size, uint32_t flags)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	int access = flags & MCA_BTL_REG_FLAG_ACCESS_ANY;
	struct udapl_region *r = opal_using_threads() ? NULL : *place(m, base);

	(void)e;
	if (r && serves(r, base, size, access))
		r->uses++;
	else
		r = ask_cache(m, base, size, access);
	if (!r)
		return NULL;
	if (r->exposes) {
		OPAL_THREAD_ADD_FETCH32(&m->exposed, 1);
		udapl_look_soon(m);
	}
	return &r->handle;
}

/* It's all the same by which way it is returned: in the end the cache has all its own back. */
int udapl_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *h)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	struct udapl_region *r = CONTAINER_OF(h, struct udapl_region, handle);

	if (r->exposes)
		OPAL_THREAD_ADD_FETCH32(&m->exposed, -1);
	if (!r->uses)
		return m->rcache->rcache_deregister(m->rcache, r->cached);
	r->uses--;
	return r->uses || r->cached ? OPAL_SUCCESS : free_region(r);
}

/* The local context of the memory of an item of a free list. */
uint32_t udapl_frag_lmr(const opal_free_list_item_t *item)
{
	return region_of(item->registration)->handle.lmr_context;
}
