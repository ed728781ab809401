/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - connections: when they are made, which of two counts, how they end. The only code
 * that changes the state of an endpoint or a connection. Open MPI is told of trouble here.
 *
 * An endpoint connects when something is to be sent. If both sides ask at once, the request of
 * the process with the higher name counts: who gets a request while his own is under way
 * refuses it if his name is the higher one, else he accepts it and lets go of his own. A request
 * may come before Open MPI has told us of the process; its name is in the private data.
 *
 * Who asked speaks first, as MPA wants it of iWARP: an acceptor's message that comes together with
 * its answer may cost the asker the connection. Until the acceptor hears something it sends nothing,
 * so of a connection that its peer never had nothing is lost; that peer asks again.
 *
 * A process may be asked by another adapter of the peer than the one it would ask itself, or by
 * itself. Such a connection is accepted, and serves the peer's requests only. */
#include "udapl.h"
#include <string.h>
#include <time.h>
#include "opal/util/output.h"

/* Seconds. Both go by in the rarest of cases only. */
static const double RETRY_AFTER = 0.5;	/* a refusal, if the peer's own request does not come */
static const double BROKEN_AFTER = 0.05;	/* a break, if the peer's goodbye does not come */
/* An orderly end without goodbye: the kernel closes so for a process that died, but siw also may
 * lose a goodbye to the close behind it; then we are about to finalize ourselves. */
static const double ENDED_AFTER = 5;

static void conn_construct(udapl_conn_t *c)
{
	memset((char *)c + sizeof c->super, 0, sizeof *c - sizeof c->super);
}
OBJ_CLASS_INSTANCE(udapl_conn_t, opal_list_item_t, conn_construct, NULL);

static void endpoint_construct(mca_btl_base_endpoint_t *e)
{
	memset((char *)e + sizeof e->super, 0, sizeof *e - sizeof e->super);
	OBJ_CONSTRUCT(&e->lock, opal_mutex_t);
	OBJ_CONSTRUCT(&e->sends, opal_list_t);
	OBJ_CONSTRUCT(&e->rdmas, opal_list_t);
	OBJ_CONSTRUCT(&e->lost_sends, opal_list_t);
	OBJ_CONSTRUCT(&e->lost_rdmas, opal_list_t);
}

static void endpoint_destruct(mca_btl_base_endpoint_t *e)
{
	/* Items belong to free lists, which free them. */
	while (opal_list_remove_first(&e->sends) || opal_list_remove_first(&e->rdmas) ||
	       opal_list_remove_first(&e->lost_sends) || opal_list_remove_first(&e->lost_rdmas))
		;
	OBJ_DESTRUCT(&e->sends);
	OBJ_DESTRUCT(&e->rdmas);
	OBJ_DESTRUCT(&e->lost_sends);
	OBJ_DESTRUCT(&e->lost_rdmas);
	OBJ_DESTRUCT(&e->lock);
}
OBJ_CLASS_INSTANCE(mca_btl_base_endpoint_t, opal_list_item_t, endpoint_construct,
		   endpoint_destruct);

/* --- the private data ---------------------------------------------------------------------- */

static struct udapl_hello our_hello(const mca_btl_udapl_module_t *m)
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

