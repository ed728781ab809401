/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.c - random DAT calls from several threads, on handles that are live, freed, being freed,
 * or of another kind. Nothing is expected of a call but that it returns, and of all together
 * that no descriptor is left open at the end. Memory errors are for a sanitizer to tell.
 *
 *	calls [--seed N] [--calls N | --seconds N] [--threads N] [--limit SECONDS] [--verbose]
 *
 * --calls counts those of one thread; with --seconds they go on for that time. The seed is printed; it repeats the choices of each
 * thread, though not their interleaving. A thread that is in one call for longer than the limit
 * hangs: the last calls and the stack of each thread are printed. */
#include "life.h"
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>
#include <execinfo.h>
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

enum { MAX_THREADS = 32, IAS = 3, SLOTS = 6, LAST_CALLS = 8, NAMES = 100 };
enum kind { IA, PZ, LMR, RMR, EVD, CNO, EP, PSP, RSP, CSP, CR, SRQ, KINDS };

static unsigned seed, threads = 6, calls = 12000, seconds, limit = 60;
static _Atomic(bool) time_is_up;	/* --seconds have passed */
static bool verbose;

/* Handles that all threads share, by the IA they were made in. A freed one stays until another
 * takes its place. */
static _Atomic(uintptr_t) handles[IAS][KINDS][SLOTS];
static _Atomic(unsigned) quals[IAS][SLOTS];	/* where something listens */
/* What an LMR of the same slot has told. */
static _Atomic(DAT_LMR_CONTEXT) local_context[IAS][SLOTS];
static _Atomic(DAT_RMR_CONTEXT) remote_context[IAS][SLOTS];

/* Messages and RDMA reads are taken from the lower half, which is never written to. What is
 * written goes to cells of the upper half in turn. */
enum { ARENA = 8 << 20, CELL = 64 };
static char arena[ARENA] __attribute__((aligned(4096)));
static _Atomic(unsigned) last_cell;

static struct worker {
	pthread_t thread;
	unsigned number, random;
	_Atomic(unsigned) made, succeeded;
	_Atomic(const char *) name[LAST_CALLS];
	_Atomic(uintptr_t) on[LAST_CALLS];
	struct { const char *name; unsigned made, succeeded; } tally[NAMES];
	_Atomic(double) since;		/* 0: in no call */
	_Atomic(bool) done;
} workers[MAX_THREADS];

/* --- choices ------------------------------------------------------------------------------- */

static unsigned roll(struct worker *w, unsigned n)
{
	return (unsigned)rand_r(&w->random) / 16 % n;
}

static bool one_in(struct worker *w, unsigned n)
{
	return roll(w, n) == 0;
}

/* Half of all calls meet on one object of a kind. */
static unsigned pick_slot(struct worker *w)
{
	return one_in(w, 2) ? 0 : roll(w, SLOTS);
}

/* Now and then a handle of another kind, or none. An IA's handle is none of memory. */
static DAT_HANDLE pick(struct worker *w, unsigned ia, enum kind kind)
{
	if (one_in(w, 60))
		kind = (enum kind)(1 + roll(w, KINDS - 1));
	if (one_in(w, 200))
		return DAT_HANDLE_NULL;
	if (kind == IA)
		return (DAT_HANDLE)handles[ia][IA][0];
	return (DAT_HANDLE)handles[ia][kind][pick_slot(w)];
}

static void keep(struct worker *w, unsigned ia, enum kind kind, const void *handle)
{
	handles[ia][kind][pick_slot(w)] = (uintptr_t)handle;
}

static unsigned pick_ia(struct worker *w)
{
	return one_in(w, 8) ? 1 + roll(w, IAS - 1) : 0;
}

/* Objects must live long enough to meet others. */
static bool may_free(struct worker *w)
{
	return one_in(w, 6);
}

/* A place for a new object: of two, one whose handle is good stays. */
static bool has_place(struct worker *w, unsigned ia, enum kind kind)
{
	DAT_HANDLE_TYPE type;

	return one_in(w, 8) ||
		dat_get_handle_type((DAT_HANDLE)handles[ia][kind][roll(w, SLOTS)], &type) != DAT_SUCCESS;
}

static DAT_TIMEOUT moment(struct worker *w)
{
	return one_in(w, 3) ? 0 : roll(w, 2000);
}

