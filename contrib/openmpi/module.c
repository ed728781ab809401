/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* module.c - an adapter: opening, adding and removing processes, closing. connect.c makes its
 * connections. */
#include "module.h"
#include "conn.h"
#include "address.h"
#include "clock.h"
#include "connect.h"
#include "endpoint.h"
#include "frag.h"
#include "help.h"
#include "progress.h"
#include "rdma.h"
#include "receive.h"
#include "reg_cache.h"
#include "send.h"
#include "staging.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/util/argv.h"
#include "opal/util/output.h"

static int register_error(mca_btl_base_module_t *btl, mca_btl_base_module_error_cb_fn_t cbfunc)
{
	((mca_btl_udapl_module_t *)btl)->error_cb = cbfunc;
	return OPAL_SUCCESS;
}

/* Initial values of each module. mca_btl_base_param_register() lets users change the numbers. */
mca_btl_udapl_module_t mca_btl_udapl_template = {
	.super = {
		.btl_component = &mca_btl_udapl_component.super,
		.btl_eager_limit = UDAPL_EAGER_LIMIT,
		.btl_rndv_eager_limit = UDAPL_RNDV_EAGER_LIMIT,
		.btl_max_send_size = UDAPL_MAX_SEND_SIZE,
		.btl_rdma_pipeline_send_length = 256 * 1024,
		.btl_rdma_pipeline_frag_size = 1024 * 1024,
		.btl_min_rdma_pipeline_size = 256 * 1024,
		.btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT,
		.btl_latency = 4,
		.btl_bandwidth = 10000,
		.btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_RDMA | MCA_BTL_FLAGS_ATOMIC_OPS |
			     MCA_BTL_FLAGS_ATOMIC_FOPS | MCA_BTL_FLAGS_RDMA_FLUSH,
		.btl_atomic_flags = MCA_BTL_ATOMIC_SUPPORTS_ADD | MCA_BTL_ATOMIC_SUPPORTS_CSWAP,
		.btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t),
		.btl_get_limit = SIZE_MAX,
		.btl_put_limit = SIZE_MAX,
		.btl_add_procs = udapl_add_procs,
		.btl_del_procs = udapl_del_procs,
		.btl_finalize = udapl_finalize,
		.btl_alloc = udapl_alloc,
		.btl_free = udapl_free,
		.btl_prepare_src = udapl_prepare_src,
		.btl_send = udapl_send,
		.btl_sendi = udapl_sendi,
		.btl_put = udapl_put,
		.btl_get = udapl_get,
		.btl_atomic_op = udapl_atomic_op,
		.btl_atomic_fop = udapl_atomic_fop,
		.btl_atomic_cswap = udapl_atomic_cswap,
		.btl_register_mem = udapl_register_mem,
		.btl_deregister_mem = udapl_deregister_mem,
		.btl_register_error = register_error,
		.btl_flush = udapl_flush,
	},
};

/* --- opening -------------------------------------------------------------------------------- */

static bool has_attr(const DAT_PROVIDER_ATTR *a, const char *name)
{
	for (int i = 0; i < a->num_provider_specific_attr; i++)
		if (!strcmp(a->provider_specific_attr[i].name, name))
			return true;
	return false;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static void apply_limits(mca_btl_udapl_module_t *m)
{
	mca_btl_base_module_t *b = &m->super;

	b->btl_eager_limit = min_size(b->btl_eager_limit, b->btl_max_send_size);
	b->btl_rndv_eager_limit = min_size(b->btl_rndv_eager_limit, b->btl_max_send_size);
	m->message_size = sizeof(struct udapl_header) + b->btl_max_send_size;
	b->btl_put_limit = min_size(b->btl_put_limit, m->attr.max_rdma_size);
	b->btl_get_limit = min_size(b->btl_get_limit, m->attr.max_rdma_size);
	m->atomics = has_attr(&m->provider, DAT_IB_ATTR_FETCH_AND_ADD) &&
		     has_attr(&m->provider, DAT_IB_ATTR_CMP_AND_SWAP);
	if (!m->atomics) {
		b->btl_flags &= ~(MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS);
		b->btl_atomic_flags = 0;
		b->btl_atomic_op = NULL;
		b->btl_atomic_fop = NULL;
		b->btl_atomic_cswap = NULL;
	}
}

/* A failure is not an error: every connection then has receives of its own. */
static void make_srq(mca_btl_udapl_module_t *m)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = mca_btl_udapl_component.srq_depth,
			      .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };

	m->srq = DAT_HANDLE_NULL;
	if (!mca_btl_udapl_component.use_srq || !m->provider.srq_supported || !m->attr.max_srqs)
		return;
	if (attr.max_recv_dtos > m->attr.max_recv_per_srq)
		attr.max_recv_dtos = m->attr.max_recv_per_srq;
	if (dat_srq_create(m->ia, m->pz, &attr, &m->srq) != DAT_SUCCESS)
		m->srq = DAT_HANDLE_NULL;
}

