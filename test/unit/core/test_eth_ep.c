/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_ep.c - raw Ethernet endpoints as objects (eth/ep.c): their attributes, what a create that fails leaves,
 * and their end. What becomes of rules is test_eth_rule.c's matter. */
#include "common/trace.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/rule.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { RECEIVES = 6, SRQ_MOST = 1000 };	/* the records of both are rounded up to a power of 2 */

static DAT_EVD_HANDLE evd;
static struct dapl_srq *srq;
static DAT_EP_HANDLE handle;		/* of the create that succeeded last */

static size_t fails_size;		/* of an element in the allocation that fails */
static bool closes;			/* dat_ia_close ends the endpoint while it is created */

UNIT_FAIL_CALLOC(fails_size && size == fails_size)

EXTEND(dapl_ep_create)
DAT_RETURN __wrap_dapl_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
				 DAT_EVD_HANDLE connect, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *made)
{
	DAT_RETURN ret = __real_dapl_ep_create(ia, pz, recv, request, connect, attr, made);

	if (closes)
		assert_int_equal(dapl_ep_free(*made), DAT_SUCCESS);
	return ret;
}

static struct ibv_qp_init_attr wanted;	/* of the QP made last */
static int create_error;

static int note_create(const struct ibv_qp_init_attr *attr)
{
	wanted = *attr;
	return create_error;
}

/* --- a case -------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };
	DAT_SRQ_HANDLE shared;

	assert_int_equal(core_eth_open(state), 0);
	core_device.create_qp = note_create;
	core_ia->ia_attr.max_recv_per_srq = SRQ_MOST;
	evd = (DAT_EVD_HANDLE)core_dto_evd;
	fails_size = 0;
	create_error = 0;
	closes = false;
	handle = DAT_HANDLE_NULL;
	assert_int_equal(dapl_srq_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, &attr, &shared), DAT_SUCCESS);
	srq = (struct dapl_srq *)shared;
}

static void free_ep(void)
{
	assert_int_equal(dapl_eth_ep_free(handle), DAT_SUCCESS);
	handle = DAT_HANDLE_NULL;
}

/* The endpoint of the last create goes with the case. */
static int tear_down(void **state)
{
	if (handle)
		free_ep();
	assert_int_equal(dapl_srq_free((DAT_SRQ_HANDLE)srq), DAT_SUCCESS);
	return core_eth_close(state);
}

static struct dapl_ep *ep(void) { return (struct dapl_ep *)handle; }

/* Its flags leave the fast path of dat_evd_dequeue open. */
static DAT_EP_ATTR raw_with(DAT_NAMED_ATTR *named, DAT_COUNT n)
{
	return (DAT_EP_ATTR){ .service_type = DAT_ETH_SERVICE_TYPE_RAW, .max_recv_dtos = RECEIVES,
		.recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.max_request_dtos = 4, .ep_provider_specific = named, .ep_provider_specific_count = n };
}

static DAT_RETURN create_attr(const DAT_EP_ATTR *attr)
{
	return dapl_eth_ep_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, evd, evd, DAT_HANDLE_NULL, attr,
				  &handle);
}

static DAT_RETURN create_with(DAT_NAMED_ATTR *named, DAT_COUNT n)
{
	const DAT_EP_ATTR attr = raw_with(named, n);

	return create_attr(&attr);
}

static DAT_RETURN create(void) { return create_with(NULL, 0); }

static DAT_RETURN create_shared(DAT_NAMED_ATTR *named, DAT_COUNT n)
{
	const DAT_EP_ATTR attr = raw_with(named, n);

	return dapl_eth_ep_create_with_srq((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, evd, evd, DAT_HANDLE_NULL,
					   (DAT_SRQ_HANDLE)srq, &attr, &handle);
}

/* Nothing is there that the call has made, and nothing is in use for it. */
static void assert_not_made(DAT_RETURN ret, DAT_RETURN expected)
{
	assert_int_equal(ret, expected);
	assert_null(handle);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 0);
	assert_int_equal(core_device.qps, 0);
	assert_int_equal(core_device.cqs, 1);	/* that of evd; discard EVDs have some, too */
	assert_false(dapl_in_use(&core_dto_evd->obj));
	assert_false(dapl_in_use(&srq->obj));
}

