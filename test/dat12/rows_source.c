/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows_source.c - cases of rows.c: what differs in source between DAT 1.2 and DAT 2.0. */
#include "rows.h"
#include <string.h>

void lmr_create_has_11_arguments(struct pair *p)
{
	DAT_RETURN (*create)(DAT_IA_HANDLE, DAT_MEM_TYPE, DAT_REGION_DESCRIPTION, DAT_VLEN,
		DAT_PZ_HANDLE, DAT_MEM_PRIV_FLAGS, DAT_LMR_HANDLE *, DAT_LMR_CONTEXT *,
		DAT_RMR_CONTEXT *, DAT_VLEN *, DAT_VADDR *) = dat_lmr_create;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	DAT_VADDR address;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN length;

	pair_prepare(p);
	region.for_va = p->memory;
	OK(create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, p->pz, DAT_MEM_PRIV_ALL_FLAG, &lmr, &local, &remote,
		  &length, &address));
	EXPECT(length >= 4096 && address == (DAT_VADDR)(size_t)p->memory);
	OK(dat_lmr_free(lmr));
	/* the position of the argument is that of 1.2: in 2.0 the handle is the 8th */
	FAILS(create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, p->pz, DAT_MEM_PRIV_ALL_FLAG, NULL,
		&local, &remote, &length, &address), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
}