static DAT_COMPLETION_FLAGS post_flags(struct worker *w)
{
	static const int flags[] = { 0, 0, 0, 0, DAT_COMPLETION_SUPPRESS_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG };

	return (DAT_COMPLETION_FLAGS)flags[roll(w, 8)];
}

/* --- one call ------------------------------------------------------------------------------- */

static void begin_call(struct worker *w, const char *name, uintptr_t on)
{
	unsigned at = w->made % LAST_CALLS;

	w->name[at] = name;
	w->on[at] = on;
	w->since = life_now();
}

static void count_call(struct worker *w, const char *name, bool succeeded)
{
	unsigned i = 0;

	while (i < NAMES - 1 && w->tally[i].name && strcmp(w->tally[i].name, name))
		i++;
	w->tally[i].name = name;
	w->tally[i].made++;
	w->tally[i].succeeded += succeeded;
}

static DAT_RETURN end_call(struct worker *w, DAT_RETURN ret)
{
	w->since = 0;
	count_call(w, w->name[w->made % LAST_CALLS], ret == DAT_SUCCESS);
	w->made++;
	w->succeeded += ret == DAT_SUCCESS;
	return ret;
}
/* The first argument is what the call is about. */
#define CALL(function, first, ...) \
	(begin_call(w, #function, (uintptr_t)(first)), end_call(w, function(first, ##__VA_ARGS__)))

static void took_event(struct worker *w, unsigned ia, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT)
		return;
	keep(w, ia, CR, cr);
	if (one_in(w, 4) || CALL(dat_cr_accept, cr, DAT_HANDLE_NULL, 0, NULL) == DAT_SUCCESS)
		return;
	for (int i = 0; i < 8; i++)
		if (CALL(dat_cr_accept, cr, pick(w, ia, EP), 0, NULL) == DAT_SUCCESS)
			return;
}

/* --- calls, by kind --------------------------------------------------------------------------- */

static void call_ia(struct worker *w, unsigned ia)
{
	DAT_IA_HANDLE handle = (DAT_IA_HANDLE)handles[ia][IA][0];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PROVIDER_ATTR provider;
	DAT_LMR_TRIPLET segment = { .virtual_address = (uintptr_t)arena, .segment_length = 64,
		.lmr_context = local_context[ia][roll(w, SLOTS)] };
	DAT_IA_ATTR attr;

	switch (roll(w, 80)) {
	case 0:
		if (CALL(dat_ia_close, handle, one_in(w, 3) ? DAT_CLOSE_GRACEFUL_FLAG :
			 DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS)
			break;
		/* fall through */
	case 1: case 2:
		/* two threads may open at once: what is overwritten is closed */
		if (CALL(dat_ia_query, (DAT_IA_HANDLE)handles[ia][IA][0], NULL, 0, NULL, 0, NULL) ==
		    DAT_SUCCESS)
			break;
		if (CALL(dat_ia_open, (DAT_NAME_PTR)LIFE_IA, 8, &async, &handle) == DAT_SUCCESS) {
			uintptr_t old = atomic_exchange(&handles[ia][IA][0], (uintptr_t)handle);

			CALL(dat_ia_close, (DAT_IA_HANDLE)old, DAT_CLOSE_ABRUPT_FLAG);
			keep(w, ia, EVD, async);
		}
		break;
	case 3:
		if (ia)
			break;
		async = pick(w, roll(w, IAS), EVD);
		if (CALL(dat_ia_open, (DAT_NAME_PTR)LIFE_IA, 8, &async, &handle) == DAT_SUCCESS)
			CALL(dat_ia_close, handle, DAT_CLOSE_GRACEFUL_FLAG);
		break;
	case 4:
		CALL(dat_lmr_sync_rdma_read, handle, &segment, 1);
		break;
	case 5:
		CALL(dat_lmr_sync_rdma_write, handle, &segment, 1);
		break;
	default:
		CALL(dat_ia_query, handle, &async, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
		     &provider);
	}
}

static void call_pz(struct worker *w, unsigned ia)
{
	DAT_PZ_HANDLE pz = pick(w, ia, PZ);
	DAT_PZ_PARAM param;

	switch (roll(w, 3)) {
	case 0:
		if (has_place(w, ia, PZ) && CALL(dat_pz_create, pick(w, ia, IA), &pz) == DAT_SUCCESS)
			keep(w, ia, PZ, pz);
		break;
	case 1:
		if (may_free(w))
			CALL(dat_pz_free, pz);
		break;
	default: CALL(dat_pz_query, pz, DAT_PZ_FIELD_ALL, &param);
	}
}

static void make_lmr(struct worker *w, unsigned ia)
{
	DAT_REGION_DESCRIPTION region = { .for_va = arena };
	unsigned slot = pick_slot(w);
	DAT_MEM_TYPE type = DAT_MEM_TYPE_VIRTUAL;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE lmr;

	if (one_in(w, 5)) {
		type = DAT_MEM_TYPE_LMR;
		region.for_lmr_handle = pick(w, ia, LMR);
	}
	if (!has_place(w, ia, LMR) ||
	    CALL(dat_lmr_create, pick(w, ia, IA), type, region, ARENA, pick(w, ia, PZ),
		 DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr, &local, &remote, NULL, NULL) !=
	    DAT_SUCCESS)
		return;
	local_context[ia][slot] = local;
	remote_context[ia][slot] = remote;
	handles[ia][LMR][slot] = (uintptr_t)lmr;
}

static void call_lmr(struct worker *w, unsigned ia)
{
	DAT_LMR_PARAM param;

	switch (roll(w, 4)) {
	case 0: case 1:	make_lmr(w, ia); break;
	case 2:
		if (may_free(w))
			CALL(dat_lmr_free, pick(w, ia, LMR));
		break;
	default: CALL(dat_lmr_query, pick(w, ia, LMR), DAT_LMR_FIELD_ALL, &param);
	}
}

static void call_rmr(struct worker *w, unsigned ia)
{
	DAT_LMR_TRIPLET range = { .virtual_address = (uintptr_t)arena, .segment_length = ARENA };
	DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	unsigned slot = roll(w, SLOTS);
	DAT_RMR_CONTEXT context;
	DAT_RMR_HANDLE rmr = pick(w, ia, RMR);
	DAT_RMR_PARAM param;

	switch (roll(w, 6)) {
	case 0:
		if (CALL(dat_rmr_create, pick(w, ia, PZ), &rmr) == DAT_SUCCESS)
			keep(w, ia, RMR, rmr);
		break;
	case 1:
		if (CALL(dat_rmr_create_for_ep, pick(w, ia, PZ), &rmr) == DAT_SUCCESS)
			keep(w, ia, RMR, rmr);
		break;
	case 2:	CALL(dat_rmr_free, rmr); break;
	case 3:	CALL(dat_rmr_query, rmr, DAT_RMR_FIELD_ALL, &param); break;
	default:
		range.lmr_context = local_context[ia][slot];
		if (one_in(w, 4))
			range.segment_length = 0;
		CALL(dat_rmr_bind, rmr, (DAT_LMR_HANDLE)handles[ia][LMR][slot], &range,
		     DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
		     DAT_VA_TYPE_VA, pick(w, ia, EP), cookie, post_flags(w), &context);
	}
}

static DAT_EVD_FLAGS evd_flags(struct worker *w)
{
	static const int flags[] = { DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG };

	return one_in(w, 4) ? (DAT_EVD_FLAGS)flags[roll(w, 5)] :
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_CONNECTION_FLAG |
		DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG;
}

static void call_evd(struct worker *w, unsigned ia)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd = pick(w, ia, EVD);
	DAT_EVD_PARAM param;
	DAT_COUNT more;

	switch (roll(w, 20)) {
	case 0: case 1: case 2:
		if (has_place(w, ia, EVD) &&
		    CALL(dat_evd_create, pick(w, ia, IA), 1 + roll(w, 64),
			 one_in(w, 2) ? pick(w, ia, CNO) : DAT_HANDLE_NULL, evd_flags(w), &evd) ==
		    DAT_SUCCESS)
			keep(w, ia, EVD, evd);
		break;
	case 3:
		if (may_free(w))
			CALL(dat_evd_free, evd);
		break;
	case 4:	CALL(dat_evd_query, evd, DAT_EVD_FIELD_ALL, &param); break;
	case 5: case 6:
		CALL(dat_evd_modify_cno, evd, one_in(w, 3) ? DAT_HANDLE_NULL : pick(w, ia, CNO));
		break;
	case 7:	CALL(dat_evd_enable, evd); break;
	case 8:	CALL(dat_evd_disable, evd); break;
	case 9:	CALL(dat_evd_set_unwaitable, evd); break;
	case 10: case 11: CALL(dat_evd_clear_unwaitable, evd); break;
	case 12: case 13: CALL(dat_evd_post_se, evd, &event); break;
	case 14: CALL(dat_evd_resize, evd, 1 + roll(w, 400)); break;
	case 15: case 16: case 17:
		if (CALL(dat_evd_wait, evd, moment(w), one_in(w, 8) ? 2 : 1, &event, &more) ==
		    DAT_SUCCESS)
			took_event(w, ia, &event);
		break;
	default:
		for (int i = 0; i < 8; i++)
			if (CALL(dat_evd_dequeue, evd, &event) == DAT_SUCCESS)
				took_event(w, ia, &event);
	}
}

/* On the service thread. */
static void agent(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	(void)data;
	if (evd)
		dat_evd_dequeue(evd, &event);
}

static void call_cno(struct worker *w, unsigned ia)
{
	DAT_OS_WAIT_PROXY_AGENT with_agent = { .instance_data = NULL, .proxy_agent_func = agent };
	DAT_CNO_HANDLE cno = pick(w, ia, CNO);
	DAT_EVD_HANDLE evd;
	DAT_CNO_PARAM param;
	DAT_FD fd;

	switch (roll(w, 12)) {
	case 0: case 1:
		if (CALL(dat_cno_create, pick(w, ia, IA), one_in(w, 3) ? with_agent :
			 DAT_OS_WAIT_PROXY_AGENT_NULL, &cno) == DAT_SUCCESS)
			keep(w, ia, CNO, cno);
		break;
	case 2:
		if (CALL(dat_cno_fd_create, pick(w, ia, IA), &fd, &cno) == DAT_SUCCESS)
			keep(w, ia, CNO, cno);
		break;
	case 3:	CALL(dat_cno_query, cno, (DAT_CNO_PARAM_MASK)7, &param); break;
	case 4:
		CALL(dat_cno_modify_agent, cno, one_in(w, 2) ? with_agent :
		     DAT_OS_WAIT_PROXY_AGENT_NULL);
		break;
	case 5:
		if (may_free(w))
			CALL(dat_cno_free, cno);
		break;
	case 6:	CALL(dat_cno_trigger, cno, &evd); break;
	default: CALL(dat_cno_wait, cno, moment(w), &evd);
	}
}

static void make_ep(struct worker *w, unsigned ia)
{
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC, .max_recv_dtos = 8,
		.max_request_dtos = 8, .max_recv_iov = 2, .max_request_iov = 2,
		.max_rdma_read_in = 2, .max_rdma_read_out = 2 };
	DAT_EVD_HANDLE evd = pick(w, ia, EVD);
	bool same = !one_in(w, 3);
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	if (one_in(w, 4))
		ret = CALL(dat_ep_create_with_srq, pick(w, ia, IA), pick(w, ia, PZ), evd,
			   same ? evd : pick(w, ia, EVD), same ? evd : pick(w, ia, EVD),
			   pick(w, ia, SRQ), &attr, &ep);
	else
		ret = CALL(dat_ep_create, pick(w, ia, IA), pick(w, ia, PZ), evd,
			   same ? evd : pick(w, ia, EVD), same ? evd : pick(w, ia, EVD),
			   one_in(w, 2) ? &attr : NULL, &ep);
	if (ret == DAT_SUCCESS)
		keep(w, ia, EP, ep);
}