/* --- creating -------------------------------------------------------------------------------------------------- */

static void assert_raw(void)
{
	assert_int_equal(ep()->state, DAT_EP_STATE_CONNECTED);
	assert_true(ep()->up);
	assert_int_equal(wanted.qp_type, IBV_QPT_RAW_PACKET);
	assert_ptr_equal(core_eth.begun, ep()->qp);
	core_assert_refs(&ep()->obj, 1);
}

UNIT_CASE(endpoint_is_connected_at_once)
{
	const DAT_EP_ATTR attr = raw_with(NULL, 0);
	const DAT_EVD_HANDLE evds[][2] = { { evd, evd }, { evd, NULL }, { NULL, evd }, { NULL, NULL } };

	for (size_t i = 0; i < sizeof evds / sizeof *evds; i++) {
		core_eth.begun = NULL;
		assert_int_equal(dapl_eth_ep_create((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, evds[i][0],
						    evds[i][1], DAT_HANDLE_NULL, &attr, &handle), DAT_SUCCESS);
		assert_raw();
		assert_ptr_equal(ep()->recv_evd, evds[i][0]);
		assert_ptr_equal(ep()->request_evd, evds[i][1]);
		free_ep();
	}
}

/* Frames are 14 bytes to max_frame and a VLAN tag, and there is no RDMA and no inline data. */
UNIT_CASE(posts_have_the_limits_of_frames)
{
	core_ia->attr.max_inline = 96;
	core_eth.attr.caps = DAT_ETH_CAP_TSO;
	assert_int_equal(create(), DAT_SUCCESS);
	assert_int_equal(ep()->min_message, 14);
	assert_int_equal(ep()->max_message, CORE_ETH_FRAME + 4);
	assert_int_equal(ep()->max_rdma, 0);
	assert_int_equal(ep()->max_inline, 0);
	assert_int_equal(ep()->eth->max_tso, CORE_ETH_TSO + 4);
	assert_int_equal(core_eth.config.max_frame, CORE_ETH_FRAME);
	assert_int_equal(core_eth.config.max_tso, CORE_ETH_TSO);
	assert_int_equal(ep()->eth->caps, DAT_ETH_CAP_TSO);
	assert_false(ep()->eth->ring);
}

UNIT_CASE(trace_tells_what_is_wrong_with_an_attribute)
{
	static const struct { DAT_NAMED_ATTR attr; const char *text; } rows[] = {
		{ { "eth_recieve", "ring" }, "0 is \"eth_recieve\" = \"ring\", expected a name that is eth_receive" },
		{ { "eth_receive", "rings" }, "0 is \"eth_receive\" = \"rings\", expected post, ring or xdp" },
		{ { "eth_frames", "0" }, "\"eth_frames\" = \"0\", expected a number from 1 to 1048576" },
		{ { "eth_snap", "65537" }, "\"eth_snap\" = \"65537\", expected a number from 1 to 65536" },
		{ { "eth_checksum", "on" }, "\"eth_checksum\" = \"on\", expected device or verify" },
		{ { "eth_fcs", "" }, "\"eth_fcs\" = \"\", expected strip or keep" },
		{ { "eth_fcs", NULL }, "\"eth_fcs\" = \"NULL\", expected a name and a value that are not NULL" },
	};

	trace_set_level(TRC_LVL_ERROR);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		DAT_NAMED_ATTR attr = rows[i].attr;

		assert_not_made(create_with(&attr, 1), BAD_PARAM(6));
		if (!core_eth_traced(rows[i].text))
			fail_msg("%s", rows[i].text);
	}
	trace_set_level(TRC_LVL_OFF);
}

