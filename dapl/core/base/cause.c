/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cause.c - the cause of a failed connection in words: addresses, steps, codes of the transports,
 * errno (cause.h). */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include "common/address.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/text.h"

/* --- addresses and steps -------------------------------------------------------------- */

unsigned dapl_cause_port(const struct sockaddr_storage *address)
{
	return address_port((const struct sockaddr *)address);
}

void dapl_cause_add_host(struct dapl_text *t, const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN];
	const char *host = address_host((const struct sockaddr *)address, text);

	dapl_text_add(t, "%s", host ? host : "?");
}

void dapl_cause_add_address(struct dapl_text *t, const struct sockaddr_storage *address)
{
	dapl_cause_add_host(t, address);
	if (dapl_cause_port(address))
		dapl_text_add(t, " port %u", dapl_cause_port(address));
}

const char *dapl_cause_address(const struct sockaddr_storage *address, char text[DIAG_ADDRESS])
{
	struct dapl_text t = { text, 0, DIAG_ADDRESS };

	*text = '\0';
	dapl_cause_add_address(&t, address);
	return text;
}

static const char *const step_names[DAPL_STEPS] = {
	[DAPL_STEP_RESOLVE_ADDRESS] = "resolve address",
	[DAPL_STEP_RESOLVE_ROUTE] = "resolve route",
	[DAPL_STEP_CONNECT] = "connect",
	[DAPL_STEP_REPLY] = "reply",
	[DAPL_STEP_REQUEST] = "request",
	[DAPL_STEP_ACCEPT] = "accept",
	[DAPL_STEP_READY] = "ready to use",
	[DAPL_STEP_TRANSFER] = "transfer",
};

const char *dapl_cause_step(enum dapl_conn_step step)
{
	return (unsigned)step < DAPL_STEPS ? step_names[step] : "?";
}

/* --- codes ------------------------------------------------------------------------------- */

struct name {
	unsigned code;
	const char *text;
};

static const char *find_name(const struct name *names, unsigned code)
{
	while (names->text && names->code != code)
		names++;
	return names->text;
}

/* Reasons of an InfiniBand REJ (InfiniBand architecture, 12.6.7.2). */
static const struct name ib_rejects[] = {
	{ 1, "no queue pair" }, { 2, "no end-to-end context" }, { 3, "no resources" },
	{ 4, "time-out" }, { 5, "unsupported request" }, { 6, "invalid communication ID" },
	{ 7, "invalid communication instance" }, { 8, "invalid service ID" },
	{ 9, "invalid transport service type" }, { 10, "stale connection" },
	{ 11, "the connection does not exist" }, { 12, "primary GID rejected" },
	{ 13, "primary LID rejected" }, { 14, "invalid primary SL" },
	{ 15, "invalid primary traffic class" }, { 16, "invalid primary hop limit" },
	{ 17, "invalid primary packet rate" }, { 24, "port and CM redirection" },
	{ 25, "port redirection" }, { 26, "invalid path MTU" },
	{ 27, "insufficient responder resources" }, { 28, "rejected by the peer's program" },
	{ 29, "RNR retry count rejected" }, { 31, "invalid class version" },
	{ 35, "vendor option not supported" }, { 0, NULL },
};

static const struct name sidr_statuses[] = {
	{ 1, "service ID not supported" }, { 2, "rejected by the peer's program" },
	{ 3, "no queue pair" }, { 4, "redirected" }, { 5, "unsupported version" }, { 0, NULL },
};

#define TERM(layer, type, code) ((layer) << 12 | (type) << 8 | (code))

/* Terminate: RFC 5040 4.8, RFC 5041 8, RFC 5044 8, RFC 6581 8. */
static const struct name terminates[] = {
	{ TERM(0, 0, 0), "local catastrophic error" },
	{ TERM(0, 1, 0), "remote access: invalid STag" },
	{ TERM(0, 1, 1), "remote access: out of range" },
	{ TERM(0, 1, 2), "remote access: no such right" },
	{ TERM(0, 1, 3), "remote access: STag of another stream" },
	{ TERM(0, 1, 4), "remote access: address wraps" },
	{ TERM(0, 1, 9), "STag cannot be invalidated" },
	{ TERM(0, 2, 5), "invalid RDMAP version" },
	{ TERM(0, 2, 6), "unexpected opcode" },
	{ TERM(0, 2, 7), "catastrophic error of the stream" },
	{ TERM(0, 2, 8), "catastrophic error of the device" },
	{ TERM(0, 2, 9), "STag cannot be invalidated" },
	{ TERM(0, 2, 0xff), "unspecified error" },
	{ TERM(1, 1, 0), "remote access: invalid STag" },
	{ TERM(1, 1, 1), "remote access: out of range" },
	{ TERM(1, 1, 2), "remote access: STag of another stream" },
	{ TERM(1, 1, 3), "remote access: address wraps" },
	{ TERM(1, 1, 4), "invalid DDP version" },
	{ TERM(1, 2, 1), "invalid queue number" },
	{ TERM(1, 2, 2), "no receive is posted" },
	{ TERM(1, 2, 3), "message number out of range" },
	{ TERM(1, 2, 4), "invalid message offset" },
	{ TERM(1, 2, 5), "message too long for its receive" },
	{ TERM(1, 2, 6), "invalid DDP version" },
	{ TERM(2, 0, 1), "TCP connection lost" },
	{ TERM(2, 0, 2), "CRC error" },
	{ TERM(2, 0, 3), "malformed frame" },
	{ TERM(2, 0, 4), "invalid MPA request or reply" },
	{ TERM(2, 0, 6), "too few RDMA reads agreed" },
	{ 0, NULL },
};

