/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows.c - a case for each row of the tables of doc/spec/dat-1.2.md, in DAT 1.2 style, over the software
 * device. rows-view is compiled with the header of include/dat-1.2 and linked to libdat2;
 * rows-binary with the transcription, and linked to libdat.so.1. rows-X NAME runs one case. */
#include "pair.h"
#include <string.h>
#include <unistd.h>

#define FOUR_GIB ((DAT_VLEN)1 << 32)
#define NO_FLAG DAT_COMPLETION_DEFAULT_FLAG
#define MARK UINT64_C(0x123456789abcdef)

/* --- what differs in source --------------------------------------------------- */

static void lmr_create_has_11_arguments(struct pair *p)
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
	OK(create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, p->pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
		&local, &remote, &length, &address));
	EXPECT(length >= 4096 && address == (DAT_VADDR)(size_t)p->memory);
	OK(dat_lmr_free(lmr));
	/* the position of the argument is that of 1.2: in 2.0 the handle is the 8th */
	FAILS(create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, 4096, p->pz, DAT_MEM_PRIV_ALL_FLAG, NULL,
		&local, &remote, &length, &address), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
}

static void cr_reject_has_1_argument(struct pair *p)
{
	DAT_RETURN (*reject)(DAT_CR_HANDLE) = dat_cr_reject;
	DAT_EVENT event;
	DAT_EP_HANDLE ep;

	pair_prepare(p);
	OK(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], NULL, &ep));
	OK(dat_ep_connect(ep, p->address, p->qual, WAIT_MAX, 0, NULL, DAT_QOS_BEST_EFFORT,
		DAT_CONNECT_DEFAULT_FLAG));
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