static DAT_RETURN open_objects(mca_btl_udapl_module_t *m)
{
	DAT_CONN_QUAL qualifier;
	DAT_RETURN rc;

	if ((rc = dat_ia_query(m->ia, NULL, DAT_IA_FIELD_ALL, &m->attr,
			       DAT_PROVIDER_FIELD_ALL, &m->provider)) != DAT_SUCCESS)
		return rc;
	if (!udapl_address_own(m))
		return UDAPL_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	apply_limits(m);
	m->dto_length = UDAPL_DTO_EVD_LENGTH;
	if ((rc = dat_pz_create(m->ia, &m->pz)) != DAT_SUCCESS ||
	    (rc = dat_evd_create(m->ia, m->dto_length, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG,
				 &m->dto_evd)) != DAT_SUCCESS ||
	    (rc = dat_evd_create(m->ia, UDAPL_CONN_EVD_LENGTH, DAT_HANDLE_NULL,
				 DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, &m->conn_evd)) !=
		    DAT_SUCCESS ||
	    (rc = dat_psp_create_any(m->ia, &qualifier, m->conn_evd, DAT_PSP_CONSUMER_FLAG,
				     &m->psp)) != DAT_SUCCESS)
		return rc;
	m->address.qualifier = (uint32_t)qualifier;
	make_srq(m);
	if (udapl_rcache_init(m) != OPAL_SUCCESS || udapl_frags_init(m) != OPAL_SUCCESS)
		return UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return DAT_SUCCESS;
}

static void report_open_failure(const char *name, DAT_RETURN rc)
{
	/* Not every adapter of dat.conf must be usable on this host. */
	if (mca_btl_udapl_component.include && *mca_btl_udapl_component.include &&
	    udapl_is_first_on_node())
		udapl_show_help("cannot open", opal_process_info.nodename, name, udapl_error(rc));
	else
		opal_output_verbose(10, opal_btl_base_framework.framework_output,
				    "btl:udapl: %s is not used: %s", name, udapl_error(rc));
}

mca_btl_udapl_module_t *udapl_module_open(const char *name)
{
	mca_btl_udapl_module_t *m = malloc(sizeof *m);
	DAT_RETURN rc;

	if (!m)
		return NULL;
	memcpy(m, &mca_btl_udapl_template, sizeof *m);
	snprintf(m->name, sizeof m->name, "%s", name);
	m->rings = calloc(mca_btl_udapl_component.eager_peers + 1, sizeof *m->rings);
	m->unsignaled_work.kind = UDAPL_STAGED;
	udapl_mutex_init(&m->lock, RANK_BTL_MODULE);
	udapl_mutex_init(&m->recv_lock, RANK_BTL_RECV);
	OBJ_CONSTRUCT(&m->endpoints, opal_list_t);
	OBJ_CONSTRUCT(&m->conns, opal_list_t);
	OBJ_CONSTRUCT(&m->by_name, opal_hash_table_t);
	opal_hash_table_init(&m->by_name, 64);
	if (!m->rings)
		rc = UDAPL_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	else
		rc = dat_ia_open(m->name, UDAPL_ASYNC_EVD_LENGTH, &m->async_evd, &m->ia);
	if (rc != DAT_SUCCESS)
		m->ia = DAT_HANDLE_NULL;
	else
		rc = open_objects(m);
	if (rc == DAT_SUCCESS)
		return m;
	report_open_failure(name, rc);
	udapl_finalize(&m->super);
	return NULL;
}

/* --- processes -------------------------------------------------------------------------------- */

static mca_btl_base_endpoint_t *add_proc(mca_btl_udapl_module_t *m, opal_proc_t *proc)
{
	const struct udapl_address *to;
	uint8_t *all = NULL;
	mca_btl_base_endpoint_t *e = NULL;
	size_t size;
	int rc;

	OPAL_MODEX_RECV(rc, &mca_btl_udapl_component.super.btl_version, &proc->proc_name, &all,
			&size);
	if (rc != OPAL_SUCCESS || !all)
		return NULL;	/* the process does not use uDAPL */
	to = udapl_address_match(m, proc, (const struct udapl_address *)all, size / sizeof *to);
	if (to && (e = udapl_endpoint_of(m, proc->proc_name)) != NULL) {
		udapl_mutex_lock(&e->lock);
		e->address = *to;
		e->proc = proc;
		e->removed = false;
		udapl_mutex_unlock(&e->lock);
	}
	free(all);
	return e;
}

