/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional_query.c - functional tests of the calls that query objects: they report the values
 * given at creation, and refuse bad parameters and handles. */
#include "functional.h"
#include <string.h>

enum { QLEN = 8, BUFFER = 4096 };

static bool open_channel(struct functional *f, struct channel *c)
{
	struct channel_options o = { .receives = 4, .requests = 4, .segments = 1, .wait = WAIT_CNO };

	return channel_open(c, &f->adapter, &o);
}

static bool query_ia(struct functional *f)
{
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_HANDLE async;
	DAT_IA_ATTR ia;

	EXPECT_TYPE(dat_ia_query(f->adapter.ia, &async, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider),
		    DAT_SUCCESS);
	EXPECT(async == f->adapter.async);
	EXPECT(!strcmp(ia.adapter_name, f->o->device));
	EXPECT(ia.max_eps > 0 && ia.max_dto_per_ep > 0 && ia.max_evds > 0 && ia.ia_address_ptr);
	EXPECT(provider.dat_qos_supported & DAT_QOS_BEST_EFFORT || !DAT_QOS_BEST_EFFORT);
	return true;
}

static bool query_cno(struct functional *f)
{
	struct channel c;
	DAT_CNO_PARAM param;

	EXPECT(open_channel(f, &c));
	EXPECT_TYPE(dat_cno_query(c.cno, DAT_CNO_FIELD_IA_HANDLE, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia);
	channel_close(&c);
	return true;
}

static bool query_evd(struct functional *f)
{
	struct channel c;
	DAT_EVD_PARAM param;

	EXPECT(open_channel(f, &c));
	EXPECT_TYPE(dat_evd_query(c.conn, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.evd_qlen >= QLEN && param.cno_handle == DAT_HANDLE_NULL);
	EXPECT(param.evd_flags == DAT_EVD_CONNECTION_FLAG);
	EXPECT_TYPE(dat_evd_query(c.recv, DAT_EVD_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.cno_handle == c.cno && param.evd_flags == DAT_EVD_DTO_FLAG);
	channel_close(&c);
	return true;
}

static bool listen_anywhere(struct functional *f, struct channel *c, bool reserved, DAT_CONN_QUAL *qualifier)
{
	bool taken = true;

	EXPECT(open_channel(f, c));
	for (*qualifier = f->o->qualifier; taken && *qualifier <= 65535; ++*qualifier)
		if (channel_listen(c, *qualifier, reserved, &taken))
			return true;
	return complain("no free connection qualifier");
}

static bool query_psp(struct functional *f)
{
	DAT_CONN_QUAL qualifier;
	DAT_PSP_PARAM param;
	struct channel c;

	EXPECT(listen_anywhere(f, &c, false, &qualifier));
	EXPECT_TYPE(dat_psp_query(c.psp, DAT_PSP_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.conn_qual == qualifier && param.evd_handle == c.cr);
	EXPECT(param.psp_flags == DAT_PSP_CONSUMER_FLAG);
	channel_close(&c);
	return true;
}

static bool query_rsp(struct functional *f)
{
	DAT_CONN_QUAL qualifier;
	DAT_RSP_PARAM param;
	struct channel c;

	EXPECT(listen_anywhere(f, &c, true, &qualifier));
	EXPECT_TYPE(dat_rsp_query(c.rsp, DAT_RSP_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.conn_qual == qualifier && param.ep_handle == c.ep);
	channel_close(&c);
	return true;
}

static bool query_cr(struct functional *f)
{
	DAT_CONN_QUAL qualifier;
	DAT_CR_PARAM param;
	struct channel c, active;
	DAT_EVENT event;
	DAT_COUNT more;

	EXPECT(listen_anywhere(f, &c, false, &qualifier));
	EXPECT(open_channel(f, &active));
	EXPECT_TYPE(dat_ep_connect(active.ep, f->adapter.attr.ia_address_ptr, qualifier, PATIENCE * 1000000, 3, "abc",
				   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), DAT_SUCCESS);
	EXPECT_TYPE(dat_evd_wait(c.cr, PATIENCE * 1000000, 1, &event, &more), DAT_SUCCESS);
	EXPECT_TYPE(dat_cr_query(event.event_data.cr_arrival_event_data.cr_handle, DAT_CR_FIELD_ALL, &param),
		    DAT_SUCCESS);
	EXPECT(param.private_data_size >= 3 && !memcmp(param.private_data, "abc", 3));
	EXPECT(param.remote_ia_address_ptr && param.local_ep_handle == DAT_HANDLE_NULL);
	EXPECT_TYPE(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL), DAT_SUCCESS);
	EXPECT_TYPE(dat_evd_wait(active.conn, PATIENCE * 1000000, 1, &event, &more), DAT_SUCCESS);
	channel_close(&active);
	channel_close(&c);
	return true;
}

static bool query_ep(struct functional *f)
{
	DAT_EP_PARAM param;
	struct channel c;

	EXPECT(open_channel(f, &c));
	EXPECT_TYPE(dat_ep_query(c.ep, DAT_EP_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.pz_handle == f->adapter.pz);
	EXPECT(param.ep_state == DAT_EP_STATE_UNCONNECTED);
	EXPECT(param.recv_evd_handle == c.recv && param.request_evd_handle == c.request &&
	       param.connect_evd_handle == c.conn);
	EXPECT(param.ep_attr.max_recv_dtos >= 4 && param.ep_attr.max_request_dtos >= 4);
	channel_close(&c);
	return true;
}

static bool query_pz(struct functional *f)
{
	DAT_PZ_PARAM param;

	EXPECT_TYPE(dat_pz_query(f->adapter.pz, DAT_PZ_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia);
	return true;
}

static bool query_lmr(struct functional *f)
{
	struct region region;
	DAT_LMR_PARAM param;

	EXPECT(region_create(&region, &f->adapter, BUFFER));
	EXPECT_TYPE(dat_lmr_query(region.lmr, DAT_LMR_FIELD_ALL, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.pz_handle == f->adapter.pz);
	EXPECT(param.mem_type == DAT_MEM_TYPE_VIRTUAL && param.region_desc.for_va == region.start);
	EXPECT(param.length == BUFFER && param.registered_size >= BUFFER);
	EXPECT(param.lmr_context == region.context && param.rmr_context == region.remote);
	region_free(&region);
	return true;
}

/* If the adapter has no RMRs, dat_rmr_create() must fail. */
static bool query_rmr(struct functional *f)
{
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_RETURN rc = dat_rmr_create(f->adapter.pz, &rmr);

	if (!f->adapter.attr.max_rmrs) {
		EXPECT(rc != DAT_SUCCESS);
		return true;
	}
	EXPECT_TYPE(rc, DAT_SUCCESS);
	EXPECT_TYPE(dat_rmr_query(rmr, DAT_RMR_FIELD_IA_HANDLE | DAT_RMR_FIELD_PZ_HANDLE, &param), DAT_SUCCESS);
	EXPECT(param.ia_handle == f->adapter.ia && param.pz_handle == f->adapter.pz);
	EXPECT_TYPE(dat_rmr_free(rmr), DAT_SUCCESS);
	return true;
}

static bool query_ia_nowhere(struct functional *f)
{
	EXPECT_TYPE(dat_ia_query(f->adapter.ia, NULL, DAT_IA_FIELD_ALL, NULL, 0, NULL), DAT_INVALID_PARAMETER);
	return true;
}

static bool query_no_ia(struct functional *f)
{
	DAT_IA_ATTR attr;

	(void)f;
	EXPECT_TYPE(dat_ia_query(DAT_HANDLE_NULL, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), DAT_INVALID_HANDLE);
	return true;
}

static bool query_cno_nowhere(struct functional *f)
{
	struct channel c;

	EXPECT(open_channel(f, &c));
	EXPECT_TYPE(dat_cno_query(c.cno, DAT_CNO_FIELD_IA_HANDLE, NULL), DAT_INVALID_PARAMETER);
	channel_close(&c);
	return true;
}

static bool query_no_cno(struct functional *f)
{
	DAT_CNO_PARAM param;

	(void)f;
	EXPECT_TYPE(dat_cno_query(DAT_HANDLE_NULL, DAT_CNO_FIELD_IA_HANDLE, &param), DAT_INVALID_HANDLE);
	return true;
}

static bool query_evd_nowhere(struct functional *f)
{
	EXPECT_TYPE(dat_evd_query(f->adapter.async, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	return true;
}

static bool query_no_evd(struct functional *f)
{
	DAT_EVD_PARAM param;

	(void)f;
	EXPECT_TYPE(dat_evd_query(DAT_HANDLE_NULL, DAT_EVD_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	return true;
}

static bool query_psp_nowhere(struct functional *f)
{
	DAT_CONN_QUAL qualifier;
	struct channel c;

	EXPECT(listen_anywhere(f, &c, false, &qualifier));
	EXPECT_TYPE(dat_psp_query(c.psp, DAT_PSP_FIELD_ALL, NULL), DAT_INVALID_PARAMETER);
	channel_close(&c);
	return true;
}

static bool query_no_psp(struct functional *f)
{
	DAT_PSP_PARAM param;

	(void)f;
	EXPECT_TYPE(dat_psp_query(DAT_HANDLE_NULL, DAT_PSP_FIELD_ALL, &param), DAT_INVALID_HANDLE);
	return true;
}

static const struct functional_case cases[] = {
	{ "dat_ia_query reports name, limits and the asynchronous EVD", query_ia },
	{ "dat_cno_query reports the adapter", query_cno },
	{ "dat_evd_query reports adapter, length, CNO and streams", query_evd },
	{ "dat_psp_query reports adapter, qualifier, EVD and flags", query_psp },
	{ "dat_rsp_query reports adapter, qualifier and endpoint", query_rsp },
	{ "dat_cr_query reports private data and the peer's address", query_cr },
	{ "dat_ep_query reports state, EVDs, PZ and attributes", query_ep },
	{ "dat_pz_query reports the adapter", query_pz },
	{ "dat_lmr_query reports memory, PZ and contexts", query_lmr },
	{ "dat_rmr_query reports adapter and PZ", query_rmr },
	{ "dat_ia_query without room for attributes is refused", query_ia_nowhere },
	{ "dat_ia_query of the null handle is refused", query_no_ia },
	{ "dat_cno_query without room is refused", query_cno_nowhere },
	{ "dat_cno_query of the null handle is refused", query_no_cno },
	{ "dat_evd_query without room is refused", query_evd_nowhere },
	{ "dat_evd_query of the null handle is refused", query_no_evd },
	{ "dat_psp_query without room is refused", query_psp_nowhere },
	{ "dat_psp_query of the null handle is refused", query_no_psp },
};
const struct feature feature_queryinfo = { "queryinfo", "Queryinfo", cases, sizeof cases / sizeof *cases };