static void rmr_bind_has_7_arguments(struct pair *p)
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
static void lengths_of_4_gib_are_refused(struct pair *p)
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
		FAILS(dat_ep_post_send(p->ep[0], 2, bad, cookie_of(1), NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		FAILS(dat_ep_post_recv(p->ep[0], 2, bad, cookie_of(1), NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		FAILS(dat_srq_post_recv(srq, 2, bad, cookie_of(1)), DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_read(p->ep[0], 2, bad, cookie_of(1), &to, NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_write(p->ep[0], 2, bad, cookie_of(1), &to, NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		FAILS(dat_ep_post_rdma_read(p->ep[0], 1, &good, cookie_of(1), &far, NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		FAILS(dat_ep_post_rdma_write(p->ep[0], 1, &good, cookie_of(1), &far, NO_FLAG),
			DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
		FAILS(dat_rmr_bind(rmr, &bad[1], DAT_MEM_PRIV_REMOTE_READ_FLAG, p->ep[0],
			cookie_of(1), NO_FLAG, &context), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		FAILS(sync_read(p->ia, bad, 2), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		FAILS(dat_lmr_sync_rdma_write(p->ia, bad, 2), DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG2);
	}
	/* the endpoint still works, and none of those was posted */
	OK(dat_ep_post_rdma_write(p->ep[0], 1, &good, cookie_of(2), &to, NO_FLAG));
	wait_completion(p->request[0], 2, 64);
}

/* Lists up to the limit of the device keep their order; longer ones are refused. */
static void long_lists(struct pair *p)
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
	FAILS(dat_ep_post_send(p->ep[0], max + 1, list, cookie_of(3), NO_FLAG),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_ep_post_send(p->ep[0], 1000, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG2);
	FAILS(dat_ep_post_recv(p->ep[0], 1000, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG2);
	FAILS(dat_ep_post_send(p->ep[0], -1, list, cookie_of(3), NO_FLAG), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG2);
	OK(dat_lmr_sync_rdma_read(p->ia, list, 1000));
	OK(dat_lmr_sync_rdma_write(p->ia, list, 1000));
	/* the last of many pieces is looked at, too */
	list[999].segment_length = FOUR_GIB;
	FAILS(dat_lmr_sync_rdma_write(p->ia, list, 1000), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void rmr_triplet_has_target_address(struct pair *p)
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

static void cno_param_has_an_agent(struct pair *p)
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
	FAILS(dat_cno_query(cno, (DAT_CNO_PARAM_MASK)4, &param), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG2);
	FAILS(dat_cno_query(cno, DAT_CNO_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG3);
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

static void endpoint_lengths_have_64_bits(struct pair *p)
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
	FAILS(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], &attr, &ep),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	attr.max_message_size = 4096;
	attr.max_rdma_size = FOUR_GIB;
	FAILS(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], &attr, &ep),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	srq_attr.max_recv_dtos = 8;
	srq_attr.max_recv_iov = 2;
	srq_attr.low_watermark = DAT_SRQ_LW_DEFAULT;
	OK(dat_srq_create(p->ia, p->pz, &srq_attr, &srq));
	FAILS(dat_ep_create_with_srq(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], srq,
		&attr, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	changed = param;
	changed.ep_attr.max_message_size = FOUR_GIB;
	FAILS(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &changed),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
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

/* --- what differs in binaries: structures ------------------------------------- */

/* A structure that the library fills, between bytes that must stay. */
struct guarded_event {
	DAT_EVENT event;
	unsigned char guard[128];
};

static void event_is_not_overrun(struct pair *p)
{
	struct guarded_event g;
	DAT_LMR_TRIPLET segment;
	DAT_COUNT more;
	unsigned i;

	pair_prepare(p);
	pair_connect(p, NULL);
	set_segment(p, &segment, 0, 100);
	OK(dat_ep_post_recv(p->ep[1], 1, &segment, cookie_of(1), NO_FLAG));
	set_segment(p, &segment, 4096, 100);
	OK(dat_ep_post_send(p->ep[0], 1, &segment, cookie_of(2), NO_FLAG));
	memset(&g, 0xa5, sizeof g);
	OK(dat_evd_wait(p->request[0], WAIT_MAX, 1, &g.event, &more));
	EXPECT(g.event.event_data.dto_completion_event_data.ep_handle == p->ep[0]);
	for (i = 0; i < sizeof g.guard; i++)
		EXPECT(g.guard[i] == 0xa5);
	memset(&g, 0xa5, sizeof g);
	while (dat_evd_dequeue(p->recv[1], &g.event) != DAT_SUCCESS)
		;	/* the alarm of main() ends the process */
	EXPECT(g.event.event_data.dto_completion_event_data.transfered_length == 100);
	EXPECT(g.event.event_data.dto_completion_event_data.ep_handle == p->ep[1]);
	for (i = 0; i < sizeof g.guard; i++)
		EXPECT(g.guard[i] == 0xa5);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(p->recv[1], &g.event)) == DAT_QUEUE_EMPTY);
	FAILS(dat_evd_dequeue(p->recv[1], NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void connection_request_and_its_data(struct pair *p)
{
	static char request[] = "the request", answer[] = "the answer";
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;
	int i;

	pair_prepare(p);
	for (i = 0; i < 2; i++)
		OK(dat_ep_create(p->ia, p->pz, p->recv[i], p->request[i], p->conn[i], NULL,
			&p->ep[i]));
	OK(dat_ep_connect(p->ep[0], p->address, p->qual, WAIT_MAX, sizeof request, request,
		DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	memset(&event, 0xff, sizeof event);
	wait_event(p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	EXPECT(event.event_data.cr_arrival_event_data.local_ia_address_ptr->sa_family ==
		p->address->sa_family);
	EXPECT(event.event_data.cr_arrival_event_data.conn_qual == p->qual);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	EXPECT(param.remote_ia_address_ptr != NULL && param.local_ep_handle == DAT_HANDLE_NULL);
	EXPECT(param.private_data_size >= (DAT_COUNT)sizeof request);
	EXPECT(!memcmp(param.private_data, request, sizeof request));
	OK(dat_cr_accept(cr, p->ep[1], sizeof answer, answer));
	wait_event(p->conn[0], DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	EXPECT(event.event_data.connect_event_data.private_data_size >= (DAT_COUNT)sizeof answer);
	EXPECT(!memcmp(event.event_data.connect_event_data.private_data, answer, sizeof answer));
}

static void endpoint_parameters(struct pair *p)
{
	DAT_EP_PARAM param;
	DAT_EP_STATE state;
	DAT_BOOLEAN idle;

	pair_prepare(p);
	pair_connect(p, NULL);
	memset(&param, 0xff, sizeof param);
	OK(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL, &param));
	EXPECT(param.ia_handle == p->ia && param.ep_state == DAT_EP_STATE_CONNECTED);
	EXPECT(param.local_ia_address_ptr->sa_family == p->address->sa_family);
	EXPECT(param.remote_ia_address_ptr != NULL);
	EXPECT(param.pz_handle == p->pz && param.recv_evd_handle == p->recv[0]);
	EXPECT(param.request_evd_handle == p->request[0]);
	EXPECT(param.connect_evd_handle == p->conn[0]);
	EXPECT(param.srq_handle == DAT_HANDLE_NULL);
	EXPECT(param.ep_attr.service_type == DAT_SERVICE_TYPE_RC);
	EXPECT(param.ep_attr.max_recv_dtos > 0 && param.ep_attr.max_request_dtos > 0);
	EXPECT(param.ep_attr.max_rdma_write_iov > 0);
	OK(dat_ep_query(p->ep[1], DAT_EP_FIELD_REMOTE_PORT_QUAL, &param));
	OK(dat_ep_get_status(p->ep[0], &state, &idle, &idle));
	EXPECT(state == DAT_EP_STATE_CONNECTED);
	FAILS(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL | (DAT_EP_PARAM_MASK)1 << 40, &param),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG3);
}

static void ia_attributes(struct pair *p)
{
	struct {
		DAT_IA_ATTR attr;
		unsigned char guard[64];
	} g;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	unsigned i;

	pair_prepare(p);
	memset(&g, 0xa5, sizeof g);
	OK(dat_ia_query(p->ia, &async, DAT_IA_FIELD_ALL, &g.attr, 0, NULL));
	EXPECT(async == p->async);
	EXPECT(strlen(g.attr.adapter_name) < 256 && strlen(g.attr.vendor_name) < 256);
	EXPECT(g.attr.ia_address_ptr == p->address);
	EXPECT(g.attr.max_eps > 0 && g.attr.max_evds > 0 && g.attr.max_lmrs > 0);
	EXPECT(g.attr.max_lmr_block_size >= 1 << 20);
	EXPECT(g.attr.max_mtu_size >= 1 << 20 && g.attr.max_mtu_size < FOUR_GIB);
	EXPECT(g.attr.max_rdma_size >= 1 << 20 && g.attr.max_rdma_size < FOUR_GIB);
	EXPECT(g.attr.max_srqs > 0 && g.attr.max_recv_per_srq > 0);
	EXPECT(g.attr.max_rdma_read_per_ep > 0);
	EXPECT(g.attr.num_transport_attr >= 0 && g.attr.num_vendor_attr >= 0);
	for (i = 0; i < (unsigned)g.attr.num_vendor_attr; i++)
		EXPECT(strlen(g.attr.vendor_attr[i].name) > 0);
	for (i = 0; i < sizeof g.guard; i++)
		EXPECT(g.guard[i] == 0xa5);
	FAILS(dat_ia_query(p->ia, NULL, (DAT_IA_ATTR_MASK)1 << 50, &g.attr, 0, NULL),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

static void provider_attributes(struct pair *p)
{
	struct {
		DAT_PROVIDER_ATTR attr;
		unsigned char guard[64];
	} g;
	int i;

	pair_prepare(p);
	memset(&g, 0xa5, sizeof g);
	OK(dat_ia_query(p->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &g.attr));
	EXPECT(!strcmp(g.attr.provider_name, IA_NAME) || strlen(g.attr.provider_name) < 256);
	EXPECT(g.attr.is_thread_safe == DAT_TRUE || g.attr.is_thread_safe == DAT_FALSE);
	EXPECT(g.attr.iov_ownership_on_return == DAT_IOV_CONSUMER);
	EXPECT(g.attr.max_private_data_size > 0);
	EXPECT(g.attr.pz_support == DAT_PZ_UNIQUE || g.attr.pz_support == DAT_PZ_SHAREABLE);
	EXPECT(g.attr.optimal_buffer_alignment > 0);
	for (i = 0; i < 6; i++)
		EXPECT(g.attr.evd_stream_merging_supported[i][i] == DAT_TRUE);
	EXPECT(g.attr.srq_supported == DAT_TRUE);
	EXPECT(g.attr.num_provider_specific_attr >= 0);
	for (i = 0; i < g.attr.num_provider_specific_attr; i++)
		EXPECT(strlen(g.attr.provider_specific_attr[i].name) > 0);
	for (i = 0; i < (int)sizeof g.guard; i++)
		EXPECT(g.guard[i] == 0xa5);
	FAILS(dat_ia_query(p->ia, NULL, 0, NULL, (DAT_PROVIDER_ATTR_MASK)1 << 50, &g.attr),
		DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
}

static void memory_and_event_parameters(struct pair *p)
{
	DAT_LMR_PARAM lmr;
	DAT_EVD_PARAM evd;
	DAT_PZ_PARAM pz;

	pair_prepare(p);
	memset(&lmr, 0xff, sizeof lmr);
	OK(dat_lmr_query(p->lmr, DAT_LMR_FIELD_ALL, &lmr));
	EXPECT(lmr.ia_handle == p->ia && lmr.mem_type == DAT_MEM_TYPE_VIRTUAL);
	EXPECT(lmr.region_desc.for_va == p->memory && lmr.length == MEMORY_BYTES);
	EXPECT(lmr.pz_handle == p->pz && lmr.mem_priv == DAT_MEM_PRIV_ALL_FLAG);
	EXPECT(lmr.lmr_context == p->lmr_context && lmr.rmr_context == p->rmr_context);
	EXPECT(lmr.registered_size >= MEMORY_BYTES);
	EXPECT(lmr.registered_address == (DAT_VADDR)(size_t)p->memory);
	OK(dat_lmr_query(p->lmr, DAT_LMR_FIELD_REGISTERED_ADDRESS, &lmr));
	FAILS(dat_lmr_query(p->lmr, (DAT_LMR_PARAM_MASK)0x1000, &lmr), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG2);
	OK(dat_evd_query(p->recv[0], DAT_EVD_FIELD_ALL, &evd));
	EXPECT(evd.ia_handle == p->ia && evd.evd_qlen >= 64);
	EXPECT(evd.evd_flags == DAT_EVD_DTO_FLAG && evd.cno_handle == DAT_HANDLE_NULL);
	OK(dat_pz_query(p->pz, DAT_PZ_FIELD_ALL, &pz));
	EXPECT(pz.ia_handle == p->ia);
}

static void service_point_parameters(struct pair *p)
{
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;
	DAT_CONN_QUAL qual;

	pair_prepare(p);
	OK(dat_psp_query(p->psp, DAT_PSP_FIELD_ALL, &psp));
	EXPECT(psp.ia_handle == p->ia && psp.conn_qual == p->qual);
	EXPECT(psp.evd_handle == p->cr_evd && psp.psp_flags == DAT_PSP_CONSUMER_FLAG);
	qual = p->qual;
	OK(dat_psp_free(p->psp));
	OK(dat_ep_create(p->ia, p->pz, p->recv[0], p->request[0], p->conn[0], NULL, &ep));
	OK(dat_rsp_create(p->ia, qual, ep, p->cr_evd, &rsp));
	OK(dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	EXPECT(param.ia_handle == p->ia && param.conn_qual == qual);
	EXPECT(param.evd_handle == p->cr_evd && param.ep_handle == ep);
	OK(dat_rsp_free(rsp));
}

static void srq_state_is_operational(struct pair *p)
{
	DAT_SRQ_PARAM param;
	DAT_SRQ_ATTR attr;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_TRIPLET segment;

	pair_prepare(p);
	attr.max_recv_dtos = 8;
	attr.max_recv_iov = 2;
	attr.low_watermark = DAT_SRQ_LW_DEFAULT;
	OK(dat_srq_create(p->ia, p->pz, &attr, &srq));
	set_segment(p, &segment, 0, 64);
	OK(dat_srq_post_recv(srq, 1, &segment, cookie_of(1)));
	memset(&param, 0xff, sizeof param);
	OK(dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	EXPECT(param.ia_handle == p->ia && param.srq_state == DAT_SRQ_STATE_OPERATIONAL);
	EXPECT(param.pz_handle == p->pz && param.max_recv_dtos >= 8);
	EXPECT(param.available_dto_count == 1 && param.outstanding_dto_count == 1);
}

/* --- what differs in binaries: numbers ---------------------------------------- */

static void codes_and_their_names(struct pair *p)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PSP_PARAM param;
	DAT_IA_HANDLE ia;
	const char *major, *minor;

	pair_prepare(p);
	FAILS(dat_ia_open((char *)"dat12-absent", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND,
		DAT_NAME_NOT_REGISTERED);
	FAILS(dat_psp_query(p->psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		DAT_INVALID_ARG3);
	FAILS(dat_psp_query(DAT_HANDLE_NULL, DAT_PSP_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		DAT_INVALID_HANDLE_PSP);
	FAILS(dat_pz_free(p->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3, &major, &minor));
	EXPECT(!strcmp(major, "DAT_INVALID_PARAMETER") && !strcmp(minor, "DAT_INVALID_ARG3"));
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED, &major, &minor));
	EXPECT(!strcmp(major, "DAT_NOT_IMPLEMENTED") && !*minor);
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED, &major,
		&minor));
	EXPECT(!strcmp(minor, "DAT_NAME_NOT_REGISTERED"));
}

static void handles_are_known(struct pair *p)
{
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;

	pair_prepare(p);
	OK(dat_get_handle_type(p->ia, &type));
	EXPECT(type == DAT_HANDLE_TYPE_IA);
	OK(dat_get_handle_type(p->lmr, &type));
	EXPECT(type == DAT_HANDLE_TYPE_LMR);
	context.as_64 = MARK;
	OK(dat_set_consumer_context(p->pz, context));
	context.as_64 = 0;
	OK(dat_get_consumer_context(p->pz, &context));
	EXPECT(context.as_64 == MARK);
}

static void providers_are_listed(struct pair *p)
{
	DAT_PROVIDER_INFO room[8], *list[8];
	int i, found = 0;
	DAT_COUNT count;

	memset(p, 0, sizeof *p);
	memset(room, 0, sizeof room);
	for (i = 0; i < 8; i++)
		list[i] = &room[i];
	OK(dat_registry_list_providers(8, &count, list));
	for (i = 0; i < count; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
		DAT_IA_HANDLE ia;

		found += !strcmp(list[i]->ia_name, IA_NAME);
		/* what the list says can be opened; the header asks for u2.0 entries only */
#ifdef VIEW
		if (list[i]->dapl_version_major != 2 || !strcmp(list[i]->ia_name, IA_NAME_GOOD_1_2))
			continue;
#else
		EXPECT(list[i]->dapl_version_major == 1 && list[i]->dapl_version_minor == 2);
#endif
		OK(dat_ia_openv(list[i]->ia_name, 8, &async, &ia, list[i]->dapl_version_major,
			list[i]->dapl_version_minor, list[i]->is_thread_safe));
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	EXPECT(found == 1);
#ifdef VIEW
	EXPECT(count == 6);
#else
	EXPECT(count == 4);	/* names with two entries are listed once */
#endif
}

#ifndef VIEW
/* libdat.so.1 looks for a u1.2 entry first, then for the u2.0 entry of that name. */
static void u1_2_entry_is_first(struct pair *p)
{
	static const char *const names[] = { IA_NAME, IA_NAME_1_2, IA_NAME_GOOD_1_2,
		IA_NAME_GOOD_2_0 };
	DAT_PROVIDER_ATTR attr;
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;
	unsigned i;

	memset(p, 0, sizeof *p);
	for (i = 0; i < sizeof names / sizeof *names; i++) {
		open_ia(names[i], &ia, &async);
		OK(dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr));
		EXPECT(attr.dapl_version_major == 1 && attr.dapl_version_minor == 2);
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		FAILS(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE,
			DAT_INVALID_HANDLE_IA);
	}
	async = DAT_HANDLE_NULL;
	FAILS(dat_ia_openv((char *)IA_NAME, 8, &async, &ia, 1, 1, DAT_FALSE),
		DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	FAILS(dat_ia_openv((char *)IA_NAME_1_2, 8, &async, &ia, 1, 1, DAT_FALSE),
		DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
}

/* Providers for DAT 1.2 have a table of another shape: they are refused, in 1.2's numbers. */
extern DAT_RETURN dat_registry_add_provider(const void *table, const DAT_PROVIDER_INFO *info);
extern DAT_RETURN dat_registry_remove_provider(const void *table, const DAT_PROVIDER_INFO *info);
static void providers_for_1_2_are_refused(struct pair *p)
{
	static const char table[1000];
	DAT_PROVIDER_INFO info;

	memset(p, 0, sizeof *p);
	memset(&info, 0, sizeof info);
	strcpy(info.ia_name, "dat12-old");
	EXPECT(dat_registry_add_provider(table, &info) == 0x8fff0000);
	FAILS(dat_registry_add_provider(NULL, &info), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	FAILS(dat_registry_add_provider(table, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_registry_remove_provider(table, &info), DAT_PROVIDER_NOT_FOUND,
		DAT_NAME_NOT_REGISTERED);
}

/* What a mask does not select stays as the program left it. */
static void only_selected_attributes_are_written(struct pair *p)
{
	DAT_PROVIDER_ATTR provider;
	DAT_LMR_PARAM lmr;
	DAT_IA_ATTR attr;

	pair_prepare(p);
	memset(&attr, 0x5a, sizeof attr);
	memset(&provider, 0x5a, sizeof provider);
	OK(dat_ia_query(p->ia, NULL, DAT_IA_FIELD_IA_NUM_VENDOR_ATTR, &attr,
		DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR, &provider));
	EXPECT(attr.num_vendor_attr >= 0 && attr.num_vendor_attr < 1000);
	EXPECT(attr.max_eps == 0x5a5a5a5a && attr.num_transport_attr == 0x5a5a5a5a);
	EXPECT(provider.num_provider_specific_attr < 1000);
	EXPECT((unsigned)provider.is_thread_safe == 0x5a5a5a5a && provider.provider_name[0] == 0x5a);
	memset(&lmr, 0x5a, sizeof lmr);
	OK(dat_lmr_query(p->lmr, DAT_LMR_FIELD_LMR_CONTEXT, &lmr));
	EXPECT(lmr.lmr_context == p->lmr_context && lmr.rmr_context == 0x5a5a5a5a);
}
#endif

/* Programs use 64 bits, for example rank << 35. */
static void qualifiers_have_64_bits(struct pair *p)
{
	DAT_PSP_HANDLE psp = DAT_HANDLE_NULL;
	DAT_RETURN ret = DAT_CLASS_ERROR;
	int rank;

	pair_prepare(p);
	for (rank = (int)(getpid() % 20000); rank < 30000; rank++) {
		p->qual = (DAT_CONN_QUAL)(rank + 1) << 35;
		ret = dat_psp_create(p->ia, p->qual, p->cr_evd, DAT_PSP_CONSUMER_FLAG, &psp);
		if (DAT_GET_TYPE(ret) != DAT_CONN_QUAL_IN_USE)
			break;
	}
	OK(ret);
	OK(dat_psp_free(p->psp));
	p->psp = psp;
	pair_connect(p, NULL);
}

/* --- running --------------------------------------------------------------------- */

#define CASE(function) { #function, function }
static const struct {
	const char *name;
	void (*run)(struct pair *);
} cases[] = {
	CASE(lmr_create_has_11_arguments),
	CASE(cr_reject_has_1_argument),
	CASE(rmr_bind_has_7_arguments),
	CASE(lengths_of_4_gib_are_refused),
	CASE(long_lists),
	CASE(rmr_triplet_has_target_address),
	CASE(cno_param_has_an_agent),
	CASE(endpoint_lengths_have_64_bits),
	CASE(event_is_not_overrun),
	CASE(connection_request_and_its_data),
	CASE(endpoint_parameters),
	CASE(ia_attributes),
	CASE(provider_attributes),
	CASE(memory_and_event_parameters),
	CASE(service_point_parameters),
	CASE(srq_state_is_operational),
	CASE(codes_and_their_names),
	CASE(handles_are_known),
	CASE(providers_are_listed),
#ifndef VIEW
	CASE(u1_2_entry_is_first),
	CASE(providers_for_1_2_are_refused),
	CASE(only_selected_attributes_are_written),
#endif
	CASE(qualifiers_have_64_bits)
};

int main(int argc, char **argv)
{
	struct pair p;
	unsigned i, passed = 0;

	use_soft_device();
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		alarm(120);
		cases[i].run(&p);
		if (p.ia)
			pair_close(&p);
		passed++;
	}
	printf("%u passed, 0 failed\n", passed);
	return passed ? 0 : 2;
}
