/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* btl.c - see btl.h. */
#include "test/unit/openmpi/btl.h"
#include "test/unit/openmpi/eps.h"
#include "contrib/openmpi/conn.h"
#include "contrib/openmpi/frag.h"
#include "contrib/openmpi/reg_cache.h"
#include "test/unit/unit.h"

enum { EVENTS = 64 };

mca_btl_udapl_module_t module;
mca_btl_base_endpoint_t *peer;
udapl_conn_t *conn;
struct post posts[512];
int num_posts;
DAT_RETURN post_results[POSTED_SRQ_RECV + 1];
bool posts_complete, writes_arrive;
void *mapping;
DAT_RMR_TRIPLET mapped_range;
int cq_dequeues, conn_dequeues, disconnects;
int packs, pack_result;
int lmrs, cache_refusals, cache_registers, cache_deregisters;
DAT_RETURN lmr_create_result, lmr_free_result;
void (*during_lmr_create)(void);
DAT_MEM_TYPE lmr_refused_type, lmr_type;
DAT_MEM_PRIV_FLAGS lmr_privileges;
DAT_REGION_DESCRIPTION lmr_region;
DAT_VLEN lmr_length;
char lmr_name[DAT_LMR_COOKIE_SIZE];
void (*during_lmr_free)(void);
mca_rcache_base_registration_t *cache_last;
int caches;
struct delivery deliveries[512];
int num_deliveries;
void (*during_delivery)(void);

static struct { DAT_EVD_HANDLE evd; DAT_EVENT event; } events[EVENTS];
static int num_events;
static char dto_evd, conn_evd, async_evd, srq;	/* their addresses are handles */

/* --- posts ------------------------------------------------------------------------------------- */

const struct udapl_header *sent_header(const struct post *p)
{
	assert_int_equal(p->kind, POSTED_SEND);
	return (const struct udapl_header *)(uintptr_t)p->local.virtual_address;
}

static DAT_RETURN record(struct post p)
{
	if (post_results[p.kind] != DAT_SUCCESS)
		return post_results[p.kind];
	assert_true(num_posts < (int)(sizeof posts / sizeof *posts));
	posts[num_posts++] = p;
	if (p.kind == POSTED_WRITE && writes_arrive)
		memcpy((void *)(uintptr_t)p.remote.virtual_address, (void *)(uintptr_t)p.local.virtual_address,
		       p.local.segment_length);
	if (posts_complete && p.work->kind == UDAPL_RDMA)
		completion_comes(p.work, DAT_DTO_SUCCESS, 0);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE to, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags)
{
	ep_of(to);
	assert_int_equal(n, 1);
	return record((struct post){ .kind = POSTED_SEND, .ep = to, .local = *local, .work = cookie.as_ptr,
				     .flags = flags });
}

static DAT_RETURN record_rdma(enum post_kind kind, DAT_EP_HANDLE to, DAT_COUNT n, const DAT_LMR_TRIPLET *local,
			      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	ep_of(to);
	assert_int_equal(n, 1);
	return record((struct post){ .kind = kind, .ep = to, .local = *local, .remote = *remote,
				     .work = cookie.as_ptr, .flags = flags });
}

DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE to, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				  const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return record_rdma(POSTED_WRITE, to, n, local, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE to, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
				 const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags)
{
	return record_rdma(POSTED_READ, to, n, local, cookie, remote, flags);
}

DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE to, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags)
{
	ep_of(to);
	assert_int_equal(n, 1);
	return record((struct post){ .kind = POSTED_RECV, .ep = to, .local = *local, .work = cookie.as_ptr,
				     .flags = flags });
}

DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE to, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie)
{
	assert_ptr_equal(to, module.srq);
	assert_int_equal(n, 1);
	return record((struct post){ .kind = POSTED_SRQ_RECV, .local = *local, .work = cookie.as_ptr });
}

static DAT_RETURN record_atomic(enum post_kind kind, DAT_EP_HANDLE to, va_list args)
{
	struct post p = { .kind = kind, .ep = to };

	if (kind == POSTED_SWAP)
		p.compare = va_arg(args, DAT_UINT64);
	p.operand = va_arg(args, DAT_UINT64);
	p.local = *va_arg(args, DAT_LMR_TRIPLET *);
	p.work = va_arg(args, DAT_DTO_COOKIE).as_ptr;
	p.remote = *va_arg(args, DAT_RMR_TRIPLET *);
	p.flags = va_arg(args, DAT_COMPLETION_FLAGS);
	return record(p);
}

