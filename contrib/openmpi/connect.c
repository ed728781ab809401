/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - connections: when they are made, which one of two is used, how they end. Only this
 * file changes the state of an endpoint or a connection (state.h), and reports failures to Open MPI.
 *
 * An endpoint connects when something is to be sent. If both processes request a connection at the
 * same time, the request of the process with the higher name is used. A process whose own request
 * is pending refuses the peer's request if its own name is higher; otherwise it accepts it and
 * drops its own. A request may arrive before add_procs; the private data names the process.
 *
 * The requester sends the first message, as MPA requires for iWARP: a message of the acceptor that
 * arrives together with its MPA reply can break the connection. The acceptor sends nothing before
 * it has received something. So nothing is lost on a connection that the peer never got, and the
 * peer requests another.
 *
 * A process may be asked by another adapter of the peer than the one it would choose, or by
 * itself. It accepts such a connection, but only the peer sends on it. */
#include "connect.h"
#include "clock.h"
#include "endpoint.h"
#include "help.h"
#include "memory.h"
#include "rdma.h"
#include "receive.h"
#include "ring_setup.h"
#include "send.h"
#include "state.h"
#include <string.h>
#include "opal/util/output.h"

static void conn_construct(udapl_conn_t *c)
{
	memset((char *)c + sizeof c->super, 0, sizeof *c - sizeof c->super);
}
OBJ_CLASS_INSTANCE(udapl_conn_t, opal_list_item_t, conn_construct, NULL);

/* --- private data ---------------------------------------------------------------------------- */

static struct udapl_hello own_hello(const mca_btl_udapl_module_t *m)
{
	return (struct udapl_hello){
		.magic = htonl(UDAPL_MAGIC),
		.jobid = htonl(OPAL_PROC_MY_NAME.jobid),
		.vpid = htonl(OPAL_PROC_MY_NAME.vpid),
		.qualifier = htonl(m->address.qualifier),
		.message_size = htonl(m->message_size),
		.credits = htonl(mca_btl_udapl_component.credits),
	};
}

/* Returns false if the private data is not that of a compatible component. */
static bool parse_hello(const mca_btl_udapl_module_t *m, const void *data, DAT_COUNT size,
		       struct udapl_hello *h)
{
	if (!data || size < (DAT_COUNT)sizeof *h)
		return false;
	memcpy(h, data, sizeof *h);
	h->magic = ntohl(h->magic);
	h->jobid = ntohl(h->jobid);
	h->vpid = ntohl(h->vpid);
	h->qualifier = ntohl(h->qualifier);
	h->message_size = ntohl(h->message_size);
	h->credits = ntohl(h->credits);
	return h->magic == UDAPL_MAGIC && h->message_size == m->message_size;
}

/* --- life of a connection -------------------------------------------------------------------- */

