/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag.c - a failed connection as a line of text: what was attempted, the cause, a hint (diag.h). */
#include <errno.h>
#include <net/if.h>
#include "common/address.h"
#include "common/local_addresses.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/diag.h"
#include "dapl/core/base/text.h"

/* --- hints ----------------------------------------------------------------------------------- */

/* True if the IA's address is one of loopback and the peer's is not: whatever the errno is, that is the cause, since
 * the kernel lets nothing of loopback out. */
static bool is_beyond_loopback(const struct dapl_conn_cause *cause)
{
	return address_is_loopback((const struct sockaddr *)&cause->local) &&
	       !address_is_loopback((const struct sockaddr *)&cause->remote) &&
	       (cause->err == EINVAL || cause->err == ENETUNREACH || cause->err == EHOSTUNREACH);
}

static void add_loopback_hint(struct dapl_text *t, const struct dapl_diag *diag)
{
	char netdev[IF_NAMESIZE];

	dapl_text_add(t, "%s is on the loopback interface, which reaches this host only", diag->ia);
	if (local_route_netdev((const struct sockaddr *)&diag->cause.remote, netdev))
		dapl_text_add(t, "; ofa-v2-soft-%s, an entry that \"include auto\" makes, reaches others", netdev);
}

static void add_address_hint(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	const char *why = local_address_why((const struct sockaddr *)&cause->local);

	dapl_cause_add_host(t, &cause->local);
	dapl_text_add(t, " %s", why ? why : "is not usable");
}

static void add_setup_hint(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	unsigned port = dapl_cause_port(&cause->remote);

	switch (cause->err) {
	case ECONNREFUSED:
		if (cause->step == DAPL_STEP_CONNECT)
			dapl_text_add(t, "nobody listens there");
		break;
	case ETIMEDOUT:
		if (cause->step == DAPL_STEP_CONNECT)
			dapl_text_add(t, "is a firewall dropping port %u?", port);
		else if (cause->step == DAPL_STEP_REPLY)
			dapl_text_add(t, "is the peer's program stopped, or does it not accept?");
		else if (cause->step == DAPL_STEP_RESOLVE_ADDRESS)
			dapl_text_add(t, "does a host on this network have that address?");
		break;
	case EPERM: case EACCES:
		dapl_text_add(t, "is a firewall rejecting port %u?", port);
		break;
	case EHOSTUNREACH:
		dapl_text_add(t, "does a host on this network have that address?");
		break;
	case ENETUNREACH:
		dapl_text_add(t, "this host has no route to that address");
		break;
	case ENODEV:
		if (cause->step == DAPL_STEP_RESOLVE_ADDRESS) {
			dapl_text_add(t, "no RDMA device has address ");
			dapl_cause_add_host(t, &cause->local);
		}
		break;
	case EADDRNOTAVAIL:
		add_address_hint(t, cause);
		break;
	case EMFILE: case ENFILE:
		dapl_text_add(t, "see ulimit -n");
		break;
	default:
		break;
	}
}

static void add_transfer_hint(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	switch (cause->err) {
	case ECONNRESET: case EPIPE:
		dapl_text_add(t, "did the peer's process end?");
		break;
	case ETIMEDOUT: case EHOSTUNREACH: case ENETUNREACH:
		dapl_text_add(t, "is the peer's host or the network down?");
		break;
	default:
		break;
	}
}

static void add_code_hint(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	bool remote_access = false;

	switch (cause->code_kind) {
	case DAPL_CODE_IB_REJECT:
		if (cause->code == 8)
			dapl_text_add(t, "nobody listens there");
		break;
	case DAPL_CODE_SIDR:
		if (cause->code == 1)
			dapl_text_add(t, "nobody listens there");
		break;
	case DAPL_CODE_MPA:
		if (cause->step == DAPL_STEP_REPLY)
			dapl_text_add(t, "its event queue is full, or it takes no endpoint of this kind");
		break;
	case DAPL_CODE_TERMINATE_RECEIVED:
		remote_access = cause->code >> 8 == 0x01 || cause->code >> 8 == 0x11;
		break;
	case DAPL_CODE_COMPLETION:
		remote_access = cause->code == IBV_WC_REM_ACCESS_ERR;
		if (cause->code == IBV_WC_RETRY_EXC_ERR)
			dapl_text_add(t, "is the peer's host or the network down?");
		else if (cause->code == IBV_WC_RNR_RETRY_EXC_ERR)
			dapl_text_add(t, "the peer has posted no receive");
		break;
	default:
		break;
	}
	if (remote_access)
		dapl_text_add(t, "compare RMR context, range and access rights with the peer's LMR");
}