DAT_RETURN dat_extension_op(DAT_HANDLE to, DAT_EXTENDED_OP op, ...)
{
	DAT_RETURN rc = DAT_SUCCESS;
	va_list args;

	ep_of(to);
	va_start(args, op);
	if ((int)op == DAT_MAP_RMR_OP) {
		mapped_range = *va_arg(args, const DAT_RMR_TRIPLET *);
		if (mapping)
			*va_arg(args, DAT_PVOID *) = mapping;
		else
			rc = UDAPL_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	} else {
		assert_true((int)op == DAT_IB_FETCH_AND_ADD_OP || (int)op == DAT_IB_CMP_AND_SWAP_OP);
		rc = record_atomic((int)op == DAT_IB_FETCH_AND_ADD_OP ? POSTED_ADD : POSTED_SWAP, to, args);
	}
	va_end(args);
	return rc;
}

DAT_EVENT *new_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	assert_true(num_events < EVENTS);
	events[num_events].evd = evd;
	events[num_events].event = (DAT_EVENT){ .event_number = number, .evd_handle = evd };
	return &events[num_events++].event;
}

void event_comes(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number) { new_event(evd, number); }

void completion_comes(struct udapl_work *work, DAT_DTO_COMPLETION_STATUS status, size_t length)
{
	DAT_EVENT *event = new_event(module.dto_evd, DAT_DTO_COMPLETION_EVENT);

	event->event_data.dto_completion_event_data = (DAT_DTO_COMPLETION_EVENT_DATA){
		.ep_handle = conn->ep, .user_cookie.as_ptr = work, .status = status, .transfered_length = length,
	};
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	cq_dequeues += evd == module.dto_evd;
	conn_dequeues += evd == module.conn_evd;
	for (int i = 0; i < num_events; i++) {
		if (events[i].evd != evd)
			continue;
		*event = events[i].event;
		num_events--;
		memmove(&events[i], &events[i + 1], (num_events - i) * sizeof *events);
		return DAT_SUCCESS;
	}
	return UDAPL_ERROR(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}

/* --- memory ------------------------------------------------------------------------------------ */

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
			  DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va, DAT_LMR_HANDLE *lmr,
			  DAT_LMR_CONTEXT *local, DAT_RMR_CONTEXT *remote, DAT_VLEN *size, DAT_VADDR *address)
{
	static uint32_t last;

	if (during_lmr_create)
		during_lmr_create();
	if (lmr_create_result != DAT_SUCCESS)
		return lmr_create_result;
	if (lmr_refused_type && type == lmr_refused_type)
		return UDAPL_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	lmr_type = type;
	lmr_privileges = privileges;
	lmr_region = region;
	lmr_length = length;
	if (type == DAT_MEM_TYPE_SHARED_VIRTUAL)
		memcpy(lmr_name, *region.for_shared_memory.shared_memory_id, sizeof lmr_name);
	lmrs++;
	last++;
	*lmr = (DAT_LMR_HANDLE)(uintptr_t)last;
	*local = last;
	*remote = last + (1u << 30);
	*size = length;
	return DAT_SUCCESS;
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	assert_non_null(lmr);
	if (during_lmr_free)
		during_lmr_free();
	if (lmr_free_result == DAT_SUCCESS)
		lmrs--;
	return lmr_free_result;
}

/* Of the module that made its cache last; it destroys the cache before the other module is used again. */
static mca_rcache_base_resources_t cache_of, cache_of_other;

static int drop(mca_rcache_base_registration_t *reg)
{
	int rc = cache_of.deregister_mem(cache_of.reg_data, reg);

	free(reg);
	return rc;
}

int cache_drops_last(void)
{
	mca_rcache_base_registration_t *reg = cache_last;

	cache_last = NULL;
	return reg && !reg->ref_count ? drop(reg) : OPAL_SUCCESS;
}