int udapl_add_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints, opal_bitmap_t *reachable)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;

	for (size_t i = 0; i < n; i++) {
		endpoints[i] = add_proc(m, procs[i]);
		if (endpoints[i] && reachable)
			opal_bitmap_set_bit(reachable, (int)i);
	}
	return OPAL_SUCCESS;
}

/* Starts closing the connections of an endpoint. udapl_conn_housekeep() completes it; only finalize
 * waits until then. */
static void close_endpoint(mca_btl_base_endpoint_t *e)
{
	mca_btl_udapl_module_t *m = e->module;
	udapl_conn_t *c;

	udapl_mutex_lock(&e->lock);
	e->removed = true;
	e->proc = NULL;
	udapl_mutex_lock(&m->lock);
	OPAL_LIST_FOREACH(c, &m->conns, udapl_conn_t)
		if (c->endpoint == e)
			udapl_conn_close(c);
	udapl_mutex_unlock(&m->lock);
	udapl_mutex_unlock(&e->lock);
}

int udapl_del_procs(mca_btl_base_module_t *btl, size_t n, opal_proc_t **procs,
		    mca_btl_base_endpoint_t **endpoints)
{
	(void)btl;
	(void)procs;
	for (size_t i = 0; i < n; i++)
		if (endpoints[i])
			close_endpoint(endpoints[i]);
	return OPAL_SUCCESS;
}

/* --- closing ---------------------------------------------------------------------------------- */

static bool conns_remain(mca_btl_udapl_module_t *m)
{
	udapl_conn_t *c;

	OPAL_LIST_FOREACH(c, &m->conns, udapl_conn_t)
		if (c->state != UDAPL_CONN_CLOSED || c->posted > 0)
			return true;
	return false;
}

static void close_connections(mca_btl_udapl_module_t *m)
{
	mca_btl_base_endpoint_t *e;
	double end = udapl_now() + UDAPL_CLOSE_TIMEOUT;

	OPAL_LIST_FOREACH(e, &m->endpoints, mca_btl_base_endpoint_t)
		close_endpoint(e);
	while (conns_remain(m) && udapl_now() < end)
		udapl_progress_module(m, true);
}

static void free_conns(mca_btl_udapl_module_t *m)
{
	udapl_conn_t *c;

	while ((c = (udapl_conn_t *)opal_list_get_first(&m->conns)) !=
	       (udapl_conn_t *)opal_list_get_end(&m->conns))
		udapl_conn_release(c);
}

/* Frees the connections and the SRQ before the free lists, which own the memory of outstanding
 * receives. */
static void free_objects(mca_btl_udapl_module_t *m)
{
	mca_btl_base_endpoint_t *e;

	free_conns(m);
	while ((e = (mca_btl_base_endpoint_t *)opal_list_remove_first(&m->endpoints)) != NULL)
		OBJ_RELEASE(e);
	if (m->psp)
		dat_psp_free(m->psp);
	if (m->srq)
		dat_srq_free(m->srq);
	udapl_frags_fini(m);
	if (m->rcache)
		mca_rcache_base_module_destroy(m->rcache);
	/* Closing the adapter frees the EVDs and the PZ. */
	dat_ia_close(m->ia, DAT_CLOSE_ABRUPT_FLAG);
}

static void remove_module(mca_btl_udapl_module_t *m)
{
	mca_btl_udapl_component_t *c = &mca_btl_udapl_component;
	int kept = 0;

	for (int i = 0; i < c->num_modules; i++)
		if (c->modules[i] != m)
			c->modules[kept++] = c->modules[i];
	c->num_modules = kept;
}

int udapl_finalize(mca_btl_base_module_t *btl)
{
	mca_btl_udapl_module_t *m = (mca_btl_udapl_module_t *)btl;

	if (m->ia) {
		m->closing = true;
		close_connections(m);
		remove_module(m);
		free_objects(m);
	}
	OBJ_DESTRUCT(&m->by_name);
	OBJ_DESTRUCT(&m->conns);
	OBJ_DESTRUCT(&m->endpoints);
	udapl_mutex_fini(&m->recv_lock);
	udapl_mutex_fini(&m->lock);
	free(m->rings);
	free(m);
	return OPAL_SUCCESS;
}