static struct sockaddr_in loopback = { .sin_family = AF_INET };	/* constant once it is set */

static DAT_IA_ADDRESS_PTR address(void)
{
	return (DAT_IA_ADDRESS_PTR)&loopback;
}

static void modify_ep(struct worker *w, unsigned ia)
{
	DAT_EP_PARAM param = { .pz_handle = pick(w, ia, PZ), .recv_evd_handle = pick(w, ia, EVD),
		.request_evd_handle = pick(w, ia, EVD), .connect_evd_handle = pick(w, ia, EVD) };
	static const int masks[] = { DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE,
		DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_EP_FIELD_CONNECT_EVD_HANDLE,
		DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS };

	param.ep_attr.max_recv_dtos = 1 + roll(w, 20);
	CALL(dat_ep_modify, pick(w, ia, EP),
	     (DAT_EP_PARAM_MASK)(masks[roll(w, 5)] | masks[roll(w, 5)]), &param);
}

static void call_ep(struct worker *w, unsigned ia)
{
	DAT_CONN_QUAL qual = quals[ia][roll(w, SLOTS)];
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_HANDLE ep = pick(w, ia, EP);
	DAT_COUNT allocated, span;
	char data[32] = "random";
	DAT_EP_STATE state;
	DAT_EP_PARAM param;

	switch (roll(w, 20)) {
	case 0: case 1: case 2:
		if (has_place(w, ia, EP))
			make_ep(w, ia);
		break;
	case 3:
		if (may_free(w))
			CALL(dat_ep_free, ep);
		break;
	case 4:	CALL(dat_ep_query, ep, DAT_EP_FIELD_ALL, &param); break;
	case 5:	modify_ep(w, ia); break;
	case 6:	CALL(dat_ep_get_status, ep, &state, &recv_idle, &request_idle); break;
	case 7:	CALL(dat_ep_recv_query, ep, &allocated, &span); break;
	case 8:	CALL(dat_ep_set_watermark, ep, (int)roll(w, 8) - 1, (int)roll(w, 8) - 1); break;
	case 9:	CALL(dat_ep_reset, ep); break;
	case 10:
		if (may_free(w))
			CALL(dat_ep_disconnect, ep, one_in(w, 2) ? DAT_CLOSE_ABRUPT_FLAG :
			     DAT_CLOSE_GRACEFUL_FLAG);
		break;
	case 11: CALL(dat_ep_reset, ep); break;
	case 12:
		CALL(dat_ep_dup_connect, ep, pick(w, ia, EP), 100000, sizeof data, data,
		     DAT_QOS_BEST_EFFORT);
		break;
	default:
		CALL(dat_ep_connect, ep, address(), qual, one_in(w, 4) ? 1000 : 1000000,
		     one_in(w, 2) ? sizeof data : 0, data, DAT_QOS_BEST_EFFORT,
		     DAT_CONNECT_DEFAULT_FLAG);
	}
}