static int conn_receives(void)
{
	return mca_btl_udapl_component.credits + UDAPL_CONTROL_RECEIVES;
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
		.max_recv_dtos = conn_receives(),
		.max_request_dtos = mca_btl_udapl_component.requests + UDAPL_CONTROL_REQUESTS,
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

/* Makes room in the EVD for all completions that can be outstanding. */
static DAT_RETURN grow_dto_evd(mca_btl_udapl_module_t *m)
{
	DAT_RETURN rc = DAT_SUCCESS;

	OPAL_THREAD_LOCK(&m->lock);
	m->dto_needed += conn_receives() + mca_btl_udapl_component.requests +
			 UDAPL_CONTROL_REQUESTS;
	if (m->dto_needed > m->dto_length) {
		int length = 2 * m->dto_needed;

		if (length > m->attr.max_evd_qlen)
			length = m->attr.max_evd_qlen;
		rc = dat_evd_resize(m->dto_evd, length);
		if (rc == DAT_SUCCESS)
			m->dto_length = length;
	}
	OPAL_THREAD_UNLOCK(&m->lock);
	return rc;
}

static void reserve_receives(mca_btl_udapl_module_t *m, udapl_conn_t *c)
{
	DAT_SRQ_PARAM param;

	if (!m->srq || dat_srq_query(m->srq, DAT_SRQ_FIELD_ALL, &param) != DAT_SUCCESS)
		return;
	OPAL_THREAD_LOCK(&m->recv_lock);
	c->srq = m->srq_wanted + conn_receives() <= param.max_recv_dtos;
	if (c->srq)
		m->srq_wanted += conn_receives();
	OPAL_THREAD_UNLOCK(&m->recv_lock);
}

struct udapl_conn *udapl_conn_from(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context;

	return dat_get_consumer_context(ep, &context) == DAT_SUCCESS ? context.as_ptr : NULL;
}

/* Returns a connection with receives posted, not connected. NULL on failure. */
static udapl_conn_t *new_conn(mca_btl_base_endpoint_t *e, bool active)
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
	OPAL_THREAD_LOCK(&m->lock);
	opal_list_append(&m->conns, &c->super);
	OPAL_THREAD_UNLOCK(&m->lock);
	if (grow_dto_evd(m) != DAT_SUCCESS || create_ep(m, c) != DAT_SUCCESS ||
	    dat_set_consumer_context(c->ep, context) != DAT_SUCCESS ||
	    udapl_receives_post(c) != OPAL_SUCCESS) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		return NULL;
	}
	return c;
}

/* Called when nothing is posted on the connection, or when the adapter is about to be closed. */
void udapl_conn_release(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (c->ep)
		dat_ep_free(c->ep);
	udapl_ring_free(c);
	udapl_receives_release(c);
	OPAL_THREAD_LOCK(&m->lock);
	opal_list_remove_item(&m->conns, &c->super);
	m->dto_needed -= conn_receives() + mca_btl_udapl_component.requests +
			 UDAPL_CONTROL_REQUESTS;
	OPAL_THREAD_UNLOCK(&m->lock);
	OBJ_RELEASE(c);
}

static bool is_established(const struct udapl_conn *c)
{
	return c->state == UDAPL_CONN_ESTABLISHED || c->state == UDAPL_CONN_ACCEPTED;
}

/* Called with e->lock held. The close notification tells the peer that the disconnect is
 * intended. */