static void add_hint(struct dapl_text *t, const struct dapl_diag *diag)
{
	const struct dapl_conn_cause *cause = &diag->cause;
	size_t begin = t->length, words;

	dapl_text_add(t, " (");
	words = t->length;
	if (diag->what == DIAG_CONNECTION)
		add_transfer_hint(t, cause);
	else if (is_beyond_loopback(cause))
		add_loopback_hint(t, diag);
	else
		add_setup_hint(t, cause);
	if (t->length == words)
		add_code_hint(t, cause);
	if (t->length > words)
		dapl_text_add(t, ")");
	else
		t->at[t->length = begin] = '\0';
}

/* --- the line -------------------------------------------------------------------------------- */

/* The key lacks the port of a peer that connects, because the peer chooses another port each time. */
static void add_peer(struct dapl_text *t, const struct dapl_diag *diag, bool for_key)
{
	static const char *const heads[] = {
		[DIAG_CONNECT] = "connect to", [DIAG_ACCEPT] = "accept from",
		[DIAG_CONNECTION] = "connection to",
	};

	dapl_text_add(t, "%s%s ", diag->ud ? "UD " : "", heads[diag->what]);
	if (for_key && diag->what != DIAG_CONNECT)
		dapl_cause_add_host(t, &diag->cause.remote);
	else
		dapl_cause_add_address(t, &diag->cause.remote);
}

/* Adds the step, unless the first words of the line name it. */
static void add_step(struct dapl_text *t, const struct dapl_diag *diag)
{
	enum dapl_conn_step step = diag->cause.step;

	if ((diag->what == DIAG_CONNECT && step == DAPL_STEP_CONNECT) ||
	    (diag->what == DIAG_ACCEPT && step == DAPL_STEP_ACCEPT))
		return;
	dapl_text_add(t, "%s: ", dapl_cause_step(step));
}

static void add_elapsed(struct dapl_text *t, uint64_t ns)
{
	if (!ns)
		return;
	if (ns < 10000000)
		dapl_text_add(t, " after %.1f ms", (double)ns / 1e6);
	else if (ns < 1000000000)
		dapl_text_add(t, " after %.0f ms", (double)ns / 1e6);
	else
		dapl_text_add(t, " after %.1f s", (double)ns / 1e9);
}

const char *dapl_diag_format(const struct dapl_diag *diag, char text[DIAG_TEXT])
{
	struct dapl_text t = { text, 0, DIAG_TEXT };

	*text = '\0';
	add_peer(&t, diag, false);
	dapl_text_add(&t, diag->what == DIAG_ACCEPT ? " at " : " from ");
	dapl_cause_add_address(&t, &diag->cause.local);
	dapl_text_add(&t, " (%s): ", diag->ia);
	add_step(&t, diag);
	dapl_cause_add_reason(&t, &diag->cause);
	add_elapsed(&t, diag->elapsed_ns);
	add_hint(&t, diag);
	return text;
}

enum log_id dapl_diag_id(const struct dapl_diag *diag)
{
	const struct dapl_conn_cause *cause = &diag->cause;
	bool resolving = cause->step == DAPL_STEP_RESOLVE_ADDRESS || cause->step == DAPL_STEP_RESOLVE_ROUTE;

	if (cause->err == EMFILE || cause->err == ENFILE)
		return REPORT_NO_DESCRIPTORS;
	if (cause->err == ENOMEM)
		return REPORT_NO_MEMORY;
	if (diag->what == DIAG_CONNECTION)
		return cause->err == ETIMEDOUT ? REPORT_PEER_LOST : REPORT_CONNECTION_BROKEN;
	if (diag->what == DIAG_ACCEPT)
		return REPORT_CONNECT_FAILED;
	if (resolving || cause->err == ENETUNREACH || cause->err == EHOSTUNREACH)
		return REPORT_NO_ROUTE;
	if (cause->err == ETIMEDOUT)
		return REPORT_TIMED_OUT;
	if (cause->err == ECONNREFUSED || cause->code_kind == DAPL_CODE_IB_REJECT ||
	    cause->code_kind == DAPL_CODE_SIDR || cause->code_kind == DAPL_CODE_MPA)
		return REPORT_REFUSED;
	return REPORT_CONNECT_FAILED;
}

const char *dapl_diag_key(const struct dapl_diag *diag, char text[DIAG_TEXT])
{
	struct dapl_text t = { text, 0, DIAG_TEXT };

	*text = '\0';
	add_peer(&t, diag, true);
	dapl_text_add(&t, " (%s): ", diag->ia);
	add_step(&t, diag);
	dapl_cause_add_reason(&t, &diag->cause);
	return text;
}

void dapl_diag_unknown(const char *device, const char *what, int number, const char *done)
{
	log_report(REPORT_UNKNOWN_NUMBER, NULL, "%s%s%s %d is not known to this provider, and is %s",
		   device ? device : "", device ? ": " : "", what, number, done);
}