UNIT_CASE(endpoint_needs_a_pz_and_has_no_connection_events)
{
	const DAT_EP_ATTR attr = raw_with(NULL, 0);
	const DAT_IA_HANDLE ia = (DAT_IA_HANDLE)core_ia;
	const DAT_PZ_HANDLE pz = (DAT_PZ_HANDLE)core_pz;
	const DAT_EVD_HANDLE connect = (DAT_EVD_HANDLE)core_conn_evd;

	assert_not_made(dapl_eth_ep_create(ia, NULL, evd, evd, NULL, &attr, &handle), BAD_HANDLE(PZ));
	assert_not_made(dapl_eth_ep_create(ia, pz, evd, evd, connect, &attr, &handle), BAD_HANDLE(EVD_CONN));
	assert_not_made(dapl_eth_ep_create(NULL, pz, evd, evd, NULL, &attr, &handle), BAD_HANDLE(IA));
	assert_not_made(dapl_eth_ep_create(ia, pz, evd, evd, NULL, &attr, NULL), BAD_PARAM(7));
	assert_not_made(dapl_eth_ep_create_with_srq(ia, NULL, evd, evd, NULL, (DAT_SRQ_HANDLE)srq, &attr, &handle),
			BAD_HANDLE(PZ));
	assert_not_made(dapl_eth_ep_create_with_srq(ia, pz, evd, evd, connect, (DAT_SRQ_HANDLE)srq, &attr, &handle),
			BAD_HANDLE(EVD_CONN));
	assert_null(core_eth.begun);
}

/* The call is as dat_ep_create then. */
UNIT_CASE(other_service_types_are_no_raw_endpoints)
{
	DAT_NAMED_ATTR named = { "delayed_ack", "true" };
	DAT_EP_ATTR attr = { .service_type = DAT_SERVICE_TYPE_RC, .ep_provider_specific = &named,
		.ep_provider_specific_count = 1 };

	core_ia->attr.delayed_ack = true;
	assert_int_equal(create_attr(&attr), DAT_SUCCESS);
	assert_true(ep()->delayed_ack);
	assert_null(ep()->eth);
	assert_int_equal(ep()->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(dapl_eth_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), BAD_STATE(EP_UNCONNECTED));
	free_ep();
	assert_int_equal(create_attr(NULL), DAT_SUCCESS);
	assert_null(ep()->eth);
	free_ep();
	assert_int_equal(dapl_eth_ep_create_with_srq((DAT_IA_HANDLE)core_ia, (DAT_PZ_HANDLE)core_pz, evd, evd, NULL,
						     (DAT_SRQ_HANDLE)srq, &attr, &handle), DAT_SUCCESS);
	assert_null(ep()->eth);
	assert_null(core_eth.begun);
}

UNIT_CASE(device_without_raw_endpoints_refuses_the_service_type)
{
	const DAT_EP_ATTR attr = raw_with(NULL, 0);

	core_eth_remove();
	assert_not_made(create(), BAD_PARAM(6));
	assert_not_made(create_shared(NULL, 0), BAD_PARAM(7));
	assert_not_made(dapl_eth_ep_create((DAT_IA_HANDLE)core_ia, NULL, evd, evd, NULL, &attr, &handle), BAD_PARAM(6));
	assert_null(core_eth.begun);
}

/* --- named attributes --------------------------------------------------------------------------------------------- */

UNIT_CASE(ring_has_the_frames_that_were_asked_for)
{
	DAT_NAMED_ATTR ring[] = { { "eth_receive", "ring" }, { "eth_frames", "100" }, { "eth_snap", "200" } };
	DAT_NAMED_ATTR post[] = { { "eth_frames", "100" }, { "eth_receive", "post" } };

	assert_int_equal(create_with(ring, 3), DAT_SUCCESS);
	assert_true(ep()->eth->ring);
	assert_int_equal(core_eth.config.ring_frames, 100);
	assert_int_equal(core_eth.config.snap, 200);
	free_ep();
	assert_int_equal(create_with(ring, 1), DAT_SUCCESS);
	assert_int_equal(core_eth.config.ring_frames, 4096);
	assert_int_equal(core_eth.config.snap, 0);
	free_ep();
	assert_int_equal(create_with(post, 2), DAT_SUCCESS);
	assert_int_equal(core_eth.config.ring_frames, 0);
	assert_false(ep()->eth->ring);
}