void udapl_conn_close(struct udapl_conn *c)
{
	if (is_established(c)) {
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

/* Called with e->lock held. udapl_conn_housekeep() reports it to Open MPI without the lock. */
static void fail(mca_btl_base_endpoint_t *e, const char *why)
{
	e->conn = NULL;
	if (e->state == UDAPL_FAILED)
		return;
	udapl_endpoint_set_state(e, UDAPL_FAILED);
	e->failure = why;
}

/* Called with e->lock held. The connection is gone: schedules another attempt, or fails. */
static void retry_or_fail(mca_btl_base_endpoint_t *e, const char *why)
{
	e->conn = NULL;
	udapl_endpoint_set_state(e, UDAPL_IDLE);
	if (!e->proc || !udapl_has_waiting(e))
		return;	/* nothing is lost; the next send connects */
	if (e->attempts++ >= mca_btl_udapl_component.connect_retries) {
		fail(e, why);
		return;
	}
	udapl_endpoint_set_state(e, UDAPL_RETRY_WAIT);
	e->deadline = udapl_now() + UDAPL_RETRY_AFTER;
}

/* Called with e->lock held, in state UDAPL_IDLE. */
void udapl_connect(mca_btl_base_endpoint_t *e)
{
	mca_btl_udapl_module_t *m = e->module;
	struct udapl_hello hello = own_hello(m);
	udapl_conn_t *c;
	DAT_RETURN rc;

	if (!e->proc)
		return;
	c = new_conn(e, true);
	if (!c) {
		fail(e, "no resources for another connection");
		return;
	}
	e->conn = c;
	udapl_endpoint_set_state(e, UDAPL_CONNECTING);
	rc = dat_ep_connect(c->ep, (DAT_IA_ADDRESS_PTR)&e->address.at, e->address.qualifier,
			    mca_btl_udapl_component.connect_timeout * 1000000u, sizeof hello, &hello,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (rc != DAT_SUCCESS) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		fail(e, "dat_ep_connect failed");
	}
}

/* Called with e->lock held. A request failed, or the disconnect was not intended. */
static void fail_if_in_use(udapl_conn_t *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	if (e->conn == c || c->state == UDAPL_CONN_ESTABLISHED || c->state == UDAPL_CONN_DISCONNECTED)
		fail(e, why);
}

void udapl_conn_broken(struct udapl_conn *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_ESTABLISHED && !c->close_received && !c->module->closing)
		fail_if_in_use(c, why);
	OPAL_THREAD_UNLOCK(&e->lock);
}

/* Called with e->lock held after a failed post. If the endpoint has left the connected state,
 * an event reports the reason. Any other error is reported here. */
void udapl_conn_post_failed(struct udapl_conn *c, DAT_RETURN rc)
{
	if (DAT_GET_TYPE(rc) != DAT_INVALID_STATE)
		fail_if_in_use(c, "a request could not be posted");
}

/* --- requests of peers ----------------------------------------------------------------------- */

static int compare_names(opal_process_name_t a, opal_process_name_t b)
{
	if (a.jobid != b.jobid)
		return a.jobid < b.jobid ? -1 : 1;
	return a.vpid < b.vpid ? -1 : a.vpid > b.vpid;
}

enum answer { REFUSE, ACCEPT, ACCEPT_AS_SECOND };

/* Called with e->lock held. */
static enum answer decide_answer(const mca_btl_base_endpoint_t *e, const struct udapl_hello *h)
{
	int order = compare_names(OPAL_PROC_MY_NAME, e->name);

	if (e->module->closing || e->state == UDAPL_FAILED)
		return REFUSE;
	if (!e->conn)
		return order ? ACCEPT : ACCEPT_AS_SECOND;
	/* Is the requester another adapter than the one that this endpoint connects to? */
	if (order == 0 || !e->proc || h->qualifier != e->address.qualifier)
		return ACCEPT_AS_SECOND;
	if (e->state == UDAPL_CONNECTING && e->conn->active && order < 0)
		return ACCEPT;
	/* The peer requests again: it did not get the connection that was accepted. */
	if (!e->conn->active && !e->conn->received_any)
		return ACCEPT;
	return REFUSE;
}

/* Called with e->lock held. */
static bool accept_request(mca_btl_base_endpoint_t *e, DAT_CR_HANDLE cr,
			   const struct udapl_hello *theirs, bool second)
{
	struct udapl_hello ours = own_hello(e->module);
	udapl_conn_t *c = new_conn(e, false);

	if (!c)
		return false;
	c->credits = theirs->credits;
	if (dat_cr_accept(cr, c->ep, sizeof ours, &ours) != DAT_SUCCESS) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		return false;
	}
	if (!second) {
		e->conn = c;	/* the peer refuses the previous request */
		udapl_endpoint_set_state(e, UDAPL_CONNECTING);
	}
	return true;
}

static void on_request(mca_btl_udapl_module_t *m, DAT_CR_HANDLE cr)
{
	mca_btl_base_endpoint_t *e = NULL;
	struct udapl_hello h;
	DAT_CR_PARAM param;
	enum answer answer;
	bool accepted = false;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS &&
	    parse_hello(m, param.private_data, param.private_data_size, &h))
		e = udapl_endpoint_of(m, (opal_process_name_t){ .jobid = h.jobid, .vpid = h.vpid });
	if (e) {
		OPAL_THREAD_LOCK(&e->lock);
		answer = decide_answer(e, &h);
		if (answer != REFUSE)
			accepted = accept_request(e, cr, &h, answer == ACCEPT_AS_SECOND);
		OPAL_THREAD_UNLOCK(&e->lock);
	}
	if (!accepted)
		dat_cr_reject(cr, 0, NULL);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Called with e->lock held. */