static DAT_LMR_TRIPLET source(unsigned context)
{
	return (DAT_LMR_TRIPLET){ .virtual_address = (uintptr_t)arena, .segment_length = CELL,
		.lmr_context = context };
}

static DAT_LMR_TRIPLET sink(unsigned context)
{
	unsigned cell = atomic_fetch_add(&last_cell, 1) % (ARENA / 2 / CELL);

	return (DAT_LMR_TRIPLET){ .segment_length = CELL, .lmr_context = context,
		.virtual_address = (uintptr_t)arena + ARENA / 2 + cell * CELL };
}

static DAT_RMR_TRIPLET remote(DAT_LMR_TRIPLET local, unsigned context)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = local.virtual_address,
		.segment_length = local.segment_length, .rmr_context = context };
}

static void call_post(struct worker *w, unsigned ia)
{
	unsigned slot = pick_slot(w), length = one_in(w, 10) ? 0 : one_in(w, 10) ? ARENA / 4 : CELL;
	DAT_LMR_TRIPLET from[2], to[2];
	DAT_RMR_TRIPLET there, here;
	DAT_EP_HANDLE ep = pick(w, ia, EP);
	DAT_COMPLETION_FLAGS flags = post_flags(w);
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };
	unsigned n = one_in(w, 4) ? 2 : 1;
	DAT_PVOID mapped;

	for (int i = 0; i < 2; i++) {
		from[i] = source(local_context[ia][slot]);
		to[i] = sink(local_context[ia][slot]);
	}
	from[0].segment_length = length;
	switch (roll(w, 16)) {
	case 0: case 1: case 2: case 3:
		CALL(dat_ep_post_recv, ep, n, to, cookie, one_in(w, 6) ? flags : 0);
		break;
	case 4: case 5: case 6: case 7:
		CALL(dat_ep_post_send, ep, n, from, cookie, flags);
		break;
	case 8: case 9:
		there = remote(to[0], remote_context[ia][slot]);
		CALL(dat_ep_post_rdma_write, ep, 1, &from[1], cookie, &there, flags);
		break;
	case 10:
		there = remote(from[1], remote_context[ia][slot]);
		CALL(dat_ep_post_rdma_read, ep, 1, to, cookie, &there, flags);
		break;
	case 11:
		there = remote(from[1], remote_context[ia][slot]);
		here = remote(to[0], remote_context[ia][slot]);
		CALL(dat_ep_post_rdma_read_to_rmr, ep, &here, cookie, &there, flags);
		break;
	case 12:
		CALL(dat_ep_post_send_with_invalidate, ep, 1, &from[1], cookie, flags, one_in(w, 2),
		     remote_context[ia][slot]);
		break;
	case 13:
		to[0].segment_length = 8;
		there = remote(to[1], remote_context[ia][slot]);
		CALL(dat_ib_post_fetch_and_add, ep, 1, to, cookie, &there, flags);
		break;
	case 14:
		there = remote(to[0], remote_context[ia][slot]);
		CALL(dat_ib_post_rdma_write_immed, ep, 1, &from[1], cookie, &there, 7, flags);
		break;
	default:
		there = remote(to[0], remote_context[ia][slot]);
		if (CALL(dat_map_rmr, ep, &there, &mapped) == DAT_SUCCESS)
			CALL(dat_map_unmap, ep, mapped);
	}
}