/* ETH-40 */
UNIT_CASE(af_xdp_needs_a_capability)
{
	DAT_NAMED_ATTR xdp[] = { { "eth_receive", "xdp" }, { "eth_frames", "100" } };

	assert_int_equal(create_with(xdp, 2), DAT_SUCCESS);
	assert_true(core_eth.config.xdp && ep()->eth->ring && ep()->eth->xdp);
	assert_int_equal(core_eth.config.ring_frames, 100);
	free_ep();
	assert_int_equal(create(), DAT_SUCCESS);
	assert_false(core_eth.config.xdp || ep()->eth->xdp);
	free_ep();
	assert_not_made(create_shared(xdp, 2), NOT_SUPPORTED);
	core_eth.attr.caps = ~(uint64_t)DAT_ETH_CAP_XDP;
	assert_not_made(create_with(xdp, 2), NOT_SUPPORTED);
	assert_int_equal(create(), DAT_SUCCESS);
}

UNIT_CASE(words_select_checksums_and_fcs)
{
	DAT_NAMED_ATTR on[] = { { "eth_checksum", "verify" }, { "eth_fcs", "keep" } };
	DAT_NAMED_ATTR off[] = { { "eth_checksum", "device" }, { "eth_fcs", "strip" } };

	assert_int_equal(create_with(&on[0], 1), DAT_SUCCESS);
	assert_true(core_eth.config.verify);
	assert_false(core_eth.config.fcs);
	free_ep();
	assert_int_equal(create_with(&on[1], 1), DAT_SUCCESS);
	assert_false(core_eth.config.verify);
	assert_true(core_eth.config.fcs);
	free_ep();
	assert_int_equal(create_with(off, 2), DAT_SUCCESS);
	assert_false(core_eth.config.verify || core_eth.config.fcs);
}

UNIT_CASE(limits_of_numbers_are_accepted)
{
	DAT_NAMED_ATTR least[] = { { "eth_receive", "ring" }, { "eth_frames", "1" }, { "eth_snap", "1" } };
	DAT_NAMED_ATTR most[] = { { "eth_receive", "ring" }, { "eth_frames", "1048576" }, { "eth_snap", "65536" } };

	assert_int_equal(create_with(least, 3), DAT_SUCCESS);
	assert_int_equal(core_eth.config.ring_frames, 1);
	assert_int_equal(core_eth.config.snap, 1);
	free_ep();
	assert_int_equal(create_with(most, 3), DAT_SUCCESS);
	assert_int_equal(core_eth.config.ring_frames, 1048576);
	assert_int_equal(core_eth.config.snap, 65536);
}

UNIT_CASE(other_names_and_values_are_refused)
{
	static const DAT_NAMED_ATTR bad[] = {
		{ NULL, "1" }, { "eth_frames", NULL }, { "eth_ring", "ring" }, { "delayed_ack", "false" }, { "", "" },
		{ "eth_frames", "" }, { "eth_frames", "0" }, { "eth_frames", "1048577" }, { "eth_frames", " 5" },
		{ "eth_frames", "+5" }, { "eth_frames", "-1" }, { "eth_frames", "5x" }, { "eth_frames", "0x10" },
		{ "eth_frames", "4294967297" }, { "eth_frames", "18446744073709551617" },
		{ "eth_snap", "0" }, { "eth_snap", "65537" }, { "eth_snap", "all" },
		{ "eth_receive", "" }, { "eth_receive", "Ring" }, { "eth_receive", "rings" }, { "eth_receive", "xdp4" },
		{ "eth_checksum", "true" }, { "eth_checksum", "keep" }, { "eth_fcs", "verify" }, { "eth_fcs", "" },
	};

	core_ia->attr.delayed_ack = true;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		DAT_NAMED_ATTR named[] = { { "eth_snap", "10" }, bad[i] };

		if (create_with(named, 2) != BAD_PARAM(6) || create_shared(named, 2) != BAD_PARAM(7) || handle)
			fail_msg("row %zu", i);
	}
	assert_null(core_eth.begun);
}

/* --- what fails later ------------------------------------------------------------------------------------------- */