static void set_established(udapl_conn_t *c)
{
	udapl_conn_set_state(c, UDAPL_CONN_ESTABLISHED);
	if (c->endpoint->conn == c) {
		udapl_endpoint_set_state(c->endpoint, UDAPL_CONNECTED);
		c->endpoint->attempts = 0;
	}
}

/* Called with e->lock held for the first message. Returns true if sending is possible from now
 * on. */
bool udapl_conn_first_message(struct udapl_conn *c)
{
	c->received_any = true;
	if (c->state != UDAPL_CONN_ACCEPTED)
		return false;
	set_established(c);
	return true;
}

static void on_established(udapl_conn_t *c, const DAT_CONNECTION_EVENT_DATA *data)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	struct udapl_hello h;
	bool good = !c->active ||
		    parse_hello(c->module, data->private_data, data->private_data_size, &h);

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_CONNECTING) {
		if (c->active && good)
			c->credits += h.credits;
		udapl_conn_set_state(c, UDAPL_CONN_ACCEPTED);
		if (e->conn != c && c->active) {
			udapl_conn_close(c);	/* the peer's request was accepted meanwhile */
		} else if (!good) {
			fail(e, "the peer has other sizes or another version");
			udapl_conn_close(c);
		} else if (c->active) {
			set_established(c);
			udapl_control(c, UDAPL_CREDITS, NULL, 0);
		} else if (c->received_any) {
			set_established(c);
		}
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	udapl_return_credits(c);	/* credits of messages that arrived before the event */
	udapl_push(e);
}

/* Called with e->lock held. An attempt failed. */
static void attempt_failed(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	if (e->conn != c)
		return;
	switch (event) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		retry_or_fail(e, "the peer refuses the connection");
		break;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		retry_or_fail(e, "it does not answer in time");
		break;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		retry_or_fail(e, "its address is unreachable");
		break;
	default:
		retry_or_fail(e, "nothing listens there");
		break;
	}
}

static void on_disconnect(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_CONNECTING) {
		attempt_failed(c, event);
	} else if (c->state == UDAPL_CONN_CLOSING) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		if (e->conn == c) {
			e->conn = NULL;
			udapl_endpoint_set_state(e, UDAPL_IDLE);
		}
	} else if (is_established(c)) {
		udapl_conn_set_state(c, UDAPL_CONN_DISCONNECTED);
		c->break_deadline = udapl_now() + (event == DAT_CONNECTION_EVENT_DISCONNECTED ? UDAPL_DISCONNECTED_AFTER
											: UDAPL_BROKEN_AFTER);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
}

void udapl_conn_event(mca_btl_udapl_module_t *m, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;
	udapl_conn_t *c;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		on_request(m, event->event_data.cr_arrival_event_data.cr_handle);
		return;
	}
	c = udapl_conn_from(data->ep_handle);
	if (!c)
		return;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		on_established(c, data);
	else
		on_disconnect(c, event->event_number);
}

/* --- housekeeping ---------------------------------------------------------------------------- */

/* After a close notification the disconnect was intended, and flushed requests are of no
 * interest. On an accepted connection without a received message nothing was sent. */
static void resolve_disconnect(udapl_conn_t *c, opal_list_t *sends, opal_list_t *rdmas)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->close_received || c->module->closing) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		if (e->conn == c) {
			e->conn = NULL;
			udapl_endpoint_set_state(e, UDAPL_IDLE);
			if (udapl_has_waiting(e) && !e->removed && !c->module->closing)
				udapl_connect(e);
		}
		opal_list_join(sends, opal_list_get_end(sends), &e->flushed_sends);
		opal_list_join(rdmas, opal_list_get_end(rdmas), &e->flushed_rdmas);
	} else if (!c->active && !c->received_any) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		if (e->conn == c)
			retry_or_fail(e, "the connection ended as soon as it was made");
	} else if (udapl_now() >= c->break_deadline) {
		fail_if_in_use(c, "the connection broke");
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
}