static int cache_register(mca_rcache_base_module_t *cache, void *at, size_t size, uint32_t flags, int32_t access,
			  mca_rcache_base_registration_t **made)
{
	mca_rcache_base_registration_t *reg;
	int rc;

	cache_registers++;
	if (cache_refusals > 0) {
		cache_refusals--;
		return OPAL_ERR_OUT_OF_RESOURCE;
	}
	reg = calloc(1, cache_of.sizeof_reg);
	assert_non_null(reg);
	reg->rcache = cache;
	reg->base = at;
	reg->bound = reg->base + size - 1;
	reg->flags = flags;
	reg->access_flags = access;
	reg->ref_count = 1;
	rc = cache_of.register_mem(cache_of.reg_data, at, size, reg);
	if (rc != OPAL_SUCCESS) {
		free(reg);
		return rc;
	}
	cache_drops_last();
	*made = cache_last = reg;
	return OPAL_SUCCESS;
}

/* A registration without references remains until the next one is made. */
static int cache_deregister(mca_rcache_base_module_t *cache, mca_rcache_base_registration_t *reg)
{
	assert_ptr_equal(cache, module.rcache);
	cache_deregisters++;
	assert_true(reg->ref_count > 0);
	reg->ref_count--;
	return reg->ref_count || reg == cache_last ? OPAL_SUCCESS : drop(reg);
}

mca_rcache_base_module_t *mca_rcache_base_module_create(const char *name, void *data,
							mca_rcache_base_resources_t *resources)
{
	static mca_rcache_base_module_t cache = { .rcache_register = cache_register,
						  .rcache_deregister = cache_deregister };

	assert_string_equal(name, "grdma");
	cache_drops_last();
	cache_of_other = cache_of;
	cache_of = *resources;
	caches++;
	return &cache;
}

int mca_rcache_base_module_destroy(mca_rcache_base_module_t *cache)
{
	assert_ptr_equal(cache, module.rcache);
	cache_drops_last();
	cache_of = cache_of_other;
	caches--;
	return OPAL_SUCCESS;
}

opal_convertor_t convertor_of(const void *data, bool packed)
{
	static const opal_datatype_t type;	/* begins at its address */
	opal_convertor_t conv;

	memset(&conv, 0, sizeof conv);
	conv.flags = packed ? 0 : CONVERTOR_HOMOGENEOUS | OPAL_DATATYPE_FLAG_NO_GAPS;
	conv.pBaseBuf = (unsigned char *)(uintptr_t)data;
	conv.pDesc = &type;
	return conv;
}

int32_t opal_convertor_pack(opal_convertor_t *conv, struct iovec *iov, uint32_t *n, size_t *size)
{
	assert_int_equal(*n, 1);
	assert_int_equal(iov->iov_len, *size);
	packs++;
	if (pack_result >= 0)
		memcpy(iov->iov_base, conv->pBaseBuf, iov->iov_len);
	return pack_result;
}

static void record_delivery(const mca_btl_base_segment_t *segment, size_t n)
{
	struct delivery *d = &deliveries[num_deliveries++];

	assert_int_equal(n, 1);
	assert_true(num_deliveries <= (int)(sizeof deliveries / sizeof *deliveries));
	d->length = segment->seg_len;
	d->payload = segment->seg_addr.pval;
	memcpy(d->bytes, d->payload, d->length < sizeof d->bytes ? d->length : sizeof d->bytes);
	if (during_delivery)
		during_delivery();
}

#if BTL_VERSION >= 330
static void on_message(mca_btl_base_module_t *btl, const mca_btl_base_receive_descriptor_t *message)
{
	assert_ptr_equal(btl, &module.super);
	assert_ptr_equal(message->endpoint, peer);
	assert_int_equal(message->tag, TAG);
	record_delivery(message->des_segments, message->des_segment_count);
}
#else
static void on_message(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t *message,
		       void *data)
{
	assert_ptr_equal(btl, &module.super);
	assert_int_equal(tag, TAG);
	record_delivery(message->des_segments, message->des_segment_count);
}
#endif

/* --- a module and its peer --------------------------------------------------------------------- */

static void forget(void)
{
	memset(posts, 0, sizeof posts);
	memset(deliveries, 0, sizeof deliveries);
	memset(&mapped_range, 0, sizeof mapped_range);
	for (int i = 0; i <= POSTED_SRQ_RECV; i++)
		post_results[i] = DAT_SUCCESS;
	num_posts = num_events = num_deliveries = cq_dequeues = conn_dequeues = disconnects = packs = 0;
	pack_result = 1;
	lmrs = caches = cache_refusals = cache_registers = cache_deregisters = 0;
	lmr_create_result = lmr_free_result = DAT_SUCCESS;
	during_lmr_create = NULL;
	lmr_refused_type = (DAT_MEM_TYPE)0;
	posts_complete = writes_arrive = false;
	mapping = NULL;
	cache_last = NULL;
	during_delivery = during_lmr_free = NULL;
}

