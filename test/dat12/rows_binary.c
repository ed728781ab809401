/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows_binary.c - cases of rows.c: structures and numbers that differ in binaries of DAT 1.2 and DAT 2.0. */
#include "rows.h"
#include <string.h>
#include <unistd.h>

#define MARK UINT64_C(0x123456789abcdef)

/* --- what differs in binaries: structures ------------------------------------- */

/* A structure that the library fills, between bytes that must stay. */
struct guarded_event {
	DAT_EVENT event;
	unsigned char guard[128];
};

void event_is_not_overrun(struct pair *p)
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

void connection_request_and_its_data(struct pair *p)
{
	static char request[] = "the request", answer[] = "the answer";
	DAT_CR_PARAM param;
	DAT_EVENT event;
	DAT_CR_HANDLE cr;
	int i;

	pair_prepare(p);
	for (i = 0; i < 2; i++)
		OK(dat_ep_create(p->ia, p->pz, p->recv[i], p->request[i], p->conn[i], NULL, &p->ep[i]));
	OK(dat_ep_connect(p->ep[0], p->address, p->qual, WAIT_MAX, sizeof request, request, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	memset(&event, 0xff, sizeof event);
	wait_event(p->cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	EXPECT(event.event_data.cr_arrival_event_data.local_ia_address_ptr->sa_family == p->address->sa_family);
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

void endpoint_parameters(struct pair *p)
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
	FAILS(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL | (DAT_EP_PARAM_MASK)1 << 40, &param), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG2);
	FAILS(dat_ep_query(p->ep[0], DAT_EP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

void ia_attributes(struct pair *p)
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
	FAILS(dat_ia_query(p->ia, NULL, (DAT_IA_ATTR_MASK)1 << 50, &g.attr, 0, NULL), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG3);
}

void provider_attributes(struct pair *p)
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
	FAILS(dat_ia_query(p->ia, NULL, 0, NULL, (DAT_PROVIDER_ATTR_MASK)1 << 50, &g.attr), DAT_INVALID_PARAMETER,
	      DAT_INVALID_ARG5);
}

void memory_and_event_parameters(struct pair *p)
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
	FAILS(dat_lmr_query(p->lmr, (DAT_LMR_PARAM_MASK)0x1000, &lmr), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	OK(dat_evd_query(p->recv[0], DAT_EVD_FIELD_ALL, &evd));
	EXPECT(evd.ia_handle == p->ia && evd.evd_qlen >= 64);
	EXPECT(evd.evd_flags == DAT_EVD_DTO_FLAG && evd.cno_handle == DAT_HANDLE_NULL);
	OK(dat_pz_query(p->pz, DAT_PZ_FIELD_ALL, &pz));
	EXPECT(pz.ia_handle == p->ia);
}

void service_point_parameters(struct pair *p)
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

void srq_state_is_operational(struct pair *p)
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

void codes_and_their_names(struct pair *p)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PSP_PARAM param;
	DAT_IA_HANDLE ia;
	const char *major, *minor;

	pair_prepare(p);
	FAILS(dat_ia_open((char *)"dat12-absent", 8, &async, &ia), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	FAILS(dat_psp_query(p->psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	FAILS(dat_psp_query(DAT_HANDLE_NULL, DAT_PSP_FIELD_ALL, &param), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	FAILS(dat_pz_free(p->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3, &major, &minor));
	EXPECT(!strcmp(major, "DAT_INVALID_PARAMETER") && !strcmp(minor, "DAT_INVALID_ARG3"));
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_NOT_IMPLEMENTED, &major, &minor));
	EXPECT(!strcmp(major, "DAT_NOT_IMPLEMENTED") && !*minor);
	OK(dat_strerror(DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED, &major, &minor));
	EXPECT(!strcmp(minor, "DAT_NAME_NOT_REGISTERED"));
}

void handles_are_known(struct pair *p)
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

void providers_are_listed(struct pair *p)
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
void u1_2_entry_is_first(struct pair *p)
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
		FAILS(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	}
	async = DAT_HANDLE_NULL;
	FAILS(dat_ia_openv((char *)IA_NAME, 8, &async, &ia, 1, 1, DAT_FALSE), DAT_PROVIDER_NOT_FOUND,
	      DAT_MAJOR_NOT_FOUND);
	FAILS(dat_ia_openv((char *)IA_NAME_1_2, 8, &async, &ia, 1, 1, DAT_FALSE), DAT_PROVIDER_NOT_FOUND,
	      DAT_MINOR_NOT_FOUND);
}

/* Providers for DAT 1.2 have a table of another shape: they are refused, in 1.2's numbers. */
extern DAT_RETURN dat_registry_add_provider(const void *table, const DAT_PROVIDER_INFO *info);
extern DAT_RETURN dat_registry_remove_provider(const void *table, const DAT_PROVIDER_INFO *info);
void providers_for_1_2_are_refused(struct pair *p)
{
	static const char table[1000];
	DAT_PROVIDER_INFO info;

	memset(p, 0, sizeof *p);
	memset(&info, 0, sizeof info);
	strcpy(info.ia_name, "dat12-old");
	EXPECT(dat_registry_add_provider(table, &info) == 0x8fff0000);
	FAILS(dat_registry_add_provider(NULL, &info), DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
	FAILS(dat_registry_add_provider(table, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	FAILS(dat_registry_remove_provider(table, &info), DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
}

/* What a mask does not select stays as the program left it. */
void only_selected_attributes_are_written(struct pair *p)
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
void qualifiers_have_64_bits(struct pair *p)
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