UNIT_CASE(error_of_the_device_leaves_nothing)
{
	static const struct { int error; DAT_RETURN expected; } rows[] = {
		{ ENOENT, NOT_SUPPORTED }, { EPERM, DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE) },
		{ ENOMEM, NO_RESOURCE(TEP) }, { EOPNOTSUPP, NOT_SUPPORTED },
		{ EBUSY, DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE) },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		core_eth.begin_error = rows[i].error;
		assert_not_made(create(), rows[i].expected);
		assert_not_made(create_shared(NULL, 0), rows[i].expected);
		core_eth.begin_error = 0;
		core_eth.query_error = rows[i].error;
		assert_not_made(create(), rows[i].expected);
		core_eth.query_error = 0;
	}
	assert_int_equal(create(), DAT_SUCCESS);
}

/* Without a receive EVD the QP is not made before the endpoint begins. */
UNIT_CASE(missing_memory_leaves_nothing)
{
	fails_size = sizeof(struct dapl_eth);
	assert_not_made(create(), NO_RESOURCE(MEMORY));
	fails_size = sizeof(struct dapl_eth_frame);
	assert_not_made(create(), NO_RESOURCE(MEMORY));
	fails_size = 0;
	create_error = ENOMEM;
	assert_not_made(create(), NO_RESOURCE(TEP));
	evd = DAT_HANDLE_NULL;
	assert_not_made(create(), NO_RESOURCE(TEP));
	assert_null(core_eth.begun);
}

UNIT_CASE(fcs_needs_its_capability)
{
	DAT_NAMED_ATTR keep = { "eth_fcs", "keep" }, strip = { "eth_fcs", "strip" };

	core_eth.attr.caps = ~(uint64_t)DAT_ETH_CAP_FCS;
	assert_not_made(create_with(&keep, 1), NOT_SUPPORTED);
	assert_null(core_eth.begun);
	assert_int_equal(create_with(&strip, 1), DAT_SUCCESS);
	free_ep();
	core_eth.attr.caps = DAT_ETH_CAP_FCS;
	assert_int_equal(create_with(&keep, 1), DAT_SUCCESS);
}

UNIT_CASE(endpoint_that_an_ia_close_ends_is_not_handed_over)
{
	closes = true;
	assert_not_made(create(), BAD_HANDLE(IA));
	assert_null(core_eth.begun);
}

/* --- receives --------------------------------------------------------------------------------------------------- */

static void complete(uint32_t number, const void *record)
{
	core_complete(core_dto_evd, &(struct ibv_wc){ .wr_id = (uintptr_t)record, .opcode = IBV_WC_RECV,
		.src_qp = number,
		      .byte_len = 60, .qp_num = ep()->qpn });
}

/* `number` counts the frames of the endpoint. */
static void assert_frame_is_told(uint32_t number, const void *record)
{
	DAT_ETH_FRAME *frame;
	DAT_EVENT event;

	core_eth.config.frames[number & core_eth.config.mask] = (struct dapl_eth_frame){ .tag = number };
	complete(number, record);
	assert_int_equal(core_next_event(core_dto_evd, &event), DAT_ETH_DTO_EVENT);
	assert_ptr_equal(event.event_data.dto_completion_event_data.ep_handle, handle);
	frame = (DAT_ETH_FRAME *)event.event_extension_data;
	assert_int_equal(frame->tag, number);
}

/* The device writes it where events look for it, with as many frames as there can be receives. */
UNIT_CASE(frame_is_told_as_the_device_describes_it)
{
	assert_int_equal(create(), DAT_SUCCESS);
	assert_int_equal(core_eth.config.mask, 7);
	for (uint32_t i = 0; i < 20; i++)
		assert_frame_is_told(i, core_post(ep(), DAT_DTO_RECEIVE, REQ_EXTENSION, i));
}

/* An SRQ may be resized after the endpoint was made. */
UNIT_CASE(frames_are_kept_for_the_largest_srq)
{
	assert_int_equal(create_shared(NULL, 0), DAT_SUCCESS);
	assert_raw();
	assert_ptr_equal(wanted.srq, srq->srq);
	assert_int_equal(core_eth.config.mask, 1023);
	memset(core_eth.config.frames, 0xff, 1024 * sizeof *core_eth.config.frames);
	free_ep();
	core_ia->ia_attr.max_recv_per_srq = 1024;
	assert_int_equal(create_shared(NULL, 0), DAT_SUCCESS);
	assert_int_equal(core_eth.config.mask, 1023);
}