static void set_parameters(void)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	static mca_btl_udapl_module_t *modules[] = { &module };

	c->modules = modules;
	c->num_modules = 1;
	c->use_srq = c->eager_rdma = true;
	c->any_network = false;
	c->credits = 8;
	c->requests = 16;
	c->eager_messages = 8;
	c->eager_threshold = 4;
	c->eager_peers = 2;
	c->connect_timeout = 1;
	c->connect_retries = 1;
	c->free_list_inc = 4;
}

static void make_module(void)
{
	memset(&module, 0, sizeof module);
	memcpy(module.name, "ia0", 4);
	module.super.btl_component = &mca_btl_udapl_component.super;
	module.super.btl_eager_limit = 1000;
	module.super.btl_max_send_size = 4000;
	module.super.btl_put_limit = module.super.btl_get_limit = 1 << 20;
	module.message_size = sizeof(struct udapl_header) + module.super.btl_max_send_size;
	module.dto_evd = (DAT_EVD_HANDLE)&dto_evd;
	module.conn_evd = (DAT_EVD_HANDLE)&conn_evd;
	module.async_evd = (DAT_EVD_HANDLE)&async_evd;
	module.srq = (DAT_SRQ_HANDLE)&srq;
	module.atomics = true;
	module.unsignaled_work.kind = UDAPL_STAGED;
	module.rings = calloc(mca_btl_udapl_component.eager_peers, sizeof *module.rings);
	udapl_mutex_init(&module.lock, RANK_BTL_MODULE);
	udapl_mutex_init(&module.recv_lock, RANK_BTL_RECV);
	OBJ_CONSTRUCT(&module.endpoints, opal_list_t);
	OBJ_CONSTRUCT(&module.conns, opal_list_t);
	OBJ_CONSTRUCT(&module.by_name, opal_hash_table_t);
	opal_hash_table_init(&module.by_name, 64);
	assert_int_equal(udapl_rcache_init(&module), OPAL_SUCCESS);
	assert_int_equal(udapl_frags_init(&module), OPAL_SUCCESS);
}

int btl_begin(void **state)
{
	forget();
	eps_begin();
	set_parameters();
	make_module();
	peer = OBJ_NEW(mca_btl_base_endpoint_t);
	conn = OBJ_NEW(udapl_conn_t);
	peer->module = conn->module = &module;
	peer->conn = conn;
	peer->name.vpid = 7;
	peer->state = UDAPL_CONNECTED;
	conn->endpoint = peer;
	conn->ep = (DAT_EP_HANDLE)&eps[0];
	eps[0].context.as_ptr = conn;
	conn->state = UDAPL_CONN_ESTABLISHED;
	conn->received_any = true;
	conn->sq_free = mca_btl_udapl_component.requests;
	conn->control_free = UDAPL_CONTROL_REQUESTS;
	opal_list_append(&module.endpoints, &peer->super);
	opal_list_append(&module.conns, &conn->super);
	mca_btl_base_active_message_trigger[TAG].cbfunc = on_message;
	return 0;
}

/* Those that a case made. */
static void free_others(void)
{
	mca_btl_base_endpoint_t *e, *next;
	udapl_conn_t *c, *next_conn;

	OPAL_LIST_FOREACH_SAFE(c, next_conn, &module.conns, udapl_conn_t)
		if (c != conn)
			udapl_conn_release(c);
	OPAL_LIST_FOREACH_SAFE(e, next, &module.endpoints, mca_btl_base_endpoint_t) {
		if (e == peer)
			continue;
		opal_list_remove_item(&module.endpoints, &e->super);
		OBJ_RELEASE(e);
	}
}

int btl_end(void **state)
{
	free_others();
	opal_list_remove_item(&module.conns, &conn->super);
	opal_list_remove_item(&module.endpoints, &peer->super);
	OBJ_RELEASE(conn);
	OBJ_RELEASE(peer);
	udapl_frags_fini(&module);
	cache_drops_last();
	OBJ_DESTRUCT(&module.by_name);
	OBJ_DESTRUCT(&module.conns);
	OBJ_DESTRUCT(&module.endpoints);
	udapl_mutex_fini(&module.recv_lock);
	udapl_mutex_fini(&module.lock);
	free(module.rings);
	opal_uses_threads = false;
	return 0;
}
