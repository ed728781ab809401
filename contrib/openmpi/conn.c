/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.c - creates, requests, establishes, fails, closes and frees a connection (conn.h). connect.c
 * decides when. */
#include "conn.h"
#include "clock.h"
#include "control.h"
#include "hello.h"
#include "help.h"
#include "posting.h"
#include "recv_post.h"
#include "ring_setup.h"
#include "state.h"
#include <stdio.h>
#include <string.h>

static void conn_construct(udapl_conn_t *c)
{
	memset((char *)c + sizeof c->super, 0, sizeof *c - sizeof c->super);
}
OBJ_CLASS_INSTANCE(udapl_conn_t, opal_list_item_t, conn_construct, NULL);

static int requests_of_conn(void)
{
	return mca_btl_udapl_component.requests + UDAPL_CONTROL_REQUESTS;
}

/* Completions of a connection that may wait in the EVD. */
static int completions_of_conn(void)
{
	return udapl_receives_of_conn() + requests_of_conn();
}

static DAT_COUNT limit_reads(DAT_COUNT most)
{
	return most < UDAPL_MAX_READS ? most : UDAPL_MAX_READS;
}

static DAT_RETURN create_ep(mca_btl_udapl_module_t *m, udapl_conn_t *c)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = m->message_size,
		.max_rdma_size = m->attr.max_rdma_size,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = udapl_receives_of_conn(),
		.max_request_dtos = requests_of_conn(),
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = limit_reads(m->attr.max_rdma_read_per_ep_in),
		.max_rdma_read_out = limit_reads(m->attr.max_rdma_read_per_ep_out),
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	if (c->srq)
		return dat_ep_create_with_srq(m->ia, m->pz, m->dto_evd, m->dto_evd, m->conn_evd,
					      m->srq, &attr, &c->ep);
	return dat_ep_create(m->ia, m->pz, m->dto_evd, m->dto_evd, m->conn_evd, &attr, &c->ep);
}

static void report_short_evd(const mca_btl_udapl_module_t *m)
{
	char length[16], needed[16];

	snprintf(length, sizeof length, "%d", m->dto_length);
	snprintf(needed, sizeof needed, "%d", m->dto_needed);
	udapl_show_help("too few events", opal_process_info.nodename, m->name, length, needed);
}

/* Makes room in the EVD for all completions that can be outstanding. If the device allows fewer, reports that
 * once and returns DAT_SUCCESS: they overflow the EVD only if all are outstanding between two polls. */
static DAT_RETURN grow_dto_evd(mca_btl_udapl_module_t *m)
{
	DAT_RETURN rc = DAT_SUCCESS;

	udapl_mutex_lock(&m->lock);
	m->dto_needed += completions_of_conn();
	if (m->dto_needed > m->dto_length && m->dto_length < m->attr.max_evd_qlen) {
		int length = 2 * m->dto_needed;

		if (length > m->attr.max_evd_qlen)
			length = m->attr.max_evd_qlen;
		rc = dat_evd_resize(m->dto_evd, length);
		if (rc == DAT_SUCCESS)
			m->dto_length = length;
	}
	if (rc == DAT_SUCCESS && m->dto_needed > m->dto_length && !m->dto_short) {
		m->dto_short = true;
		if (udapl_is_first_on_node())
			report_short_evd(m);
	}
	udapl_mutex_unlock(&m->lock);
	return rc;
}

/* Sets c->srq if the shared queue has room for the receives of this connection, and reserves it. */
static void reserve_receives(mca_btl_udapl_module_t *m, udapl_conn_t *c)
{
	DAT_SRQ_PARAM param;

	if (!m->srq || dat_srq_query(m->srq, DAT_SRQ_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	udapl_mutex_lock(&m->recv_lock);
	c->srq = m->srq_wanted + udapl_receives_of_conn() <= param.max_recv_dtos;
	if (c->srq)
		m->srq_wanted += udapl_receives_of_conn();
	udapl_mutex_unlock(&m->recv_lock);
}

struct udapl_conn *udapl_conn_from(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context;

	return dat_get_consumer_context(ep, &context) == DAT_SUCCESS ? context.as_ptr : NULL;
}

udapl_conn_t *udapl_conn_new(mca_btl_base_endpoint_t *e, bool active)
{
	mca_btl_udapl_module_t *m = e->module;
	udapl_conn_t *c = OBJ_NEW(udapl_conn_t);
	DAT_CONTEXT context = { .as_ptr = c };

	if (!c)
		return NULL;
	c->module = m;
	c->endpoint = e;
	c->active = active;
	c->sq_free = mca_btl_udapl_component.requests;
	c->control_free = UDAPL_CONTROL_REQUESTS;
	reserve_receives(m, c);
	udapl_mutex_lock(&m->lock);
	opal_list_append(&m->conns, &c->super);
	udapl_mutex_unlock(&m->lock);
	if (grow_dto_evd(m) != DAT_SUCCESS || create_ep(m, c) != DAT_SUCCESS ||
	    dat_set_consumer_context(c->ep, context) != DAT_SUCCESS ||
	    udapl_receives_post(c) != OPAL_SUCCESS) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		return NULL;
	}
	return c;
}

void udapl_conn_release(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (c->ep)
		dat_ep_free(c->ep);
	udapl_ring_free(c);
	udapl_receives_release(c);
	udapl_mutex_lock(&m->lock);
	opal_list_remove_item(&m->conns, &c->super);
	m->dto_needed -= completions_of_conn();
	udapl_mutex_unlock(&m->lock);
	OBJ_RELEASE(c);
}

bool udapl_conn_is_established(const struct udapl_conn *c)
{
	return c->state == UDAPL_CONN_ESTABLISHED || c->state == UDAPL_CONN_ACCEPTED;
}

void udapl_conn_close(struct udapl_conn *c)
{
	assert_held(&c->endpoint->lock);
	if (udapl_conn_is_established(c)) {
		udapl_control(c, UDAPL_CLOSE, NULL, 0);
		udapl_conn_set_state(c, UDAPL_CONN_CLOSING);
		dat_ep_disconnect(c->ep, DAT_CLOSE_GRACEFUL_FLAG);
	} else if (c->state == UDAPL_CONN_CONNECTING) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSING);
		if (dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS)
			udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	}
}

