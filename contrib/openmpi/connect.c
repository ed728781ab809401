/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* connect.c - decides when a connection is made, which of two colliding connections is used, and how it
 * ends. Only this file and conn.c change the state of an endpoint or a connection (state.h). Only this
 * file reports failures to Open MPI.
 *
 * An endpoint connects when something is to be sent. If both processes request a connection at the
 * same time, the request of the process with the higher name is used. A process whose own request
 * is pending refuses the peer's request if its own name is higher; otherwise it accepts it and
 * drops its own. A request may arrive before add_procs; the private data names the process.
 *
 * The requester sends the first message, as MPA requires for iWARP: a message of the acceptor that
 * arrives together with its MPA reply can break the connection. The acceptor sends nothing before
 * it has received something. So if the requester never gets the reply, no message is lost,
 * and it requests another connection.
 *
 * A request may come from another adapter of the peer than the one that this process would choose, or
 * from this process itself. Such a request is accepted, but only the requester sends on the
 * connection. */
#include "connect.h"
#include "completed.h"
#include "conn.h"
#include "control.h"
#include "hello.h"
#include "posting.h"
#include "push.h"
#include "rdma_post.h"
#include "clock.h"
#include "endpoint.h"
#include "help.h"
#include "state.h"
#include <string.h>
#include "opal/util/output.h"

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

	assert_held(&e->lock);
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
	struct udapl_hello ours = udapl_hello_own(e->module);
	udapl_conn_t *c = udapl_conn_new(e, false);

	assert_held(&e->lock);
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
	    udapl_hello_parse(m, param.private_data, param.private_data_size, &h))
		e = udapl_endpoint_of(m, (opal_process_name_t){ .jobid = h.jobid, .vpid = h.vpid });
	if (e) {
		udapl_mutex_lock(&e->lock);
		answer = decide_answer(e, &h);
		if (answer != REFUSE)
			accepted = accept_request(e, cr, &h, answer == ACCEPT_AS_SECOND);
		udapl_mutex_unlock(&e->lock);
	}
	if (!accepted)
		dat_cr_reject(cr, 0, NULL);
}

/* --- events ---------------------------------------------------------------------------------- */

static void on_established(udapl_conn_t *c, const DAT_CONNECTION_EVENT_DATA *data)
{
	mca_btl_base_endpoint_t *e = c->endpoint;
	struct udapl_hello h;
	bool good = !c->active ||
		    udapl_hello_parse(c->module, data->private_data, data->private_data_size, &h);

	udapl_mutex_lock(&e->lock);
	if (c->state == UDAPL_CONN_CONNECTING) {
		if (c->active && good)
			c->credits += h.credits;
		udapl_conn_set_state(c, UDAPL_CONN_ACCEPTED);
		if (e->conn != c && c->active) {
			udapl_conn_close(c);	/* the peer's request was accepted meanwhile */
		} else if (!good) {
			udapl_endpoint_fail(e, "the peer has other sizes or another version");
			udapl_conn_close(c);
		} else if (c->active) {
			udapl_conn_set_established(c);
			udapl_control(c, UDAPL_CREDITS, NULL, 0);
		} else if (c->received_any) {
			udapl_conn_set_established(c);
		}
	}
	udapl_mutex_unlock(&e->lock);
	udapl_return_credits(c);	/* credits of messages that arrived before the event */
	udapl_push(e);
}

/* Why an attempt to connect failed, for the user. */
static const char *cause_of(DAT_EVENT_NUMBER event)
{
	switch (event) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		return "the peer refuses the connection";
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return "it does not answer in time";
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return "its address is unreachable";
	default:
		return "nothing listens there";
	}
}

/* Called with e->lock held. */
static void fail_attempt(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	assert_held(&c->endpoint->lock);
	udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	if (c->endpoint->conn == c)
		udapl_endpoint_retry_or_fail(c->endpoint, cause_of(event));
}

/* Called with e->lock held. The endpoint connects again when something is to be sent. */
static void leave_conn(udapl_conn_t *c)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	assert_held(&c->endpoint->lock);
	udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	if (e->conn == c) {
		e->conn = NULL;
		udapl_endpoint_set_state(e, UDAPL_IDLE);
	}
}

static void on_disconnect(udapl_conn_t *c, DAT_EVENT_NUMBER event)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	udapl_mutex_lock(&e->lock);
	if (c->state == UDAPL_CONN_CONNECTING) {
		fail_attempt(c, event);
	} else if (c->state == UDAPL_CONN_CLOSING) {
		leave_conn(c);
	} else if (udapl_conn_is_established(c)) {
		udapl_conn_set_state(c, UDAPL_CONN_DISCONNECTED);
		c->break_deadline = udapl_now() + (event == DAT_CONNECTION_EVENT_DISCONNECTED
							   ? UDAPL_DISCONNECTED_AFTER
							   : UDAPL_BROKEN_AFTER);
	}
	udapl_mutex_unlock(&e->lock);
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

/* Decides what a disconnect means. After a close notification it was intended, and flushed requests
 * count as sent. On an accepted connection without a received message nothing was sent, so nothing
 * is lost. Otherwise the connection broke, unless the close notification arrives in time. */
static void resolve_disconnect(udapl_conn_t *c, opal_list_t *sends, opal_list_t *rdmas)
{
	mca_btl_base_endpoint_t *e = c->endpoint;

	udapl_mutex_lock(&e->lock);
	if (c->close_received || c->module->closing) {
		bool was_in_use = e->conn == c;

		leave_conn(c);
		if (was_in_use && udapl_has_waiting(e) && !e->removed && !c->module->closing)
			udapl_connect(e);
		opal_list_join(sends, opal_list_get_end(sends), &e->flushed_sends);
		opal_list_join(rdmas, opal_list_get_end(rdmas), &e->flushed_rdmas);
	} else if (!c->active && !c->received_any) {
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
		if (e->conn == c)
			udapl_endpoint_retry_or_fail(e, "the connection ended as soon as it was made");
	} else if (udapl_now() >= c->break_deadline) {
		udapl_conn_fail_if_in_use(c, "the connection broke");
		udapl_conn_set_state(c, UDAPL_CONN_CLOSED);
	}
	udapl_mutex_unlock(&e->lock);
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
	const char *topic = e->lost ? "connection lost" : "cannot connect";
	char peer[64];

	assert_no_lock_held();
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
	udapl_mutex_lock(&e->lock);
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
	udapl_mutex_unlock(&e->lock);
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