static void complete_all(opal_list_t *sends, opal_list_t *rdmas, int status)
{
	opal_list_item_t *item;

	while ((item = opal_list_remove_first(sends)) != NULL)
		udapl_send_done((udapl_frag_t *)item, status);
	while ((item = opal_list_remove_first(rdmas)) != NULL)
		udapl_rdma_done((udapl_rdma_t *)item, status);
}

static void report_failure(mca_btl_base_endpoint_t *e, const char *why)
{
	mca_btl_udapl_module_t *m = e->module;
	const char *topic = e->attempts ? "cannot connect" : "connection lost";
	char peer[64];

	snprintf(peer, sizeof peer, "%s", OPAL_NAME_PRINT(e->name));
	udapl_show_help(topic, opal_process_info.nodename, m->name, peer, why);
	if (m->error_cb)
		m->error_cb(&m->super, MCA_BTL_ERROR_FLAGS_FATAL, e->proc, (char *)why);
}

static void housekeep_endpoint(mca_btl_base_endpoint_t *e)
{
	opal_list_t sends, rdmas;
	const char *why;

	OBJ_CONSTRUCT(&sends, opal_list_t);
	OBJ_CONSTRUCT(&rdmas, opal_list_t);
	OPAL_THREAD_LOCK(&e->lock);
	if (e->state == UDAPL_RETRY_WAIT && udapl_now() >= e->deadline) {
		udapl_endpoint_set_state(e, UDAPL_IDLE);
		udapl_connect(e);
	}
	why = e->failure;
	e->failure = NULL;
	if (e->state == UDAPL_FAILED) {
		opal_list_join(&sends, opal_list_get_end(&sends), &e->sends);
		opal_list_join(&sends, opal_list_get_end(&sends), &e->flushed_sends);
		opal_list_join(&rdmas, opal_list_get_end(&rdmas), &e->rdmas);
		opal_list_join(&rdmas, opal_list_get_end(&rdmas), &e->flushed_rdmas);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	if (why && !e->module->closing)
		report_failure(e, why);
	complete_all(&sends, &rdmas, OPAL_ERR_UNREACH);
	OBJ_DESTRUCT(&sends);
	OBJ_DESTRUCT(&rdmas);
}

/* With threads, another thread may still handle a completion that names the connection; then
 * connections are kept until finalize. Without threads, the caller has just found the CQ empty. */
static bool may_release(const udapl_conn_t *c)
{
	return c->state == UDAPL_CONN_CLOSED && c->posted == 0 && c->receives == 0 &&
	       !opal_using_threads() && !c->module->closing;
}

/* Called by one thread at a time, after all completions were dequeued. */
void udapl_conn_housekeep(mca_btl_udapl_module_t *m)
{
	opal_list_t sends, rdmas;
	mca_btl_base_endpoint_t *e;
	udapl_conn_t *c, *next;

	OBJ_CONSTRUCT(&sends, opal_list_t);
	OBJ_CONSTRUCT(&rdmas, opal_list_t);
	OPAL_LIST_FOREACH_SAFE(c, next, &m->conns, udapl_conn_t) {
		if (c->state == UDAPL_CONN_DISCONNECTED)
			resolve_disconnect(c, &sends, &rdmas);
		if (may_release(c))
			udapl_conn_release(c);
	}
	OPAL_LIST_FOREACH(e, &m->endpoints, mca_btl_base_endpoint_t)
		if (e->state == UDAPL_RETRY_WAIT || e->state == UDAPL_FAILED)
			housekeep_endpoint(e);
	complete_all(&sends, &rdmas, OPAL_SUCCESS);
	OBJ_DESTRUCT(&sends);
	OBJ_DESTRUCT(&rdmas);
}