/* --- state of an endpoint -------------------------------------------------------------------- */

void udapl_endpoint_fail(mca_btl_base_endpoint_t *e, const char *why)
{
	assert_held(&e->lock);
	e->conn = NULL;
	if (e->state == UDAPL_FAILED)
		return;
	udapl_endpoint_set_state(e, UDAPL_FAILED);
	e->failure = why;
}

void udapl_endpoint_retry_or_fail(mca_btl_base_endpoint_t *e, const char *why)
{
	assert_held(&e->lock);
	e->conn = NULL;
	udapl_endpoint_set_state(e, UDAPL_IDLE);
	if (!e->proc || !udapl_has_waiting(e))
		return;	/* nothing is lost; the next send connects */
	if (e->attempts++ >= mca_btl_udapl_component.connect_retries) {
		udapl_endpoint_fail(e, why);
		return;
	}
	udapl_endpoint_set_state(e, UDAPL_RETRY_WAIT);
	e->deadline = udapl_now() + UDAPL_RETRY_AFTER;
}

void udapl_connect(mca_btl_base_endpoint_t *e)
{
	mca_btl_udapl_module_t *m = e->module;
	struct udapl_hello hello = udapl_hello_own(m);
	udapl_conn_t *c;
	DAT_RETURN rc;

	assert_held(&e->lock);
	if (!e->proc)
		return;
	c = udapl_conn_new(e, true);
	if (!c) {
		udapl_endpoint_fail(e, "no resources for another connection");
		return;
	}
	e->conn = c;
	udapl_endpoint_set_state(e, UDAPL_CONNECTING);
	rc = dat_ep_connect(c->ep, (DAT_IA_ADDRESS_PTR)&e->address.at, e->address.qualifier,
			    mca_btl_udapl_component.connect_timeout * 1000000u, sizeof hello, &hello,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (rc != DAT_SUCCESS) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		udapl_endpoint_fail(e, "dat_ep_connect failed");
	}
}

void udapl_conn_fail_if_in_use(udapl_conn_t *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	assert_held(&c->endpoint->lock);
	if (e->conn != c && c->state != UDAPL_CONN_ESTABLISHED && c->state != UDAPL_CONN_DISCONNECTED)
		return;
	if (e->state != UDAPL_FAILED)
		e->lost = true;
	udapl_endpoint_fail(e, why);
}

void udapl_conn_broken(struct udapl_conn *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	udapl_mutex_lock(&e->lock);
	if (c->state == UDAPL_CONN_ESTABLISHED && !c->close_received && !c->module->closing)
		udapl_conn_fail_if_in_use(c, why);
	udapl_mutex_unlock(&e->lock);
}

void udapl_conn_post_failed(struct udapl_conn *c, DAT_RETURN rc)
{
	assert_held(&c->endpoint->lock);
	if (DAT_GET_TYPE(rc) != DAT_INVALID_STATE)
		udapl_conn_fail_if_in_use(c, "a request could not be posted");
}

void udapl_conn_set_established(udapl_conn_t *c)
{
	assert_held(&c->endpoint->lock);
	udapl_conn_set_state(c, UDAPL_CONN_ESTABLISHED);
	if (c->endpoint->conn == c) {
		udapl_endpoint_set_state(c->endpoint, UDAPL_CONNECTED);
		c->endpoint->attempts = 0;
	}
}

bool udapl_conn_first_message(struct udapl_conn *c)
{
	assert_held(&c->endpoint->lock);
	c->received_any = true;
	if (c->state != UDAPL_CONN_ACCEPTED)
		return false;
	udapl_conn_set_established(c);
	return true;
}
