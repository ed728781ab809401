/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failure.c - keeps, traces and reports the failures of an endpoint (failure.h). base/diag.c makes the text
 * of a line, base/diag_limit.c prints it and limits the rate.
 *
 * Two cases are only traced, because they are no failures of a provider: the peer's program rejects,
 * or it disconnects. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "common/address.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/conn/failure.h"

void dapl_failure_explain(const struct dapl_ep *ep, struct dapl_conn *conn,
			  struct dapl_conn_cause *cause)
{
	assert_held(&ep->lock);
	memset(cause, 0, sizeof *cause);
	cause->step = ep->state == DAT_EP_STATE_CONNECTED ? DAPL_STEP_TRANSFER : DAPL_STEP_CONNECT;
	if (conn)
		dapl_device_ops.explain(conn, cause);
	if (!cause->remote.ss_family)
		cause->remote = ep->remote;
	if (!cause->local.ss_family)
		cause->local = ep->local.ss_family ? ep->local : ep->obj.ia->attr.address;
}

static bool is_unknown(const struct dapl_conn_cause *cause)
{
	return !cause->err && cause->code_kind == DAPL_CODE_NONE && !cause->text;
}

void dapl_failure_code(struct dapl_conn_cause *cause, enum dapl_code_kind kind, unsigned code,
		       const char *text)
{
	if (!is_unknown(cause))
		return;
	cause->code_kind = kind;
	cause->code = code;
	cause->text = text;
}

void dapl_failure_time_limit(struct dapl_conn_cause *cause)
{
	if (!is_unknown(cause))
		return;
	cause->err = ETIMEDOUT;
	cause->text = "no answer within the caller's time limit";
}

/* A lack of descriptors counts as a lack of endpoints, because a connection needs a socket. */
DAT_RETURN dapl_failure_of_connect(const struct dapl_ep *ep, const struct sockaddr *to, int err)
{
	char what[sizeof "connect to " + DIAG_ADDRESS], address[DIAG_ADDRESS];
	struct sockaddr_storage remote = { 0 };

	assert_held(&ep->lock);
	if (err == EMSGSIZE)
		return DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	address_copy(&remote, to);
	snprintf(what, sizeof what, "connect to %s", dapl_cause_address(&remote, address));
	report_no_descriptors(ep->obj.ia->ia_attr.adapter_name, err, what);
	return dapl_status(err, is_out_of_descriptors(err) ? DAT_RESOURCE_TEP
							   : DAT_RESOURCE_MEMORY);
}

void dapl_failure_remote(struct dapl_conn *conn, struct sockaddr_storage *address)
{
	struct dapl_conn_cause cause = { 0 };

	dapl_device_ops.explain(conn, &cause);
	*address = cause.remote;
}

static const char *event_name(DAT_EVENT_NUMBER event)
{
	switch ((int)event) {
#define NAME(number) case number: return #number
	NAME(DAT_CONNECTION_EVENT_PEER_REJECTED);
	NAME(DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	NAME(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	NAME(DAT_CONNECTION_EVENT_BROKEN);
	NAME(DAT_CONNECTION_EVENT_TIMED_OUT);
	NAME(DAT_CONNECTION_EVENT_UNREACHABLE);
	NAME(DAT_IB_UD_CONNECTION_REJECT_EVENT);
	NAME(DAT_IB_UD_CONNECTION_ERROR_EVENT);
#undef NAME
	default: return NULL;
	}
}

/* `line` false: the failure is only traced. */
static void report(struct dapl_ep *ep, struct dapl_diag *diag, DAT_EVENT_NUMBER event, bool line)
{
	char text[DIAG_TEXT];

	diag->ep = ep;
	diag->result = event_name(event);
	ep->failure = (struct dapl_failure){ .event = event, .diag = *diag };
	trace(TRC_LVL_NORMAL, line ? TRC_DAPL_ERROR : TRC_DAPL_EVENT, "ep", ep,
	      dapl_status_ep_state_name(ep->state), "%s", dapl_diag_format(diag, text));
	if (line)
		dapl_diag_say(diag);
}

static enum dapl_diag_what what_of(DAT_EP_STATE before)
{
	return before == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ? DIAG_CONNECT :
	       before == DAT_EP_STATE_COMPLETION_PENDING ? DIAG_ACCEPT : DIAG_CONNECTION;
}

void dapl_failure_report(struct dapl_ep *ep, DAT_EP_STATE before, DAT_EVENT_NUMBER event,
			 const struct dapl_conn_cause *cause)
{
	struct dapl_diag diag = {
		.ia = ep->obj.ia->ia_attr.adapter_name, .what = what_of(before),
		.elapsed_ns = ep->began_ns ? clock_now_ns() - ep->began_ns : 0,
		.cause = *cause,
	};

	assert_held(&ep->lock);
	if (event == DAT_CONNECTION_EVENT_DISCONNECTED)
		return;		/* orderly; ep_state.c traces it */
	report(ep, &diag, event, event != DAT_CONNECTION_EVENT_PEER_REJECTED);
}

void dapl_failure_report_ud(struct dapl_ep *ep, bool active, uint64_t began_ns, bool rejected,
			    const struct dapl_conn_cause *cause)
{
	struct dapl_diag diag = {
		.ia = ep->obj.ia->ia_attr.adapter_name, .ud = true,
		.what = active ? DIAG_CONNECT : DIAG_ACCEPT,
		.elapsed_ns = clock_now_ns() - began_ns, .cause = *cause,
	};

	assert_held(&ep->lock);
	report(ep, &diag, (DAT_EVENT_NUMBER)(rejected ? DAT_IB_UD_CONNECTION_REJECT_EVENT :
					     DAT_IB_UD_CONNECTION_ERROR_EVENT), !rejected);
}

_Static_assert((int)DAT_DIAG_STEP_TRANSFER == (int)DAPL_STEP_TRANSFER &&
	       (int)DAPL_STEP_TRANSFER + 1 == (int)DAPL_STEPS, "the steps are the public ones");
_Static_assert((int)DAT_DIAG_CODE_ASYNC == (int)DAPL_CODE_ASYNC &&
	       (int)DAPL_CODE_ASYNC + 1 == (int)DAPL_CODES, "the kinds are the public ones");
_Static_assert((int)DAT_DIAG_TEXT_MAX == (int)DIAG_TEXT, "a line fits");

/* Called with ep->lock held. */
static void fill(const struct dapl_failure *failure, DAT_LAST_ERROR *error)
{
	const struct dapl_conn_cause *cause = &failure->diag.cause;

	memset(error, 0, sizeof *error);
	if (!failure->event)
		return;
	error->event = failure->event;
	error->step = (DAT_DIAG_STEP)cause->step;
	error->error = cause->err;
	error->code_kind = (DAT_DIAG_CODE_KIND)cause->code_kind;
	error->code = cause->code;
	error->elapsed = failure->diag.elapsed_ns / 1000;
	error->local = cause->local;
	error->remote = cause->remote;
	dapl_diag_format(&failure->diag, error->text);
}

DAT_RETURN dapl_failure_get(struct dapl_ep *ep, DAT_LAST_ERROR *error, DAT_COUNT size)
{
	DAT_LAST_ERROR whole;

	if (!error || size <= 0)
		return BAD_PARAM(2);
	dapl_mutex_lock(&ep->lock);
	fill(&ep->failure, &whole);
	dapl_mutex_unlock(&ep->lock);
	memcpy(error, &whole, (size_t)size < sizeof whole ? (size_t)size : sizeof whole);
	return DAT_SUCCESS;
}