static void call_sp(struct worker *w, unsigned ia)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	DAT_COMM comm = { AF_INET, SOCK_STREAM, IPPROTO_TCP };
	DAT_CONN_QUAL qual = 0;
	unsigned slot = roll(w, SLOTS);
	DAT_PSP_PARAM psp_param;
	DAT_RSP_PARAM rsp_param;
	DAT_CSP_PARAM csp_param;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;

	switch (roll(w, 12)) {
	case 0: case 1: case 2:
		if (has_place(w, ia, PSP) &&
		    CALL(dat_psp_create_any, pick(w, ia, IA), &qual, pick(w, ia, EVD),
			 one_in(w, 3) ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG, &psp) ==
		    DAT_SUCCESS) {
			keep(w, ia, PSP, psp);
			quals[ia][slot] = (unsigned)qual;
		}
		break;
	case 3:
		qual = quals[ia][slot];
		if (CALL(dat_psp_create, pick(w, ia, IA), qual, pick(w, ia, EVD),
			 DAT_PSP_CONSUMER_FLAG, &psp) == DAT_SUCCESS)
			keep(w, ia, PSP, psp);
		break;
	case 4:	CALL(dat_psp_query, pick(w, ia, PSP), DAT_PSP_FIELD_ALL, &psp_param); break;
	case 5:
		if (may_free(w))
			CALL(dat_psp_free, pick(w, ia, PSP));
		break;
	case 6: case 7:
		qual = quals[ia][slot];
		if (CALL(dat_rsp_create, pick(w, ia, IA), qual, pick(w, ia, EP), pick(w, ia, EVD),
			 &rsp) == DAT_SUCCESS)
			keep(w, ia, RSP, rsp);
		break;
	case 8:	CALL(dat_rsp_query, pick(w, ia, RSP), DAT_RSP_FIELD_ALL, &rsp_param); break;
	case 9:	CALL(dat_rsp_free, pick(w, ia, RSP)); break;
	case 10:
		any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (CALL(dat_csp_create, pick(w, ia, IA), &comm, (DAT_IA_ADDRESS_PTR)&any,
			 pick(w, ia, EVD), &csp) == DAT_SUCCESS)
			keep(w, ia, CSP, csp);
		break;
	default:
		CALL(dat_csp_query, pick(w, ia, CSP), DAT_CSP_FIELD_ALL, &csp_param);
		CALL(dat_csp_free, pick(w, ia, CSP));
	}
}