UNIT_CASE(ring_has_no_srq)
{
	DAT_NAMED_ATTR ring = { "eth_receive", "ring" };
	const DAT_EP_ATTR attr = raw_with(NULL, 0);
	const DAT_IA_HANDLE ia = (DAT_IA_HANDLE)core_ia;
	const DAT_PZ_HANDLE pz = (DAT_PZ_HANDLE)core_pz;

	assert_not_made(create_shared(&ring, 1), NOT_SUPPORTED);
	assert_not_made(dapl_eth_ep_create_with_srq(ia, pz, evd, evd, NULL, NULL, &attr, &handle), BAD_HANDLE(SRQ));
	assert_not_made(dapl_eth_ep_create_with_srq(ia, pz, evd, evd, NULL, (DAT_SRQ_HANDLE)srq, NULL, &handle),
			BAD_PARAM(7));
	assert_not_made(dapl_eth_ep_create_with_srq(ia, pz, evd, evd, NULL, (DAT_SRQ_HANDLE)srq, &attr, NULL),
			BAD_PARAM(8));
	assert_null(core_eth.begun);
}

/* --- disconnecting and freeing ---------------------------------------------------------------------------------- */

static unsigned errors;

static void count_error(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, ep()->qp);
	errors++;
}

/* There is no peer to be graceful with, whatever waits. */
UNIT_CASE(endpoint_is_disconnected_at_once)
{
	static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };

	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(create(), DAT_SUCCESS);
		core_device.error_qp = count_error;
		errors = 0;
		core_post(ep(), DAT_DTO_SEND, 0, 1);
		assert_int_equal(dapl_eth_ep_disconnect(handle, flags[i]), DAT_SUCCESS);
		assert_int_equal(ep()->state, DAT_EP_STATE_DISCONNECTED);
		assert_int_equal(errors, 1);
		assert_int_equal(dapl_eth_ep_disconnect(handle, flags[i]), DAT_SUCCESS);
		assert_int_equal(errors, 1);
		core_assert_refs(&ep()->obj, 1);
		free_ep();
	}
}

UNIT_CASE(refused_disconnect_keeps_the_rules)
{
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY };
	DAT_ETH_RULE_HANDLE added;

	assert_int_equal(create(), DAT_SUCCESS);
	assert_int_equal(dapl_eth_rule_add((DAT_HANDLE)handle, &rule, &added), DAT_SUCCESS);
	assert_int_equal(dapl_eth_ep_disconnect(handle, (DAT_CLOSE_FLAGS)7), BAD_PARAM(2));
	assert_int_equal(dapl_eth_rule_query(added, NULL, NULL, NULL), DAT_SUCCESS);
	core_assert_refs(&ep()->obj, 2);
	assert_int_equal(dapl_eth_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	core_assert_refs(&ep()->obj, 1);
	assert_int_equal(dapl_ep_reset(handle), DAT_SUCCESS);
	assert_int_equal(ep()->state, DAT_EP_STATE_CONNECTED);
	assert_int_equal(dapl_eth_rule_add((DAT_HANDLE)handle, &rule, &added), DAT_SUCCESS);
}

UNIT_CASE(freed_endpoint_leaves_nothing)
{
	DAT_EP_HANDLE freed;

	assert_int_equal(create_shared(NULL, 0), DAT_SUCCESS);
	assert_true(dapl_in_use(&core_dto_evd->obj) && dapl_in_use(&srq->obj));
	freed = handle;
	free_ep();
	core_assert_refs((struct dapl_object *)freed, 0);
	assert_not_made(dapl_eth_ep_free(freed), BAD_HANDLE(EP));
	assert_int_equal(dapl_eth_ep_free(NULL), BAD_HANDLE(EP));
	assert_int_equal(dapl_eth_ep_disconnect(freed, DAT_CLOSE_ABRUPT_FLAG), BAD_HANDLE(EP));
	assert_int_equal(create(), DAT_SUCCESS);
	assert_int_equal(dapl_eth_ep_disconnect(handle, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	free_ep();
	assert_not_made(DAT_SUCCESS, DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