/* False if whoever speaks is no component like us. */
static bool take_hello(const mca_btl_udapl_module_t *m, const void *data, DAT_COUNT size,
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

/* --- the life of a connection -------------------------------------------------------------- */

static int receives_of_a_conn(void)
{
	return mca_btl_udapl_component.credits + UDAPL_RESERVE;
}

static DAT_COUNT reads_of(DAT_COUNT most)
{
	return most < 16 ? most : 16;
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
		.max_recv_dtos = receives_of_a_conn(),
		.max_request_dtos = mca_btl_udapl_component.requests + UDAPL_CONTROL_ROOM,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = reads_of(m->attr.max_rdma_read_per_ep_in),
		.max_rdma_read_out = reads_of(m->attr.max_rdma_read_per_ep_out),
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	if (c->srq)
		return dat_ep_create_with_srq(m->ia, m->pz, m->dto_evd, m->dto_evd, m->conn_evd,
					      m->srq, &attr, &c->ep);
	return dat_ep_create(m->ia, m->pz, m->dto_evd, m->dto_evd, m->conn_evd, &attr, &c->ep);
}

/* All completions that there can be must have room. */
static DAT_RETURN make_event_room(mca_btl_udapl_module_t *m)
{
	DAT_RETURN rc = DAT_SUCCESS;

	OPAL_THREAD_LOCK(&m->lock);
	m->dto_needed += receives_of_a_conn() + mca_btl_udapl_component.requests +
			 UDAPL_CONTROL_ROOM;
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
	c->srq = m->srq_wanted + receives_of_a_conn() <= param.max_recv_dtos;
	if (c->srq)
		m->srq_wanted += receives_of_a_conn();
	OPAL_THREAD_UNLOCK(&m->recv_lock);
}

struct udapl_conn *udapl_conn_from(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context;

	return dat_get_consumer_context(ep, &context) == DAT_SUCCESS ? context.as_ptr : NULL;
}

/* Receives posted, not connected. NULL if it can't be made. */
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
	c->room = mca_btl_udapl_component.requests;
	c->control_room = UDAPL_CONTROL_ROOM;
	reserve_receives(m, c);
	OPAL_THREAD_LOCK(&m->lock);
	opal_list_append(&m->conns, &c->super);
	OPAL_THREAD_UNLOCK(&m->lock);
	if (make_event_room(m) != DAT_SUCCESS || create_ep(m, c) != DAT_SUCCESS ||
	    dat_set_consumer_context(c->ep, context) != DAT_SUCCESS ||
	    udapl_receives_post(c) != OPAL_SUCCESS) {
		c->state = UDAPL_CONN_DOWN;
		return NULL;
	}
	return c;
}

/* Nothing may be posted on it any more, or the adapter be about to be closed. */
void udapl_conn_release(struct udapl_conn *c)
{
	mca_btl_udapl_module_t *m = c->module;

	if (c->ep)
		dat_ep_free(c->ep);
	udapl_ring_free(c);
	udapl_receives_drop(c);
	OPAL_THREAD_LOCK(&m->lock);
	opal_list_remove_item(&m->conns, &c->super);
	m->dto_needed -= receives_of_a_conn() + mca_btl_udapl_component.requests +
			 UDAPL_CONTROL_ROOM;
	OPAL_THREAD_UNLOCK(&m->lock);
	OBJ_RELEASE(c);
}

static bool is_established(const struct udapl_conn *c)
{
	return c->state == UDAPL_CONN_UP || c->state == UDAPL_CONN_SILENT;
}

/* With e->lock held. The peer is told that we mean it. */
void udapl_conn_leave(struct udapl_conn *c)
{
	if (is_established(c)) {
		udapl_control(c, UDAPL_GOODBYE, NULL, 0);
		c->state = UDAPL_CONN_LEAVING;
		dat_ep_disconnect(c->ep, DAT_CLOSE_GRACEFUL_FLAG);
	} else if (c->state == UDAPL_CONN_PENDING) {
		c->state = UDAPL_CONN_LEAVING;
		if (dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS)
			c->state = UDAPL_CONN_DOWN;
	}
}

/* --- the state of an endpoint -------------------------------------------------------------------- */

/* With e->lock held. Told to Open MPI by udapl_conn_look_after(), as no lock may be held then. */
static void fail(mca_btl_base_endpoint_t *e, const char *why)
{
	e->conn = NULL;
	if (e->state == UDAPL_FAILED)
		return;
	e->state = UDAPL_FAILED;
	e->trouble = why;
}