static void call_cr(struct worker *w, unsigned ia)
{
	DAT_CR_HANDLE cr = pick(w, ia, CR);
	DAT_CR_PARAM param;

	switch (roll(w, 8)) {
	case 0:	CALL(dat_cr_query, cr, DAT_CR_FIELD_ALL, &param); break;
	case 1:	CALL(dat_cr_reject, cr, 0, NULL); break;
	case 2:	CALL(dat_cr_handoff, cr, quals[ia][roll(w, SLOTS)]); break;
	default:
		CALL(dat_cr_accept, cr, one_in(w, 4) ? DAT_HANDLE_NULL : pick(w, ia, EP), 0, NULL);
	}
}

static void call_srq(struct worker *w, unsigned ia)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 1 + roll(w, 16), .max_recv_iov = 2,
		.low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_LMR_TRIPLET to = sink(local_context[ia][roll(w, SLOTS)]);
	DAT_DTO_COOKIE cookie = { .as_64 = 3 };
	DAT_SRQ_HANDLE srq = pick(w, ia, SRQ);
	DAT_SRQ_PARAM param;

	switch (roll(w, 10)) {
	case 0: case 1:
		if (CALL(dat_srq_create, pick(w, ia, IA), pick(w, ia, PZ), &attr, &srq) == DAT_SUCCESS)
			keep(w, ia, SRQ, srq);
		break;
	case 2:
		if (may_free(w))
			CALL(dat_srq_free, srq);
		break;
	case 3:	CALL(dat_srq_query, srq, DAT_SRQ_FIELD_ALL, &param); break;
	case 4:	CALL(dat_srq_resize, srq, 1 + roll(w, 40)); break;
	case 5:	CALL(dat_srq_set_lw, srq, roll(w, 8)); break;
	default: CALL(dat_srq_post_recv, srq, 1, &to, cookie);
	}
}

