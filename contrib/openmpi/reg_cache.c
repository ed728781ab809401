/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reg_cache.c - registration cache for the memory of MPI programs. The rcache of Open MPI (grdma)
 * keeps unused registrations. When their memory is unmapped it marks them as invalid at once, and
 * drops them later. A lookup and release in grdma costs as much as a short message. So memory that
 * was requested recently gets its registration without a call to grdma.
 *
 * These entries hold no reference: grdma considers unmapping of referenced memory an error of the
 * program and does not mark the registration. When grdma drops a registration, its entry is
 * removed. If the registration is in use at that time, its LMR is kept until it is released. grdma
 * drops registrations that it considers unused to make room, or when the same memory is requested
 * with more access.
 *
 * With threads every request goes to grdma. */
#include "reg_cache.h"
#include "help.h"
#include "posting.h"
#include <stdio.h>
#include <unistd.h>

/* The result of dat_lmr_create(). */
struct udapl_reg {
	mca_btl_base_registration_handle_t handle;
	DAT_LMR_HANDLE lmr;
	mca_rcache_base_registration_t *cached;	/* NULL: grdma has dropped it */
	bool exposes;				/* is_for_message() */
	int uses;				/* uses that grdma does not count */
};

struct cache_entry {
	mca_rcache_base_registration_t base;
	struct udapl_reg *region;
};

static struct udapl_reg *reg_of(mca_rcache_base_registration_t *reg)
{
	return ((struct cache_entry *)reg)->region;
}

/* --- callbacks of grdma ------------------------------------------------------------------------ */

static DAT_MEM_PRIV_FLAGS privileges(const mca_btl_udapl_module_t *m, int access)
{
	unsigned p = DAT_MEM_PRIV_LOCAL_READ_FLAG;

	if (access & MCA_RCACHE_ACCESS_LOCAL_WRITE) {
		p |= DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		/* iWARP: the response to an RDMA read is a write of the peer */
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

/* Whether the memory holds one message that a peer reads or writes. Windows of one-sided communication
 * also have atomic access. */
static bool is_for_message(int access)
{
	return (access & (MCA_RCACHE_ACCESS_REMOTE_READ | MCA_RCACHE_ACCESS_REMOTE_WRITE)) &&
	       !(access & MCA_RCACHE_ACCESS_REMOTE_ATOMIC);
}

static int register_range(void *context, void *base, size_t size,
			  mca_rcache_base_registration_t *reg)
{
	mca_btl_udapl_module_t *m = context;
	struct udapl_reg *r = calloc(1, sizeof *r);
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
	r->exposes = is_for_message(reg->access_flags);
	((struct cache_entry *)reg)->region = r;
	return OPAL_SUCCESS;
}

static int free_reg(struct udapl_reg *r)
{
	if (dat_lmr_free(r->lmr) != DAT_SUCCESS)
		return OPAL_ERROR;
	free(r);
	return OPAL_SUCCESS;
}

static void forget(mca_btl_udapl_module_t *m, const struct udapl_reg *r)
{
	for (int i = 0; i < UDAPL_RECENT_REGS; i++)
		if (m->recent[i] == r)
			m->recent[i] = NULL;
}

static int deregister_range(void *context, mca_rcache_base_registration_t *reg)
{
	struct udapl_reg *r = reg_of(reg);

	forget(context, r);
	if (!r->uses)
		return free_reg(r);
	r->cached = NULL;
	return OPAL_SUCCESS;
}

int udapl_rcache_init(mca_btl_udapl_module_t *m)
{
	mca_rcache_base_resources_t how = {
		.cache_name = m->name,
		.reg_data = m,
		.sizeof_reg = sizeof(struct cache_entry),
		.register_mem = register_range,
		.deregister_mem = deregister_range,
	};

	m->rcache = mca_rcache_base_module_create("grdma", m, &how);
	return m->rcache ? OPAL_SUCCESS : OPAL_ERR_OUT_OF_RESOURCE;
}

/* --- recent registrations ---------------------------------------------------------------------- */

/* Entry for memory that begins in this page. */
static struct udapl_reg **recent_entry(mca_btl_udapl_module_t *m, const void *base)
{
	uint64_t page = (uintptr_t)base >> 12;

	return &m->recent[page * 0x9e3779b97f4a7c15 >> 32 & (UDAPL_RECENT_REGS - 1)];
}

static bool covers(const struct udapl_reg *r, const void *base, size_t size, int access)
{
	const unsigned char *first = base;
	const mca_rcache_base_registration_t *reg = r->cached;

	return !(reg->flags & MCA_RCACHE_FLAGS_INVALID) && !(access & ~reg->access_flags) &&
	       first >= reg->base && first + size - 1 <= reg->bound;
}

/* Reports only the first failure in a process: usually more follow. */
static void report_shortage(const mca_btl_udapl_module_t *m, size_t size)
{
	static bool reported;
	char bytes[24];

	if (reported)
		return;
	reported = true;
	snprintf(bytes, sizeof bytes, "%zu", size);
	udapl_show_help("no registration", opal_process_info.nodename, m->name, bytes);
}

/* The PML repeats a failed registration only after another of its own requests completes, which may never
 * happen. So this function repeats it a few times, in case the device lacks a resource only briefly. */
static struct udapl_reg *register_cached(mca_btl_udapl_module_t *m, void *base, size_t size, int access)
{
	mca_rcache_base_registration_t *reg = NULL;

	for (int tries = 1; m->rcache->rcache_register(m->rcache, base, size, 0, access, &reg) != OPAL_SUCCESS;
	     tries++) {
		if (tries == UDAPL_REG_TRIES) {
			report_shortage(m, size);
			return NULL;
		}
		usleep(UDAPL_REG_PAUSE_US);
	}
	if (!opal_using_threads())
		*recent_entry(m, base) = reg_of(reg);
	return reg_of(reg);
}

/* --- the interface --------------------------------------------------------------------------- */

mca_btl_base_registration_handle_t *udapl_register_mem(mca_btl_base_module_t *btl,
						       mca_btl_base_endpoint_t *e, void *base,
						       size_t size, uint32_t flags)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	int access = flags & MCA_BTL_REG_FLAG_ACCESS_ANY;
	struct udapl_reg *r = opal_using_threads() ? NULL : *recent_entry(m, base);

	(void)e;
	if (r && covers(r, base, size, access))
		r->uses++;
	else
		r = register_cached(m, base, size, access);
	if (!r)
		return NULL;
	if (r->exposes) {
		udapl_add(&m->exposed, 1);
		udapl_request_poll(m);
	}
	return &r->handle;
}

/* A use is counted by grdma or in r->uses. A release may be taken from the other counter: once all uses
 * are released, both are zero. */
int udapl_deregister_mem(mca_btl_base_module_t *btl, mca_btl_base_registration_handle_t *h)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	struct udapl_reg *r = CONTAINER_OF(h, struct udapl_reg, handle);

	if (r->exposes)
		udapl_add(&m->exposed, -1);
	if (!r->uses)
		return m->rcache->rcache_deregister(m->rcache, r->cached);
	r->uses--;
	return r->uses || r->cached ? OPAL_SUCCESS : free_reg(r);
}

/* Local context of the memory of a free-list item. */
uint32_t udapl_frag_lmr(const opal_free_list_item_t *item)
{
	return reg_of(item->registration)->handle.lmr_context;
}
