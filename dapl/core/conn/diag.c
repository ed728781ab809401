/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag.c - formats, hints and rate limits of the lines about failed connections (diag.h). */
#include "common/clock.h"
#include "common/lock.h"
#include "dapl/core/conn/diag.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "dapl/core/base/service.h"

enum {
	LOG_FAILURES = 0x3,	/* bits of DAPL_DBG_TYPE: with neither of them nothing is said */
	TICK_US = 1000000,	/* how late the end of a window may be noticed */
	KEYS = 32,		/* different failures in one window; more are only counted */
};

/* --- text ------------------------------------------------------------------------------ */

struct text {
	char *at;
	size_t length, size;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *t, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(t->at + t->length, t->size - t->length, fmt, args);
	va_end(args);
	t->length += n > 0 ? (size_t)n : 0;
	if (t->length >= t->size)
		t->length = t->size - 1;
}

static unsigned port_of(const struct sockaddr_storage *address)
{
	/* both families have the port at the same place */
	return address->ss_family ? ntohs(((const struct sockaddr_in *)address)->sin_port) : 0;
}

static void add_host(struct text *t, const struct sockaddr_storage *address)
{
	char host[INET6_ADDRSTRLEN] = "?";

	if (address->ss_family == AF_INET)
		inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, host,
			  sizeof host);
	else if (address->ss_family == AF_INET6)
		inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)address)->sin6_addr, host,
			  sizeof host);
	add(t, "%s", host);
}

static void add_address(struct text *t, const struct sockaddr_storage *address)
{
	add_host(t, address);
	if (port_of(address))
		add(t, " port %u", port_of(address));
}