static void call_any(struct worker *w, unsigned ia)
{
	DAT_HANDLE handle = pick(w, ia, (enum kind)(1 + roll(w, KINDS - 1)));
	DAT_UINT64 counters[DCNT_IA_ALL_COUNTERS + DCNT_EP_ALL_COUNTERS + DCNT_EVD_ALL_COUNTERS];
	DAT_CONTEXT context = { .as_64 = 4 };
	DAT_HANDLE_TYPE type;

	switch (roll(w, 4)) {
	case 0:	CALL(dat_set_consumer_context, handle, context); break;
	case 1:	CALL(dat_get_consumer_context, handle, &context); break;
	case 2:	CALL(dat_get_handle_type, handle, &type); break;
	default:
		CALL(dat_ib_query_counters, pick(w, ia, one_in(w, 2) ? EP : EVD), 0, counters, 0);
	}
}

/* --- threads ----------------------------------------------------------------------------------- */

static void random_call(struct worker *w)
{
	static const struct {
		unsigned weight;
		void (*make)(struct worker *w, unsigned ia);
	} table[] = {
		{ 2, call_ia }, { 4, call_pz }, { 5, call_lmr }, { 4, call_rmr }, { 20, call_evd },
		{ 8, call_cno }, { 16, call_ep }, { 24, call_post }, { 6, call_sp }, { 8, call_cr },
		{ 5, call_srq }, { 2, call_any },
	};
	unsigned total = 0, at;

	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		total += table[i].weight;
	at = roll(w, total);
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		if (at < table[i].weight) {
			table[i].make(w, pick_ia(w));
			return;
		}
		at -= table[i].weight;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;

	while (seconds ? !time_is_up : w->made < calls)
		random_call(w);
	w->done = true;
	return NULL;
}

/* --- when it goes wrong ------------------------------------------------------------------------- */

static void print_last_calls(void)
{
	for (unsigned i = 0; i < threads; i++) {
		struct worker *w = &workers[i];
		unsigned made = w->made;

		fprintf(stderr, "thread %u, %u calls, %s:", i, made, w->done ? "done" :
			w->since != 0 ? "in the last of" : "after");
		for (unsigned j = made + 1 < LAST_CALLS ? 0 : made + 1 - LAST_CALLS; j <= made; j++)
			if (w->name[j % LAST_CALLS])
				fprintf(stderr, " %s(%p)", w->name[j % LAST_CALLS],
					(void *)w->on[j % LAST_CALLS]);
		fprintf(stderr, "\n");
	}
	fprintf(stderr, "again: --seed %u --calls %u --threads %u\n", seed, calls, threads);
}

static void print_stack(int number)
{
	void *stack[64];
	int n = backtrace(stack, 64);

	(void)number;
	backtrace_symbols_fd(stack, n, 2);
	if (write(2, "\n", 1) < 0)
		_exit(3);
}

static void crashed(int number)
{
	static _Atomic(bool) once;

	signal(number, SIG_DFL);
	if (!atomic_exchange(&once, true)) {
		print_stack(number);
		print_last_calls();
	}
	raise(number);
}

static void hangs(const struct worker *w)
{
	struct timespec moment = { .tv_nsec = 200000000 };

	fprintf(stderr, "thread %u hangs\n", w->number);
	print_last_calls();
	for (unsigned i = 0; i < threads; i++)
		if (!workers[i].done) {
			fprintf(stderr, "thread %u:\n", i);
			pthread_kill(workers[i].thread, SIGUSR2);
			nanosleep(&moment, NULL);	/* for the output's order only */
		}
	_exit(3);
}

/* Until all are done. */
static void watch(void)
{
	struct timespec moment = { .tv_nsec = 20000000 };
	double begun = life_now();
	bool going = true;

	while (going) {
		double now = life_now();

		time_is_up = now - begun >= seconds;
		going = false;
		for (unsigned i = 0; i < threads; i++) {
			double since = workers[i].since;

			going |= !workers[i].done;
			if (since != 0 && now - since > limit)
				hangs(&workers[i]);
		}
		nanosleep(&moment, NULL);
	}
}