static const struct name completions[] = {
	{ IBV_WC_LOC_LEN_ERR, "message too long for its receive" },
	{ IBV_WC_LOC_QP_OP_ERR, "local queue pair error" },
	{ IBV_WC_LOC_EEC_OP_ERR, "local end-to-end context error" },
	{ IBV_WC_LOC_PROT_ERR, "local protection error" },
	{ IBV_WC_WR_FLUSH_ERR, "flushed" },
	{ IBV_WC_MW_BIND_ERR, "memory window bind error" },
	{ IBV_WC_BAD_RESP_ERR, "bad response" },
	{ IBV_WC_LOC_ACCESS_ERR, "local access error" },
	{ IBV_WC_REM_INV_REQ_ERR, "remote invalid request" },
	{ IBV_WC_REM_ACCESS_ERR, "remote access error" },
	{ IBV_WC_REM_OP_ERR, "remote operation error" },
	{ IBV_WC_RETRY_EXC_ERR, "transport retries exhausted" },
	{ IBV_WC_RNR_RETRY_EXC_ERR, "receiver-not-ready retries exhausted" },
	{ IBV_WC_REM_ABORT_ERR, "aborted by the peer" },
	{ IBV_WC_FATAL_ERR, "fatal device error" },
	{ IBV_WC_RESP_TIMEOUT_ERR, "response time-out" },
	{ IBV_WC_GENERAL_ERR, "general transport error" },
	{ 0, NULL },
};

static const struct name async_events[] = {
	{ IBV_EVENT_QP_FATAL, "the queue pair failed" },
	{ IBV_EVENT_QP_REQ_ERR, "invalid request from the peer" },
	{ IBV_EVENT_QP_ACCESS_ERR, "the peer's RDMA access was refused" },
	{ IBV_EVENT_PATH_MIG_ERR, "path migration failed" },
	{ 0, NULL },
};

/* Adds the text of an errno as a part of a sentence: "connection refused". Acronyms keep their capitals. */
static void add_errno(struct dapl_text *t, int err)
{
	size_t begin = t->length;
	char unknown[64];

	dapl_text_add(t, "%s", strerror_r(err, unknown, sizeof unknown));
	if (isupper((unsigned char)t->at[begin]) && islower((unsigned char)t->at[begin + 1]))
		t->at[begin] = (char)tolower((unsigned char)t->at[begin]);
}

static void add_named(struct dapl_text *t, const char *head, const struct name *names, unsigned code)
{
	const char *name = find_name(names, code);

	dapl_text_add(t, "%s%s (%u)", head, name ? name : "code", code);
}

static void add_terminate(struct dapl_text *t, const char *head, unsigned code)
{
	const char *name = find_name(terminates, code);

	dapl_text_add(t, "%s%s (%u/%u/%u)", head, name ? name : "code", code >> 12, code >> 8 & 15, code & 255);
}

static void add_code(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	switch (cause->code_kind) {
	case DAPL_CODE_IB_REJECT:
		add_named(t, "rejected: ", ib_rejects, cause->code);
		break;
	case DAPL_CODE_SIDR:
		add_named(t, "rejected: ", sidr_statuses, cause->code);
		break;
	case DAPL_CODE_CM_STATUS:
		dapl_text_add(t, "CM status %d", (int)cause->code);
		break;
	case DAPL_CODE_TERMINATE_SENT:
		add_terminate(t, "Terminate sent: ", cause->code);
		break;
	case DAPL_CODE_TERMINATE_RECEIVED:
		add_terminate(t, "Terminate received: ", cause->code);
		break;
	case DAPL_CODE_COMPLETION:
		add_named(t, "", completions, cause->code);
		break;
	case DAPL_CODE_ASYNC:
		add_named(t, "", async_events, cause->code);
		break;
	default:
		break;
	}
}

/* False if the code adds nothing to the text and the errno: a CM status is an errno itself. */
static bool code_says_more(const struct dapl_conn_cause *cause)
{
	return cause->code_kind != DAPL_CODE_NONE && cause->code_kind != DAPL_CODE_MPA &&
	       !(cause->code_kind == DAPL_CODE_CM_STATUS && cause->err);
}

void dapl_cause_add_reason(struct dapl_text *t, const struct dapl_conn_cause *cause)
{
	const char *between = "";

	if (cause->text) {
		dapl_text_add(t, "%s", cause->text);
		between = ": ";
	}
	if (cause->err) {
		dapl_text_add(t, "%s", between);
		add_errno(t, cause->err);
		between = ": ";
	}
	if (code_says_more(cause)) {
		dapl_text_add(t, "%s", between);
		add_code(t, cause);
	} else if (!*between) {
		dapl_text_add(t, "unknown cause");
	}
}

const char *dapl_cause_reason(const struct dapl_conn_cause *cause, char text[DIAG_TEXT])
{
	struct dapl_text t = { text, 0, DIAG_TEXT };

	*text = '\0';
	dapl_cause_add_reason(&t, cause);
	return text;
}