const char *dapl_diag_address(const struct sockaddr_storage *address, char text[DIAG_ADDRESS])
{
	struct text t = { text, 0, DIAG_ADDRESS };

	*text = '\0';
	add_address(&t, address);
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

const char *dapl_diag_step(enum dapl_conn_step step)
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

/* "Connection refused" as a part of a sentence; acronyms stay. */
static void add_errno(struct text *t, int err)
{
	size_t begin = t->length;
	char unknown[64];

	add(t, "%s", strerror_r(err, unknown, sizeof unknown));
	if (isupper((unsigned char)t->at[begin]) && islower((unsigned char)t->at[begin + 1]))
		t->at[begin] = (char)tolower((unsigned char)t->at[begin]);
}

static void add_named(struct text *t, const char *head, const struct name *names, unsigned code)
{
	const char *name = find_name(names, code);

	add(t, "%s%s (%u)", head, name ? name : "code", code);
}

static void add_terminate(struct text *t, const char *head, unsigned code)
{
	const char *name = find_name(terminates, code);

	add(t, "%s%s (%u/%u/%u)", head, name ? name : "code", code >> 12, code >> 8 & 15,
	    code & 255);
}

static void add_code(struct text *t, const struct dapl_conn_cause *cause)
{
	switch (cause->code_kind) {
	case DAPL_CODE_IB_REJECT:
		add_named(t, "rejected: ", ib_rejects, cause->code);
		break;
	case DAPL_CODE_SIDR:
		add_named(t, "rejected: ", sidr_statuses, cause->code);
		break;
	case DAPL_CODE_CM_STATUS:
		add(t, "CM status %d", (int)cause->code);
		break;
	case DAPL_CODE_MPA:
		add(t, "MPA reply flags 0x%02x", cause->code);
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

/* A CM status that is the errno says nothing more. */
static bool code_says_more(const struct dapl_conn_cause *cause)
{
	return cause->code_kind != DAPL_CODE_NONE && cause->code_kind != DAPL_CODE_MPA &&
	       !(cause->code_kind == DAPL_CODE_CM_STATUS && cause->err);
}

static void add_reason(struct text *t, const struct dapl_conn_cause *cause)
{
	const char *between = "";

	if (cause->text) {
		add(t, "%s", cause->text);
		between = ": ";
	}
	if (cause->err) {
		add(t, "%s", between);
		add_errno(t, cause->err);
		between = ": ";
	}
	if (code_says_more(cause)) {
		add(t, "%s", between);
		add_code(t, cause);
	} else if (!*between) {
		add(t, "unknown cause");
	}
}

const char *dapl_diag_reason(const struct dapl_conn_cause *cause, char text[DIAG_TEXT])
{
	struct text t = { text, 0, DIAG_TEXT };

	*text = '\0';
	add_reason(&t, cause);
	return text;
}

/* --- hints ----------------------------------------------------------------------------------- */

static void add_setup_hint(struct text *t, const struct dapl_conn_cause *cause)
{
	unsigned port = port_of(&cause->remote);

	switch (cause->err) {
	case ECONNREFUSED:
		if (cause->step == DAPL_STEP_CONNECT)
			add(t, "nobody listens there");
		break;
	case ETIMEDOUT:
		if (cause->step == DAPL_STEP_CONNECT)
			add(t, "is a firewall dropping port %u?", port);
		else if (cause->step == DAPL_STEP_REPLY)
			add(t, "is the peer's program stopped, or does it not accept?");
		else if (cause->step == DAPL_STEP_RESOLVE_ADDRESS)
			add(t, "does a host on this network have that address?");
		break;
	case EPERM: case EACCES:
		add(t, "is a firewall rejecting port %u?", port);
		break;
	case EHOSTUNREACH:
		add(t, "does a host on this network have that address?");
		break;
	case ENETUNREACH:
		add(t, "this host has no route to that address");
		break;
	case ENODEV:
		if (cause->step == DAPL_STEP_RESOLVE_ADDRESS) {
			add(t, "no RDMA device has address ");
			add_host(t, &cause->local);
		}
		break;
	case EADDRNOTAVAIL:
		add(t, "this host has no longer the address ");
		add_host(t, &cause->local);
		break;
	case EMFILE: case ENFILE:
		add(t, "see ulimit -n");
		break;
	default:
		break;
	}
}

static void add_transfer_hint(struct text *t, const struct dapl_conn_cause *cause)
{
	switch (cause->err) {
	case ECONNRESET: case EPIPE:
		add(t, "did the peer's process end?");
		break;
	case ETIMEDOUT: case EHOSTUNREACH: case ENETUNREACH:
		add(t, "is the peer's host or the network down?");
		break;
	default:
		break;
	}
}

static void add_code_hint(struct text *t, const struct dapl_conn_cause *cause)
{
	bool remote_access = false;

	switch (cause->code_kind) {
	case DAPL_CODE_IB_REJECT:
		if (cause->code == 8)
			add(t, "nobody listens there");
		break;
	case DAPL_CODE_SIDR:
		if (cause->code == 1)
			add(t, "nobody listens there");
		break;
	case DAPL_CODE_MPA:
		if (cause->step == DAPL_STEP_REPLY)
			add(t, "its event queue is full, or it takes no endpoint of this kind");
		break;
	case DAPL_CODE_TERMINATE_RECEIVED:
		remote_access = cause->code >> 8 == 0x01 || cause->code >> 8 == 0x11;
		break;
	case DAPL_CODE_COMPLETION:
		remote_access = cause->code == IBV_WC_REM_ACCESS_ERR;
		if (cause->code == IBV_WC_RETRY_EXC_ERR)
			add(t, "is the peer's host or the network down?");
		else if (cause->code == IBV_WC_RNR_RETRY_EXC_ERR)
			add(t, "the peer has posted no receive");
		break;
	default:
		break;
	}
	if (remote_access)
		add(t, "compare RMR context, range and access rights with the peer's LMR");
}

static void add_hint(struct text *t, const struct dapl_diag *diag)
{
	const struct dapl_conn_cause *cause = &diag->cause;
	size_t begin = t->length, words;

	add(t, " (");
	words = t->length;
	if (diag->what == DIAG_CONNECTION)
		add_transfer_hint(t, cause);
	else
		add_setup_hint(t, cause);
	if (t->length == words)
		add_code_hint(t, cause);
	if (t->length > words)
		add(t, ")");
	else
		t->at[t->length = begin] = '\0';
}

/* --- the line -------------------------------------------------------------------------------- */

/* A peer that connects chooses its port anew each time. */
static void add_peer(struct text *t, const struct dapl_diag *diag, bool for_key)
{
	static const char *const heads[] = {
		[DIAG_CONNECT] = "connect to", [DIAG_ACCEPT] = "accept from",
		[DIAG_CONNECTION] = "connection to",
	};

	add(t, "%s%s ", diag->ud ? "UD " : "", heads[diag->what]);
	if (for_key && diag->what != DIAG_CONNECT)
		add_host(t, &diag->cause.remote);
	else
		add_address(t, &diag->cause.remote);
}

/* The step, where the first words of the line do not say it. */
static void add_step(struct text *t, const struct dapl_diag *diag)
{
	enum dapl_conn_step step = diag->cause.step;

	if ((diag->what == DIAG_CONNECT && step == DAPL_STEP_CONNECT) ||
	    (diag->what == DIAG_ACCEPT && step == DAPL_STEP_ACCEPT))
		return;
	add(t, "%s: ", dapl_diag_step(step));
}

static void add_elapsed(struct text *t, uint64_t ns)
{
	if (!ns)
		return;
	if (ns < 10000000)
		add(t, " after %.1f ms", (double)ns / 1e6);
	else if (ns < 1000000000)
		add(t, " after %.0f ms", (double)ns / 1e6);
	else
		add(t, " after %.1f s", (double)ns / 1e9);
}

const char *dapl_diag_format(const struct dapl_diag *diag, char text[DIAG_TEXT])
{
	struct text t = { text, 0, DIAG_TEXT };

	*text = '\0';
	add_peer(&t, diag, false);
	add(&t, diag->what == DIAG_ACCEPT ? " at " : " from ");
	add_address(&t, &diag->cause.local);
	add(&t, " (%s): ", diag->ia);
	add_step(&t, diag);
	add_reason(&t, &diag->cause);
	add_elapsed(&t, diag->elapsed_ns);
	add_hint(&t, diag);
	return text;
}

enum log_id dapl_diag_id(const struct dapl_diag *diag)
{
	const struct dapl_conn_cause *cause = &diag->cause;
	bool resolving = cause->step == DAPL_STEP_RESOLVE_ADDRESS ||
		cause->step == DAPL_STEP_RESOLVE_ROUTE;

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

/* --- rate limits -------------------------------------------------------------------------------- */

/* What was printed in the last window, by what its repetitions have in common. */
struct key {
	char text[DIAG_TEXT];		/* "": free */
	enum log_id id;
	uint64_t ends_ns;		/* of the window */
	unsigned more;			/* repetitions that were not printed */
};

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_DIAG);	/* guards all that follows */
static struct key keys[KEYS];
static unsigned others;			/* failures that no key was free for */
static struct dapl_timer timer;		/* ends windows */
static bool ticking;			/* it runs */

static void write_line(const struct dapl_diag *diag)
{
	char text[DIAG_TEXT], peer[DIAG_ADDRESS];

	log_report(dapl_diag_id(diag),
		   LOG_FIELDS(.ia = diag->ia, .kind = diag->ep ? "ep" : NULL, .object = diag->ep,
			      .peer = dapl_diag_address(&diag->cause.remote, peer),
			      .err = diag->cause.err, .result = diag->result),
		   "%s", dapl_diag_format(diag, text));
}

static void write_more(enum log_id id, const char *text, unsigned more)
{
	log_report(id, NULL, "%s: %u more like this", text, more);
}

/* Lock held. A key without repetitions in its window is free again. */
static void end_window(struct key *key, uint64_t now)
{
	if (key->more) {
		write_more(key->id, key->text, key->more);
		key->more = 0;
		key->ends_ns = now + DIAG_WINDOW_S * 1000000000ull;
	} else {
		key->text[0] = '\0';
	}
}

/* Lock held. True: a key is taken still. */
static bool end_windows(uint64_t now)
{
	bool taken = false;

	for (struct key *key = keys; key < keys + KEYS; key++) {
		if (key->text[0] && key->ends_ns <= now)
			end_window(key, now);
		taken |= key->text[0] != '\0';
	}
	if (others)
		write_more(REPORT_CONNECT_FAILED, "other failed connections", others);
	others = 0;
	return taken;
}

static void window_ends(struct dapl_timer *fired)
{
	dapl_mutex_lock(&lock);
	ticking = end_windows(clock_now_ns());
	if (ticking)
		dapl_timer_start(fired, TICK_US, window_ends);
	dapl_mutex_unlock(&lock);
}

/* Lock held. A key whose window is over, with nothing to print, is as good as a free one. */
static struct key *take_key(const char *text, uint64_t now)
{
	struct key *free_key = NULL;

	for (struct key *key = keys; key < keys + KEYS; key++) {
		if (key->text[0] && !strcmp(key->text, text))
			return key;
		if (!key->text[0] || (key->ends_ns <= now && !key->more))
			free_key = key;
	}
	if (free_key) {
		snprintf(free_key->text, sizeof free_key->text, "%s", text);
		free_key->ends_ns = 0;
		free_key->more = 0;
	}
	return free_key;
}

/* Lock held. False: it is only counted. */
static bool may_say(const char *text, enum log_id id)
{
	uint64_t now = clock_now_ns();
	struct key *key = take_key(text, now);

	if (!ticking)
		dapl_timer_start(&timer, TICK_US, window_ends);
	ticking = true;
	if (!key) {
		others++;
		return false;
	}
	key->id = id;
	if (key->more || key->ends_ns > now) {
		key->more++;
		return false;
	}
	key->ends_ns = now + DIAG_WINDOW_S * 1000000000ull;
	return true;
}

void dapl_diag_say(const struct dapl_diag *diag)
{
	char text[DIAG_TEXT];
	struct text t = { text, 0, sizeof text };
	bool say;

	if (!log_on(LOG_FAILURES))
		return;
	*text = '\0';
	add_peer(&t, diag, true);
	add(&t, " (%s): ", diag->ia);
	add_step(&t, diag);
	add_reason(&t, &diag->cause);
	dapl_mutex_lock(&lock);
	say = may_say(text, dapl_diag_id(diag));
	dapl_mutex_unlock(&lock);
	if (say)
		write_line(diag);
}

/* Windows go on: another IA of this process may fail in the same way. */
void dapl_diag_flush(void)
{
	dapl_mutex_lock(&lock);
	for (struct key *key = keys; key < keys + KEYS; key++)
		if (key->more)
			end_window(key, clock_now_ns());
	end_windows(0);
	dapl_mutex_unlock(&lock);
}

void dapl_diag_fork_prepare(void)
{
	dapl_mutex_lock(&lock);
}

void dapl_diag_fork_parent(void)
{
	dapl_mutex_unlock(&lock);
}

/* The child has no timers, and the counts are the parent's to print. */
void dapl_diag_fork_child(void)
{
	memset(&timer, 0, sizeof timer);
	memset(keys, 0, sizeof keys);
	others = 0;
	ticking = false;
	dapl_mutex_unlock(&lock);
}