/* With e->lock held. A connection that is not there any more: another attempt, or none. */
static void lost_attempt(mca_btl_base_endpoint_t *e, const char *why)
{
	e->conn = NULL;
	e->state = UDAPL_IDLE;
	if (!e->proc || !udapl_has_waiting(e))
		return;	/* nothing is lost, it connects when there is something to send */
	if (e->attempts++ >= mca_btl_udapl_component.connect_retries) {
		fail(e, why);
		return;
	}
	e->state = UDAPL_AWAITING;
	e->deadline = udapl_now() + RETRY_AFTER;
}

/* With e->lock held; state UDAPL_IDLE. */
void udapl_connect(mca_btl_base_endpoint_t *e)
{
	mca_btl_udapl_module_t *m = e->module;
	struct udapl_hello hello = our_hello(m);
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
	e->state = UDAPL_CONNECTING;
	rc = dat_ep_connect(c->ep, (DAT_IA_ADDRESS_PTR)&e->address.at, e->address.qualifier,
			    mca_btl_udapl_component.connect_timeout * 1000000u, sizeof hello, &hello,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (rc != DAT_SUCCESS) {
		c->state = UDAPL_CONN_DOWN;
		fail(e, "dat_ep_connect failed");
	}
}

/* With e->lock held. A request failed, or the verdict is: not meant. */
static void broken(udapl_conn_t *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	if (e->conn == c || c->state == UDAPL_CONN_UP || c->state == UDAPL_CONN_ENDED)
		fail(e, why);
}

void udapl_conn_broken(struct udapl_conn *c, const char *why)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_UP && !c->goodbye && !c->module->closing)
		broken(c, why);
	OPAL_THREAD_UNLOCK(&e->lock);
}

/* With e->lock held. A post failed. The endpoint may have left the connected state, of which an
 * event tells more; anything else is an error that nobody else would tell of. */
void udapl_conn_refused(struct udapl_conn *c, DAT_RETURN rc)
{
	if (DAT_GET_TYPE(rc) != DAT_INVALID_STATE)
		broken(c, "a request could not be posted");
}

/* --- requests of peers ----------------------------------------------------------------------------- */

static int compare_names(opal_process_name_t a, opal_process_name_t b)
{
	if (a.jobid != b.jobid)
		return a.jobid < b.jobid ? -1 : 1;
	return a.vpid < b.vpid ? -1 : a.vpid > b.vpid;
}

enum answer { REFUSE, ACCEPT, ACCEPT_AS_SECOND };

/* With e->lock held. */
static enum answer answer_to(const mca_btl_base_endpoint_t *e, const struct udapl_hello *h)
{
	int order = compare_names(OPAL_PROC_MY_NAME, e->name);

	if (e->module->closing || e->state == UDAPL_FAILED)
		return REFUSE;
	if (!e->conn)
		return order ? ACCEPT : ACCEPT_AS_SECOND;
	/* Is it asked by whom we asked, or have a connection with? */
	if (order == 0 || !e->proc || h->qualifier != e->address.qualifier)
		return ACCEPT_AS_SECOND;
	if (e->state == UDAPL_CONNECTING && e->conn->active && order < 0)
		return ACCEPT;
	/* That he asks again means that he has not got what we accepted. */
	if (!e->conn->active && !e->conn->heard)
		return ACCEPT;
	return REFUSE;
}

/* With e->lock held. */
static bool accept_request(mca_btl_base_endpoint_t *e, DAT_CR_HANDLE cr,
			   const struct udapl_hello *theirs, bool second)
{
	struct udapl_hello ours = our_hello(e->module);
	udapl_conn_t *c = new_conn(e, false);

	if (!c)
		return false;
	c->credits = theirs->credits;
	if (dat_cr_accept(cr, c->ep, sizeof ours, &ours) != DAT_SUCCESS) {
		c->state = UDAPL_CONN_DOWN;
		return false;
	}
	if (!second) {
		e->conn = c;	/* what was there is refused by the peer */
		e->state = UDAPL_CONNECTING;
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
	    take_hello(m, param.private_data, param.private_data_size, &h))
		e = udapl_endpoint_of(m, (opal_process_name_t){ .jobid = h.jobid, .vpid = h.vpid });
	if (e) {
		OPAL_THREAD_LOCK(&e->lock);
		answer = answer_to(e, &h);
		if (answer != REFUSE)
			accepted = accept_request(e, cr, &h, answer == ACCEPT_AS_SECOND);
		OPAL_THREAD_UNLOCK(&e->lock);
	}
	if (!accepted)
		dat_cr_reject(cr, 0, NULL);
}