static void print_tally(void)
{
	struct worker all = { .number = 0 };

	for (unsigned i = 0; i < threads; i++)
		for (unsigned j = 0; j < NAMES && workers[i].tally[j].name; j++)
			for (unsigned k = 0; k < NAMES; k++)
				if (!all.tally[k].name ||
				    !strcmp(all.tally[k].name, workers[i].tally[j].name)) {
					all.tally[k].name = workers[i].tally[j].name;
					all.tally[k].made += workers[i].tally[j].made;
					all.tally[k].succeeded += workers[i].tally[j].succeeded;
					break;
				}
	for (unsigned k = 0; k < NAMES && all.tally[k].name; k++)
		printf("%-36s %8u %8u\n", all.tally[k].name, all.tally[k].made,
		       all.tally[k].succeeded);
}

static unsigned number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 0);

	if (!*text || *end) {
		fprintf(stderr, "calls: %s is no number\n", text);
		exit(2);
	}
	return (unsigned)n;
}

static void arguments(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' }, { "calls", required_argument, NULL, 'c' },
		{ "seconds", required_argument, NULL, 'S' },
		{ "threads", required_argument, NULL, 't' }, { "limit", required_argument, NULL, 'l' },
		{ "verbose", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 } };
	int c;

	seed = 20;	/* `make check` repeats itself */
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
		switch (c) {
		case 's': seed = number(optarg); break;
		case 'c': calls = number(optarg); break;
		case 'S': seconds = number(optarg); break;
		case 't': threads = number(optarg); break;
		case 'l': limit = number(optarg); break;
		case 'v': verbose = true; break;
		default: exit(2);
		}
	if (!threads || threads > MAX_THREADS) {
		fprintf(stderr, "calls: 1 to %d threads\n", MAX_THREADS);
		exit(2);
	}
}

static void catch_signals(void)
{
	void *stack[1];

	backtrace(stack, 1);	/* loads what it needs */
	signal(SIGUSR2, print_stack);
	signal(SIGABRT, crashed);
	if (!SANITIZED) {
		signal(SIGSEGV, crashed);
		signal(SIGBUS, crashed);
	}
}

int main(int argc, char **argv)
{
	unsigned made = 0, succeeded = 0;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE anchor;
	int descriptors;

	setvbuf(stdout, NULL, _IOLBF, 0);
	arguments(argc, argv);
	if (seconds)
		printf("seed %u, %u threads, %u seconds\n", seed, threads, seconds);
	else
		printf("seed %u, %u threads, %u calls each\n", seed, threads, calls);
	catch_signals();
	loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	life_entry(LIFE_IA, "libdaplsoft.so.2", "lo 0");
	setenv("DAPL_DBG_TYPE", "0", 1);	/* what random calls break is no news */
	/* Calls that are in progress when the last IA closes: dapl(7). */
	if (dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &anchor) != DAT_SUCCESS) {
		fprintf(stderr, "calls: cannot open " LIFE_IA "\n");
		return 1;
	}
	descriptors = open_descriptors();
	for (unsigned i = 0; i < IAS; i++) {
		DAT_EVD_HANDLE none = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		if (dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &none, &ia) == DAT_SUCCESS)
			handles[i][IA][0] = (uintptr_t)ia;
	}
	for (unsigned i = 0; i < threads; i++) {
		workers[i].number = i;
		workers[i].random = seed * 31 + i;
		pthread_create(&workers[i].thread, NULL, work, &workers[i]);
	}
	watch();
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		made += workers[i].made;
		succeeded += workers[i].succeeded;
	}
	for (unsigned i = 0; i < IAS; i++)
		dat_ia_close((DAT_IA_HANDLE)handles[i][IA][0], DAT_CLOSE_ABRUPT_FLAG);
	if (verbose)
		print_tally();
	printf("%u calls, %u of them succeeded\n", made, succeeded);
	/* connections that were abandoned end in the background */
	for (int i = 0; i < 10000 && open_descriptors() != descriptors; i++)
		usleep(1000);
	if (open_descriptors() != descriptors) {
		printf("%d descriptors are open, %d were before: %s\n", open_descriptors(), descriptors,
		       what_is_open());
		return 1;
	}
	return dat_ia_close(anchor, DAT_CLOSE_GRACEFUL_FLAG) == DAT_SUCCESS ? 0 : 1;
}
