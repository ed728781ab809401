/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_endpoints.c - random calls on endpoints, service points, connection requests and SRQs, and on
 * objects of any kind, for calls.c. */
#include "calls_worker.h"
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>
#include <netinet/in.h>
#include <sys/socket.h>

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

static struct sockaddr_in loopback(void)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
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

void call_ep(struct worker *w, unsigned ia)
{
	DAT_CONN_QUAL qual = quals[ia][roll(w, SLOTS)];
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_HANDLE ep = pick(w, ia, EP);
	DAT_COUNT allocated, span;
	struct sockaddr_in address = loopback();
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
		CALL(dat_ep_connect, ep, (DAT_IA_ADDRESS_PTR)&address, qual, one_in(w, 4) ? 1000 : 1000000,
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
	static _Atomic(unsigned) last_cell;
	unsigned cell = atomic_fetch_add(&last_cell, 1) % (ARENA / 2 / CELL);

	return (DAT_LMR_TRIPLET){ .segment_length = CELL, .lmr_context = context,
		.virtual_address = (uintptr_t)arena + ARENA / 2 + cell * CELL };
}

static DAT_RMR_TRIPLET remote(DAT_LMR_TRIPLET local, unsigned context)
{
	return (DAT_RMR_TRIPLET){ .virtual_address = local.virtual_address,
		.segment_length = local.segment_length, .rmr_context = context };
}

void call_post(struct worker *w, unsigned ia)
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

void call_sp(struct worker *w, unsigned ia)
{
	struct sockaddr_in address = loopback();
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
			 one_in(w, 3) ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG, &psp) == DAT_SUCCESS) {
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
		if (CALL(dat_csp_create, pick(w, ia, IA), &comm, (DAT_IA_ADDRESS_PTR)&address,
			 pick(w, ia, EVD), &csp) == DAT_SUCCESS)
			keep(w, ia, CSP, csp);
		break;
	default:
		CALL(dat_csp_query, pick(w, ia, CSP), DAT_CSP_FIELD_ALL, &csp_param);
		CALL(dat_csp_free, pick(w, ia, CSP));
	}
}

void call_cr(struct worker *w, unsigned ia)
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

void call_srq(struct worker *w, unsigned ia)
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

void call_any(struct worker *w, unsigned ia)
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