/* --- events ------------------------------------------------------------------------------------------ */

/* With e->lock held. */
static void up(udapl_conn_t *c)
{
	c->state = UDAPL_CONN_UP;
	if (c->endpoint->conn == c) {
		c->endpoint->state = UDAPL_CONNECTED;
		c->endpoint->attempts = 0;
	}
}

/* With e->lock held. The first message came; true if from now on we may send. */
bool udapl_conn_heard_first(struct udapl_conn *c)
{
	c->heard = true;
	if (c->state != UDAPL_CONN_SILENT)
		return false;
	up(c);
	return true;
}

static void on_established(udapl_conn_t *c, const DAT_CONNECTION_EVENT_DATA *data)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	struct udapl_hello h;
	bool good = !c->active ||
		    take_hello(c->module, data->private_data, data->private_data_size, &h);

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_PENDING) {
		if (c->active && good)
			c->credits += h.credits;
		c->state = UDAPL_CONN_SILENT;
		if (e->conn != c && c->active) {
			udapl_conn_leave(c);	/* the peer's request came in between */
		} else if (!good) {
			fail(e, "the peer has other sizes or another version");
			udapl_conn_leave(c);
		} else if (c->active) {
			up(c);
			udapl_control(c, UDAPL_CREDITS, NULL, 0);
		} else if (c->heard) {
			up(c);
		}
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	udapl_return_credits(c);	/* of what came before we knew */
	udapl_push(e);
}

/* With e->lock held. An attempt that came to nothing. */
static void attempt_failed(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	c->state = UDAPL_CONN_DOWN;
	if (e->conn != c)
		return;
	switch (event) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		lost_attempt(e, "the peer refuses");
		break;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		lost_attempt(e, "it does not answer in time");
		break;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		lost_attempt(e, "there is no way to its address");
		break;
	default:
		lost_attempt(e, "nobody listens there");
		break;
	}
}

static void on_end(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->state == UDAPL_CONN_PENDING) {
		attempt_failed(c, event);
	} else if (c->state == UDAPL_CONN_LEAVING) {
		c->state = UDAPL_CONN_DOWN;
		if (e->conn == c) {
			e->conn = NULL;
			e->state = UDAPL_IDLE;
		}
	} else if (is_established(c)) {
		c->state = UDAPL_CONN_ENDED;
		c->verdict = udapl_now() + (event == DAT_CONNECTION_EVENT_DISCONNECTED ? ENDED_AFTER
											: BROKEN_AFTER);
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
		on_end(c, event->event_number);
}

/* --- what takes time ------------------------------------------------------------------------------------ */

/* A connection ended. With a goodbye it was meant, and what was flushed is of no interest. Of one
 * that was accepted and never heard of nothing was sent. */
static void settle(udapl_conn_t *c, opal_list_t *sends, opal_list_t *rdmas)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	OPAL_THREAD_LOCK(&e->lock);
	if (c->goodbye || c->module->closing) {
		c->state = UDAPL_CONN_DOWN;
		if (e->conn == c) {
			e->conn = NULL;
			e->state = UDAPL_IDLE;
			if (udapl_has_waiting(e) && !e->left && !c->module->closing)
				udapl_connect(e);
		}
		opal_list_join(sends, opal_list_get_end(sends), &e->lost_sends);
		opal_list_join(rdmas, opal_list_get_end(rdmas), &e->lost_rdmas);
	} else if (!c->active && !c->heard) {
		c->state = UDAPL_CONN_DOWN;
		if (e->conn == c)
			lost_attempt(e, "the connection ended as soon as it was made");
	} else if (udapl_now() >= c->verdict) {
		broken(c, "the connection broke");
		c->state = UDAPL_CONN_DOWN;
	}
	OPAL_THREAD_UNLOCK(&e->lock);
}

