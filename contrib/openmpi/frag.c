/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frag.c - descriptors and their registered buffers. send.c and receive.c post them. */
#include "frag.h"
#include "reg_cache.h"

static void frag_construct(udapl_frag_t *f)
{
	f->base.des_segments = &f->segment;
	f->base.des_segment_count = 1;
	f->base.des_flags = 0;
	f->base.order = MCA_BTL_NO_ORDER;
	f->work.conn = NULL;
	f->endpoint = NULL;
	f->list = NULL;
}
OBJ_CLASS_INSTANCE(udapl_frag_t, mca_btl_base_descriptor_t, frag_construct, NULL);
OBJ_CLASS_INSTANCE(udapl_rdma_t, opal_free_list_item_t, NULL, NULL);

struct list_of {
	opal_free_list_t *list;
	size_t capacity;
	enum udapl_kind kind;
};

static int init_frag(opal_free_list_item_t *item, void *context)
{
	const struct list_of *of = context;
	udapl_frag_t *f = (udapl_frag_t *)item;

	f->list = of->list;
	f->capacity = of->capacity;
	f->work.kind = of->kind;
	f->header = item->ptr;
	f->lmr_context = udapl_frag_lmr(item);
	return OPAL_SUCCESS;
}

static int init_list(mca_btl_udapl_module_t *m, opal_free_list_t *list, size_t capacity,
		     enum udapl_kind kind, int first)
{
	struct list_of *of = malloc(sizeof *of);

	if (!of)
		return OPAL_ERR_OUT_OF_RESOURCE;
	*of = (struct list_of){ list, capacity, kind };
	OBJ_CONSTRUCT(list, opal_free_list_t);
	return opal_free_list_init(list, sizeof(udapl_frag_t), opal_cache_line_size,
				   OBJ_CLASS(udapl_frag_t),
				   sizeof(struct udapl_header) + capacity + UDAPL_TAIL_ROOM,
				   opal_cache_line_size, first, -1,
				   mca_btl_udapl_component.free_list_inc, NULL, 0, m->rcache,
				   init_frag, of);
}

static int init_rdma(opal_free_list_item_t *item, void *context)
{
	(void)context;
	((udapl_rdma_t *)item)->work.kind = UDAPL_RDMA;
	return OPAL_SUCCESS;
}

int udapl_frags_init(mca_btl_udapl_module_t *m)
{
	int inc = mca_btl_udapl_component.free_list_inc, rc;

	if ((rc = init_list(m, &m->eager_frags, m->super.btl_eager_limit, UDAPL_SEND, inc)) ||
	    (rc = init_list(m, &m->max_frags, m->super.btl_max_send_size, UDAPL_SEND, 0)) ||
	    (rc = init_list(m, &m->control_frags, sizeof(struct udapl_ring_offer),
			    UDAPL_CONTROL, 0)) ||
	    (rc = init_list(m, &m->recv_frags, m->super.btl_max_send_size, UDAPL_RECEIVE, 0)))
		return rc;
	OBJ_CONSTRUCT(&m->rdmas, opal_free_list_t);
	/* The buffer is for the result of an atomic operation if Open MPI does not request the result. */
	return opal_free_list_init(&m->rdmas, sizeof(udapl_rdma_t), opal_cache_line_size,
				   OBJ_CLASS(udapl_rdma_t), sizeof(uint64_t),
				   opal_cache_line_size, 0, -1, inc, NULL, 0, m->rcache,
				   init_rdma, NULL);
}

static void fini_list(opal_free_list_t *list)
{
	void *of = list->ctx;

	if (!list->super.super.obj_class)
		return;	/* never constructed */
	OBJ_DESTRUCT(list);
	free(of);
}

void udapl_frags_fini(mca_btl_udapl_module_t *m)
{
	fini_list(&m->rdmas);
	fini_list(&m->recv_frags);
	fini_list(&m->control_frags);
	fini_list(&m->max_frags);
	fini_list(&m->eager_frags);
}

/* --- the interface ---------------------------------------------------------------------------- */

mca_btl_base_descriptor_t *udapl_alloc(mca_btl_base_module_t *btl, mca_btl_base_endpoint_t *e,
				       uint8_t order, size_t size, uint32_t flags)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;
	udapl_frag_t *f;

	(void)order;
	if (size > btl->btl_max_send_size)
		return NULL;
	f = (udapl_frag_t *)opal_free_list_get(size <= btl->btl_eager_limit ? &m->eager_frags : &m->max_frags);
	if (!f)
		return NULL;
	f->endpoint = e;
	f->segment.seg_addr.pval = f->header + 1;
	f->segment.seg_len = size;
	f->base.des_segments = &f->segment;
	f->base.des_segment_count = 1;
	f->base.des_flags = flags;
	f->base.order = MCA_BTL_NO_ORDER;
	return &f->base;
}

int udapl_free(mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *des)
{
	(void)btl;
	opal_free_list_return(((udapl_frag_t *)des)->list, &des->super);
	return OPAL_SUCCESS;
}

/* Always copies: longer data is transferred by put or get. */
mca_btl_base_descriptor_t *udapl_prepare_src(mca_btl_base_module_t *btl,
					     mca_btl_base_endpoint_t *e, opal_convertor_t *conv,
					     uint8_t order, size_t reserve, size_t *size,
					     uint32_t flags)
{
	mca_btl_base_descriptor_t *des;
	struct iovec iov;
	uint32_t count = 1;

	if (reserve > btl->btl_max_send_size)
		return NULL;
	if (*size > btl->btl_max_send_size - reserve)
		*size = btl->btl_max_send_size - reserve;
	des = udapl_alloc(btl, e, order, reserve + *size, flags);
	if (!des)
		return NULL;
	iov.iov_base = (char *)des->des_segments->seg_addr.pval + reserve;
	iov.iov_len = *size;
	if (opal_convertor_pack(conv, &iov, &count, size) < 0) {
		udapl_free(btl, des);
		return NULL;
	}
	des->des_segments->seg_len = reserve + *size;
	return des;
}