void cr_reject_has_1_argument(struct pair *p)
{
	DAT_RETURN (*reject)(DAT_CR_HANDLE) = dat_cr_reject;
	DAT_EVENT event;
	DAT_EP_HANDLE ep;

	pair_prepare(p);
	OK(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], NULL, &ep));
	OK(dat_ep_connect(ep, p->address, p->qual, WAIT_MAX, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	wait_event(p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	OK(reject(event.event_data.cr_arrival_event_data.cr_handle));
	wait_event(p->conn[0], DAT_CONNECTION_EVENT_PEER_REJECTED, &event);
	EXPECT(event.event_data.connect_event_data.private_data_size == 0);
}

static void wait_bind(DAT_EVD_HANDLE evd, DAT_RMR_HANDLE rmr, DAT_UINT64 cookie)
{
	DAT_EVENT event;

	wait_event(evd, DAT_RMR_BIND_COMPLETION_EVENT, &event);
	EXPECT(event.event_data.rmr_completion_event_data.status == DAT_RMR_BIND_SUCCESS);
	EXPECT(event.event_data.rmr_completion_event_data.rmr_handle == rmr);
	EXPECT(event.event_data.rmr_completion_event_data.user_cookie.as_64 == cookie);
}

void rmr_bind_has_7_arguments(struct pair *p)
{
	DAT_RETURN (*bind)(DAT_RMR_HANDLE, const DAT_LMR_TRIPLET *, DAT_MEM_PRIV_FLAGS,
		DAT_EP_HANDLE, DAT_RMR_COOKIE, DAT_COMPLETION_FLAGS, DAT_RMR_CONTEXT *) =
		dat_rmr_bind;
	DAT_LMR_TRIPLET range, from;
	DAT_RMR_TRIPLET to;
	DAT_RMR_CONTEXT context = 0;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;

	pair_prepare(p);
	pair_connect(p, NULL);
	OK(dat_rmr_create(p->pz, &rmr));
	set_segment(p, &range, 4096, 4096);
	OK(bind(rmr, &range, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, p->ep[1], cookie_of(7), NO_FLAG,
		&context));
	wait_bind(p->request[1], rmr, 7);
	memset(p->memory, 'w', 4096);
	set_segment(p, &from, 0, 4096);
	set_target(p, &to, 4096, 4096);
	to.rmr_context = context;
	OK(dat_ep_post_rdma_write(p->ep[0], 1, &from, cookie_of(8), &to, NO_FLAG));
	wait_completion(p->request[0], 8, 4096);
	EXPECT(!memcmp(p->memory, p->memory + 4096, 4096));

	OK(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	EXPECT(param.ia_handle == p->ia && param.pz_handle == p->pz);
	EXPECT(param.rmr_context == context && param.mem_priv == DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	EXPECT(param.lmr_triplet.segment_length == 4096 && param.lmr_triplet.pad == 0);
	EXPECT(param.lmr_triplet.virtual_address == range.virtual_address);
	EXPECT(param.lmr_triplet.lmr_context == p->lmr_context);

	/* positions of arguments are those of 1.2 */
	FAILS(bind(rmr, NULL, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, p->ep[1], cookie_of(9), NO_FLAG,
		&context), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(bind(rmr, &range, DAT_MEM_PRIV_LOCAL_READ_FLAG, p->ep[1], cookie_of(9), NO_FLAG,
		&context), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	FAILS(bind(rmr, &range, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, p->ep[1], cookie_of(9), NO_FLAG,
		NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);

	/* no LMR has this context */
	range.lmr_context = p->lmr_context + 0x5a5a5a;
	FAILS(bind(rmr, &range, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, p->ep[1], cookie_of(9), NO_FLAG,
		&context), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	/* a length of 0 unbinds, whatever the context */
	range.segment_length = 0;
	OK(bind(rmr, &range, DAT_MEM_PRIV_NONE_FLAG, p->ep[1], cookie_of(10), NO_FLAG, &context));
	wait_bind(p->request[1], rmr, 10);
	/* the context of an LMR that was freed */
	OK(dat_lmr_free(p->lmr));
	set_segment(p, &range, 4096, 4096);
	FAILS(bind(rmr, &range, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, p->ep[1], cookie_of(11), NO_FLAG,
		&context), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
}

/* Every call with a triplet: a length that DAT 2.0 cannot express is refused. */
void lengths_of_4_gib_are_refused(struct pair *p)
{
	static const DAT_VLEN lengths[] = { FOUR_GIB, FOUR_GIB + 64, ~(DAT_VLEN)0 };
	DAT_RETURN (*sync_read)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN) =
		dat_lmr_sync_rdma_read;
	DAT_LMR_TRIPLET good, bad[2];
	DAT_RMR_TRIPLET to, far;
	DAT_RMR_CONTEXT context;
	DAT_SRQ_HANDLE srq;
	DAT_SRQ_ATTR attr;
	DAT_RMR_HANDLE rmr;
	unsigned i;

	pair_prepare(p);
	pair_connect(p, NULL);
	OK(dat_rmr_create(p->pz, &rmr));
	attr.max_recv_dtos = 8;
	attr.max_recv_iov = 2;
	attr.low_watermark = DAT_SRQ_LW_DEFAULT;
	OK(dat_srq_create(p->ia, p->pz, &attr, &srq));
	set_segment(p, &good, 0, 64);
	set_target(p, &to, 4096, 64);
	for (i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		set_segment(p, &bad[0], 0, 64);
		set_segment(p, &bad[1], 64, lengths[i]);
		set_target(p, &far, 4096, lengths[i]);
		FAILS(dat_ep_post_send(p->ep[0], 2, bad, cookie_of(1), NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		FAILS(dat_ep_post_recv(p->ep[0], 2, bad, cookie_of(1), NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		FAILS(dat_srq_post_recv(srq, 2, bad, cookie_of(1)), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_read(p->ep[0], 2, bad, cookie_of(1), &to, NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_write(p->ep[0], 2, bad, cookie_of(1), &to, NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_read(p->ep[0], 1, &good, cookie_of(1), &far, NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG5);
		FAILS(dat_ep_post_rdma_write(p->ep[0], 1, &good, cookie_of(1), &far, NO_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG5);
		FAILS(dat_rmr_bind(rmr, &bad[1], DAT_MEM_PRIV_REMOTE_READ_FLAG, p->ep[0],
			cookie_of(1), NO_FLAG, &context), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		FAILS(sync_read(p->ia, bad, 2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		FAILS(dat_lmr_sync_rdma_write(p->ia, bad, 2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	/* the endpoint still works, and none of those was posted */
	OK(dat_ep_post_rdma_write(p->ep[0], 1, &good, cookie_of(2), &to, NO_FLAG));
	wait_completion(p->request[0], 2, 64);
}

/* Lists up to the limit of the device keep their order; longer ones are refused. */
void long_lists(struct pair *p)
{
	static DAT_LMR_TRIPLET list[1000];
	DAT_IA_ATTR ia_attr;
	DAT_EP_PARAM param;
	DAT_EP_ATTR attr;
	int i, max;

	pair_prepare(p);
	OK(dat_ia_query(p->ia, NULL, DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO, &ia_attr, 0, NULL));
	max = ia_attr.max_iov_segments_per_dto;
	EXPECT(max >= 2 && max < 1000);
	OK(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], NULL, &p->ep[0]));
	OK(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL, &param));
	OK(dat_ep_free(p->ep[0]));
	attr = param.ep_attr;
	attr.max_request_iov = attr.max_recv_iov = max;
	pair_connect(p, &attr);
	for (i = 0; i < MEMORY_BYTES / 2; i++)
		p->memory[i] = (char)(i * 7 + i / 256);
	set_segment(p, &list[0], MEMORY_BYTES / 2, MEMORY_BYTES / 2);
	OK(dat_ep_post_recv(p->ep[1], 1, list, cookie_of(1), NO_FLAG));
	for (i = 0; i < 1000; i++)
		set_segment(p, &list[i], (size_t)(i % max) * 16, 16);
	OK(dat_ep_post_send(p->ep[0], max, list, cookie_of(2), NO_FLAG));
	wait_completion(p->request[0], 2, (DAT_VLEN)max * 16);
	wait_completion(p->recv[1], 1, (DAT_VLEN)max * 16);
	EXPECT(!memcmp(p->memory, p->memory + MEMORY_BYTES / 2, (size_t)max * 16));
	FAILS(dat_ep_post_send(p->ep[0], max + 1, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	FAILS(dat_ep_post_send(p->ep[0], 1000, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_ep_post_recv(p->ep[0], 1000, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_ep_post_send(p->ep[0], -1, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	OK(dat_lmr_sync_rdma_read(p->ia, list, 1000));
	OK(dat_lmr_sync_rdma_write(p->ia, list, 1000));
	/* the last of many pieces is looked at, too */
	list[999].segment_length = FOUR_GIB;
	FAILS(dat_lmr_sync_rdma_write(p->ia, list, 1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

/* Reads into a buffer and posts it behind the read. The empty message in front keeps the read from being executed
 * at once. */
void fence_holds_short_requests_back(struct pair *p)
{
	enum { BUFFER = 0, SOURCE = 4096, SINK = 8192 };
	static const int lengths[] = { 1, 64, 65, 1024, 1025 };
	DAT_LMR_TRIPLET buffer, sink;
	DAT_RMR_TRIPLET from, to;
	int i, write;

	pair_prepare(p);
	pair_connect(p, NULL);
	for (i = 0; i < 10; i++) {
		int length = lengths[i / 2];

		write = i % 2;
		memset(p->memory + BUFFER, 0xee, length);
		memset(p->memory + SOURCE, i + 1, length);
		memset(p->memory + SINK, 0, length);
		set_segment(p, &buffer, BUFFER, length);
		set_segment(p, &sink, SINK, length);
		set_target(p, &from, SOURCE, length);
		set_target(p, &to, SINK, length);
		OK(dat_ep_post_recv(p->ep[1], 0, NULL, cookie_of(1), NO_FLAG));
		OK(dat_ep_post_recv(p->ep[1], write ? 0 : 1, &sink, cookie_of(2), NO_FLAG));
		OK(dat_ep_post_send(p->ep[0], 0, NULL, cookie_of(3), NO_FLAG));
		OK(dat_ep_post_rdma_read(p->ep[0], 1, &buffer, cookie_of(4), &from, NO_FLAG));
		if (write) {
			OK(dat_ep_post_rdma_write(p->ep[0], 1, &buffer, cookie_of(5), &to,
						  DAT_COMPLETION_BARRIER_FENCE_FLAG));
			OK(dat_ep_post_send(p->ep[0], 0, NULL, cookie_of(6), NO_FLAG));
		} else {
			OK(dat_ep_post_send(p->ep[0], 1, &buffer, cookie_of(5), DAT_COMPLETION_BARRIER_FENCE_FLAG));
		}
		wait_completion(p->recv[1], 1, 0);
		wait_completion(p->recv[1], 2, write ? 0 : length);
		wait_completion(p->request[0], 3, 0);
		wait_completion(p->request[0], 4, length);
		wait_completion(p->request[0], 5, length);
		if (write)
			wait_completion(p->request[0], 6, 0);
		EXPECT(!memcmp(p->memory + SINK, p->memory + SOURCE, length));
	}
}

void rmr_triplet_has_target_address(struct pair *p)
{
	DAT_LMR_TRIPLET near;
	DAT_RMR_TRIPLET far;

	pair_prepare(p);
	pair_connect(p, NULL);
	memcpy(p->memory + 8192, "from the peer", 13);
	set_segment(p, &near, 0, 13);
	set_target(p, &far, 8192, 13);
	OK(dat_ep_post_rdma_read(p->ep[0], 1, &near, cookie_of(1), &far, NO_FLAG));
	wait_completion(p->request[0], 1, 13);
	EXPECT(!memcmp(p->memory, "from the peer", 13));
	set_target(p, &far, 12288, 13);
	OK(dat_ep_post_rdma_write(p->ep[0], 1, &near, cookie_of(2), &far, NO_FLAG));
	wait_completion(p->request[0], 2, 13);
	EXPECT(!memcmp(p->memory + 12288, "from the peer", 13));
}

static DAT_EVD_HANDLE agent_saw;
static int agent_mark;
static void agent_function(DAT_PVOID data, DAT_EVD_HANDLE evd)
{
	if (data == &agent_mark && evd)
		__atomic_store_n(&agent_saw, evd, __ATOMIC_RELEASE);
}

void cno_param_has_an_agent(struct pair *p)
{
	DAT_OS_WAIT_PROXY_AGENT agent, none = { NULL, NULL };
	DAT_CNO_HANDLE cno, silent;
	DAT_CNO_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	pair_prepare(p);
	agent.instance_data = &agent_mark;
	agent.proxy_agent_func = agent_function;
	OK(dat_cno_create(p->ia, agent, &cno));
	OK(dat_cno_create(p->ia, none, &silent));
	memset(&param, 0xff, sizeof param);
	OK(dat_cno_query(cno, DAT_CNO_FIELD_ALL, &param));
	EXPECT(param.ia_handle == p->ia && param.agent.instance_data == &agent_mark);
	EXPECT(param.agent.proxy_agent_func == agent_function);
	OK(dat_cno_query(silent, DAT_CNO_FIELD_AGENT, &param));
	EXPECT(param.agent.instance_data == NULL && !param.agent.proxy_agent_func);
	FAILS(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)4, &param), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	OK(dat_evd_create(p->ia, 8, cno, DAT_EVD_SOFTWARE_FLAG, &evd));
	memset(&event, 0, sizeof event);
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = &agent_mark;
	OK(dat_evd_post_se(evd, &event));
	while (!__atomic_load_n(&agent_saw, __ATOMIC_ACQUIRE))
		;	/* the alarm of main() ends the process */
	EXPECT(agent_saw == evd);
	memset(&event, 0, sizeof event);
	OK(dat_evd_dequeue(evd, &event));
	EXPECT(event.event_number == DAT_SOFTWARE_EVENT && event.evd_handle == evd);
	EXPECT(event.event_data.software_event_data.pointer == &agent_mark);
}

void endpoint_lengths_have_64_bits(struct pair *p)
{
	DAT_EP_PARAM param, changed;
	DAT_VLEN *length;
	DAT_EP_ATTR attr;
	DAT_SRQ_ATTR srq_attr;
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE ep;

	pair_prepare(p);
	OK(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], NULL, &ep));
	memset(&param, 0xff, sizeof param);
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	length = &param.ep_attr.max_message_size;
	EXPECT(*length > 0 && *length < FOUR_GIB);
	length = &param.ep_attr.max_rdma_size;
	EXPECT(*length > 0 && *length < FOUR_GIB);
	attr = param.ep_attr;
	attr.max_message_size = FOUR_GIB + 4096;
	FAILS(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], &attr, &ep), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG6);
	attr.max_message_size = 4096;
	attr.max_rdma_size = FOUR_GIB;
	FAILS(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], &attr, &ep), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG6);
	srq_attr.max_recv_dtos = 8;
	srq_attr.max_recv_iov = 2;
	srq_attr.low_watermark = DAT_SRQ_LW_DEFAULT;
	OK(dat_srq_create(p->ia, p->pz, &srq_attr, &srq));
	FAILS(dat_ep_create_with_srq(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], srq,
		&attr, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	changed = param;
	changed.ep_attr.max_message_size = FOUR_GIB;
	FAILS(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &changed), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG3);
	/* a member that the mask does not select is not looked at */
	changed.recv_evd_handle = p->recv[1];
	OK(dat_ep_modify(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, &changed));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	EXPECT(param.recv_evd_handle == p->recv[1]);
	changed.ep_attr.max_message_size = 4096;
	OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &changed));
	OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	EXPECT(param.ep_attr.max_message_size == 4096);
}