static void finish(opal_list_t *sends, opal_list_t *rdmas, int status)
{
	opal_list_item_t *item;

	while ((item = opal_list_remove_first(sends)) != NULL)
		udapl_send_done((udapl_frag_t *)item, status);
	while ((item = opal_list_remove_first(rdmas)) != NULL)
		udapl_rdma_done((udapl_rdma_t *)item, status);
}

static void tell_trouble(mca_btl_base_endpoint_t *e, const char *why)
{
	mca_btl_udapl_module_t *m = e->module;
	const char *topic = e->attempts ? "cannot connect" : "connection lost";
	char peer[64];

	snprintf(peer, sizeof peer, "%s", OPAL_NAME_PRINT(e->name));
	udapl_tell(topic, opal_process_info.nodename, m->name, peer, why);
	if (m->error_cb)
		m->error_cb(&m->super, MCA_BTL_ERROR_FLAGS_FATAL, e->proc, (char *)why);
}

static void look_after_endpoint(mca_btl_base_endpoint_t *e)
{
	opal_list_t sends, rdmas;
	const char *why;

	OBJ_CONSTRUCT(&sends, opal_list_t);
	OBJ_CONSTRUCT(&rdmas, opal_list_t);
	OPAL_THREAD_LOCK(&e->lock);
	if (e->state == UDAPL_AWAITING && udapl_now() >= e->deadline) {
		e->state = UDAPL_IDLE;
		udapl_connect(e);
	}
	why = e->trouble;
	e->trouble = NULL;
	if (e->state == UDAPL_FAILED) {
		opal_list_join(&sends, opal_list_get_end(&sends), &e->sends);
		opal_list_join(&sends, opal_list_get_end(&sends), &e->lost_sends);
		opal_list_join(&rdmas, opal_list_get_end(&rdmas), &e->rdmas);
		opal_list_join(&rdmas, opal_list_get_end(&rdmas), &e->lost_rdmas);
	}
	OPAL_THREAD_UNLOCK(&e->lock);
	if (why && !e->module->closing)
		tell_trouble(e, why);
	finish(&sends, &rdmas, OPAL_ERR_UNREACH);
	OBJ_DESTRUCT(&sends);
	OBJ_DESTRUCT(&rdmas);
}

/* With threads another one may still handle a completion that names the connection: then they
 * are kept until finalize. Without, the caller has just found no completion. */
static bool may_release(const udapl_conn_t *c)
{
	return c->state == UDAPL_CONN_DOWN && c->posted == 0 && c->receives == 0 &&
	       !opal_using_threads() && !c->module->closing;
}

/* Called by one thread at a time, after all completions were taken. */
void udapl_conn_look_after(mca_btl_udapl_module_t *m)
{
	opal_list_t sends, rdmas;
	mca_btl_base_endpoint_t *e;
	udapl_conn_t *c, *next;

	OBJ_CONSTRUCT(&sends, opal_list_t);
	OBJ_CONSTRUCT(&rdmas, opal_list_t);
	OPAL_LIST_FOREACH_SAFE(c, next, &m->conns, udapl_conn_t) {
		if (c->state == UDAPL_CONN_ENDED)
			settle(c, &sends, &rdmas);
		if (may_release(c))
			udapl_conn_release(c);
	}
	OPAL_LIST_FOREACH(e, &m->endpoints, mca_btl_base_endpoint_t)
		if (e->state == UDAPL_AWAITING || e->state == UDAPL_FAILED)
			look_after_endpoint(e);
	finish(&sends, &rdmas, OPAL_SUCCESS);
	OBJ_DESTRUCT(&sends);
	OBJ_DESTRUCT(&rdmas);
}
