/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_objects.c - random calls on IAs, protection zones, memory, EVDs and CNOs, for calls.c. */
#include "calls_worker.h"
#include <sched.h>

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

/* Closes an IA that no slot has any more. Another thread may still have its handle, or had it when it named an
 * earlier IA: then a graceful close fails, since that thread has made an object, and any close fails while that thread
 * tries to close it gracefully. */
static void close_for_sure(struct worker *w, DAT_IA_HANDLE ia)
{
	while (CALL(dat_ia_close, ia, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS &&
	       CALL(dat_ia_query, ia, NULL, 0, NULL, 0, NULL) == DAT_SUCCESS)
		sched_yield();
}

void call_ia(struct worker *w, unsigned ia)
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

			close_for_sure(w, (DAT_IA_HANDLE)old);
			keep(w, ia, EVD, async);
		}
		break;
	case 3:
		if (ia)
			break;
		async = pick(w, roll(w, IAS), EVD);
		if (CALL(dat_ia_open, (DAT_NAME_PTR)LIFE_IA, 8, &async, &handle) == DAT_SUCCESS &&
		    CALL(dat_ia_close, handle, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS)
			close_for_sure(w, handle);
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

void call_pz(struct worker *w, unsigned ia)
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
	    CALL(dat_lmr_create, pick(w, ia, IA), type, region, ARENA, pick(w, ia, PZ), DAT_MEM_PRIV_ALL_FLAG,
		 DAT_VA_TYPE_VA, &lmr, &local, &remote, NULL, NULL) != DAT_SUCCESS)
		return;
	local_context[ia][slot] = local;
	remote_context[ia][slot] = remote;
	handles[ia][LMR][slot] = (uintptr_t)lmr;
}

void call_lmr(struct worker *w, unsigned ia)
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

void call_rmr(struct worker *w, unsigned ia)
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

void call_evd(struct worker *w, unsigned ia)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd = pick(w, ia, EVD);
	DAT_EVD_PARAM param;
	DAT_COUNT more;

	switch (roll(w, 20)) {
	case 0: case 1: case 2:
		if (has_place(w, ia, EVD) &&
		    CALL(dat_evd_create, pick(w, ia, IA), 1 + roll(w, 64),
			 one_in(w, 2) ? pick(w, ia, CNO) : DAT_HANDLE_NULL, evd_flags(w), &evd) == DAT_SUCCESS)
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

void call_cno(struct worker *w, unsigned ia)
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
