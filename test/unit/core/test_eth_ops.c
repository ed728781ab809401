/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_ops.c - the calls of dat_eth_extensions.h (eth/ops.c): arguments that are refused, and what the device is
 * asked and answers. Sends, rules and groups have programs of their own; here their arguments come in order. */
#include "dapl/core/eth/ep.h"
#include "dapl/core/eth/eth.h"
#include "dapl/core/eth/ops.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

#define INTERNAL_ERROR DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE)
#define GONE DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)

enum { BYTES = 256, UNTOUCHED = 0xa5 };

static struct dapl_ep *ep, *ring;

/* --- the device ------------------------------------------------------------------------------------------- */

static int error;			/* of the next calls */
static unsigned calls;
static int polled;			/* what a poll answers */
static int max_asked;
static uint32_t oldest_asked, frames_asked, us_asked;
static uint64_t armed_wr;
static struct dapl_eth_frame *frames_at;
static unsigned notices;		/* of the receive EVD */

static void assert_locked(const struct dapl_mutex *lock)
{
	assert_int_not_equal(__atomic_load_n(&lock->state, __ATOMIC_RELAXED), 0);
}

static int poll_ring(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max)
{
	assert_ptr_equal(qp, ring->qp);
	assert_locked(&ring->lock);
	calls++;
	frames_at = frames;
	max_asked = max;
	return polled;
}

static int release(struct ibv_qp *qp, uint32_t oldest)
{
	assert_ptr_equal(qp, ring->qp);
	assert_locked(&ring->lock);
	calls++;
	oldest_asked = oldest;
	return error;
}

static int arm(struct ibv_qp *qp, uint64_t wr_id)
{
	assert_ptr_equal(qp, ring->qp);
	assert_locked(&ring->lock);
	calls++;
	armed_wr = wr_id;
	return error;
}

static void stats(struct ibv_qp *qp, struct dapl_eth_stats *to)
{
	assert_ptr_equal(qp, ring->qp);
	assert_locked(&ring->lock);
	calls++;
	*to = (struct dapl_eth_stats){ .received = 1, .received_bytes = 2, .bad = 8 };
}

static int read_clock(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns)
{
	calls++;
	*device_ns = 11;
	*system_ns = 22;
	*error_ns = 33;
	return error;
}

static int moderate(struct ibv_cq *cq, uint32_t frames, uint32_t microseconds)
{
	assert_ptr_equal(cq, core_dto_evd->cq);
	assert_locked(&core_dto_evd->mutex);
	calls++;
	frames_asked = frames;
	us_asked = microseconds;
	return error;
}

static int set_group(struct ibv_qp *group, const uint16_t *table)
{
	assert_ptr_equal(group, core_eth.groups[0]);
	assert_int_equal(table[0], 0);
	calls++;
	return error;
}

REPLACE(dapl_evd_notify)
void __wrap_dapl_evd_notify(struct dapl_evd *evd)
{
	assert_ptr_equal(evd, core_dto_evd);
	notices++;
}

/* --- a case -------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_eth_open(state), 0);
	core_eth_ops.poll = poll_ring;
	core_eth_ops.release = release;
	core_eth_ops.arm = arm;
	core_eth_ops.stats = stats;
	core_eth_ops.clock = read_clock;
	core_eth_ops.moderate = moderate;
	core_eth_ops.set_group = set_group;
	ep = core_eth_ep();
	ring = core_eth_ring_ep();
	error = polled = 0;
	calls = notices = 0;
}

/* No call is inside an object any more, or holds its lock. */
static int tear_down(void **state)
{
	core_assert_refs(&ep->obj, 1);
	core_assert_refs(&ring->obj, 1);
	core_assert_refs(&core_ia->obj, 1);
	assert_int_equal(core_dto_evd->obj.calls, 0);
	assert_int_equal(core_dto_evd->mutex.state, 0);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)ring), DAT_SUCCESS);
	return core_eth_close(state);
}

/* As dat_extension_op(). */
static DAT_RETURN call(void *handle, int op, ...)
{
	DAT_RETURN ret;
	va_list args;

	va_start(args, op);
	ret = dapl_eth_op((DAT_HANDLE)handle, (DAT_EXTENDED_OP)op, args);
	va_end(args);
	return ret;
}

static DAT_RETURN poll_frames(void *at, DAT_ETH_FRAME *frames, DAT_COUNT max, DAT_COUNT *got)
{
	return call(at, DAT_ETH_POLL_OP, frames, max, got);
}

static DAT_RETURN poll_one(void *at)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got;

	return poll_frames(at, &frame, 1, &got);
}

static DAT_RETURN release_frames(void *at, DAT_COUNT oldest) { return call(at, DAT_ETH_RELEASE_OP, oldest); }
static DAT_RETURN arm_ring(void *at) { return call(at, DAT_ETH_ARM_OP); }

/* --- structs of any size ----------------------------------------------------------------------------------------- */

/* A struct whose first member is its size, with bytes behind it. */
union sized {
	DAT_UINT32 size;
	uint8_t bytes[BYTES];
};

static DAT_RETURN fill(union sized *to, DAT_UINT32 size, void *handle, int op)
{
	memset(to, UNTOUCHED, sizeof *to);
	to->size = size;
	return call(handle, op, to);
}

static void assert_untouched(const union sized *to, size_t from)
{
	for (size_t i = from; i < BYTES; i++)
		if (to->bytes[i] != UNTOUCHED)
			fail_msg("byte %zu", i);
}

/* The first `have` bytes of `is`, after its size, must be those of the device. */
static void assert_filled_by_size(void *handle, int op, const void *is, size_t have)
{
	const DAT_UINT32 sizes[] = { 4, 8, 17, (DAT_UINT32)have, (DAT_UINT32)have + 9 };
	union sized to;

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const size_t filled = sizes[i] < have ? sizes[i] : have;

		assert_int_equal(fill(&to, sizes[i], handle, op), DAT_SUCCESS);
		assert_int_equal(to.size, sizes[i]);
		assert_memory_equal(&to.bytes[4], (const uint8_t *)is + 4, filled - 4);
		assert_untouched(&to, filled);
	}
	assert_int_equal(fill(&to, 3, handle, op), BAD_PARAM(2));
	assert_untouched(&to, 4);
	assert_int_equal(fill(&to, 0, handle, op), BAD_PARAM(2));
	assert_untouched(&to, 4);
	assert_int_equal(call(handle, op, NULL), BAD_PARAM(2));
}

UNIT_CASE(query_fills_in_what_the_caller_has_room_for)
{
	core_eth.attr.mtu = 1500;
	core_eth.attr.max_table = 128;
	assert_filled_by_size(core_ia, DAT_ETH_QUERY_OP, &core_eth.attr, sizeof core_eth.attr);
}

UNIT_CASE(stats_fill_in_what_the_caller_has_room_for)
{
	const struct dapl_eth_stats is = { .received = 1, .received_bytes = 2, .bad = 8 };

	assert_filled_by_size(ring, DAT_ETH_STATS_OP, &is, sizeof is);
}

/* --- the IA ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(provider_without_raw_endpoints_has_no_calls)
{
	static const int ops[] = { DAT_ETH_QUERY_OP, DAT_ETH_CLOCK_OP, DAT_ETH_MODERATE_OP, DAT_ETH_RULE_FREE_OP,
		DAT_ETH_GROUP_FREE_OP, DAT_ETH_ARM_OP };

	core_eth_remove();
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		assert_int_equal(call(core_ia, ops[i], NULL, NULL, NULL),
				 DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE));
}

static const struct {
	int error;
	DAT_RETURN expected;
} device_errors[] = { { ENOENT, NOT_SUPPORTED }, { EOPNOTSUPP, NOT_SUPPORTED }, { ENODEV, GONE },
	{ EIO, INTERNAL_ERROR },
	{ ENOMEM, NO_RESOURCE(DEVICE) } };
enum { DEVICE_ERRORS = sizeof device_errors / sizeof *device_errors };

UNIT_CASE(query_is_of_an_ia)
{
	union sized to;

	assert_int_equal(fill(&to, 8, NULL, DAT_ETH_QUERY_OP), BAD_HANDLE(IA));
	assert_int_equal(fill(&to, 8, ep, DAT_ETH_QUERY_OP), BAD_HANDLE(IA));
	assert_untouched(&to, 4);
	for (int i = 0; i < DEVICE_ERRORS; i++) {
		core_eth.query_error = device_errors[i].error;
		assert_int_equal(fill(&to, 8, core_ia, DAT_ETH_QUERY_OP), device_errors[i].expected);
		assert_untouched(&to, 4);
	}
}

UNIT_CASE(clock_tells_three_times)
{
	DAT_UINT64 t[3] = { 0 };

	assert_int_equal(call(core_ia, DAT_ETH_CLOCK_OP, &t[0], &t[1], &t[2]), DAT_SUCCESS);
	assert_int_equal(t[0], 11);
	assert_int_equal(t[1], 22);
	assert_int_equal(t[2], 33);
}

UNIT_CASE(refused_clock_changes_nothing)
{
	DAT_UINT64 t[3] = { 1, 2, 3 };

	assert_int_equal(call(NULL, DAT_ETH_CLOCK_OP, &t[0], &t[1], &t[2]), BAD_HANDLE(IA));
	assert_int_equal(call(ep, DAT_ETH_CLOCK_OP, &t[0], &t[1], &t[2]), BAD_HANDLE(IA));
	assert_int_equal(call(core_ia, DAT_ETH_CLOCK_OP, NULL, &t[1], &t[2]), BAD_PARAM(2));
	assert_int_equal(call(core_ia, DAT_ETH_CLOCK_OP, &t[0], NULL, &t[2]), BAD_PARAM(3));
	assert_int_equal(call(core_ia, DAT_ETH_CLOCK_OP, &t[0], &t[1], NULL), BAD_PARAM(4));
	assert_int_equal(calls, 0);
	for (int i = 0; i < DEVICE_ERRORS; i++) {
		error = device_errors[i].error;
		assert_int_equal(call(core_ia, DAT_ETH_CLOCK_OP, &t[0], &t[1], &t[2]), device_errors[i].expected);
	}
	assert_int_equal(t[0], 1);
	assert_int_equal(t[1], 2);
	assert_int_equal(t[2], 3);
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

UNIT_CASE(poll_gives_what_the_device_has)
{
	DAT_ETH_FRAME frames[4];
	DAT_COUNT got = 9;

	polled = 3;
	assert_int_equal(poll_frames(ring, frames, 4, &got), DAT_SUCCESS);
	assert_int_equal(got, 3);
	assert_ptr_equal(frames_at, frames);
	assert_int_equal(max_asked, 4);
	polled = 0;
	assert_int_equal(poll_frames(ring, frames, 1, &got), (DAT_RETURN)DAT_QUEUE_EMPTY);	/* the whole value */
	assert_int_equal(got, 0);
}

UNIT_CASE(failed_poll_changes_nothing)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got = 9;

	polled = -EIO;
	assert_int_equal(poll_frames(ring, &frame, 1, &got), INTERNAL_ERROR);
	polled = -ENODEV;
	assert_int_equal(poll_frames(ring, &frame, 1, &got), GONE);
	assert_int_equal(got, 9);
}

UNIT_CASE(arguments_of_a_poll_are_checked)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got;

	assert_int_equal(poll_frames(ring, NULL, 1, &got), BAD_PARAM(2));
	assert_int_equal(poll_frames(ring, &frame, 0, &got), BAD_PARAM(3));
	assert_int_equal(poll_frames(ring, &frame, -1, &got), BAD_PARAM(3));
	assert_int_equal(poll_frames(ring, &frame, 1, NULL), BAD_PARAM(4));
	assert_int_equal(calls, 0);
}

UNIT_CASE(release_gives_back_the_oldest)
{
	assert_int_equal(release_frames(ring, 5), DAT_SUCCESS);
	assert_int_equal(oldest_asked, 5);
	assert_int_equal(release_frames(ring, 0), DAT_SUCCESS);
	assert_int_equal(oldest_asked, 0);
	error = EINVAL;			/* more than were polled */
	assert_int_equal(release_frames(ring, 6), BAD_PARAM(2));
	assert_int_equal(calls, 3);
	error = 0;
	assert_int_equal(release_frames(ring, -1), BAD_PARAM(2));
	assert_int_equal(calls, 3);
}

/* The device completes this record, of which core makes the event. */
UNIT_CASE(arm_names_the_ready_record)
{
	assert_int_equal(arm_ring(ring), DAT_SUCCESS);
	assert_int_equal(calls, 1);
	assert_true(armed_wr == (uintptr_t)&ring->eth->ready);
	assert_int_equal(notices, 0);
	error = ENOMEM;
	assert_int_equal(arm_ring(ring), NO_RESOURCE(MEMORY));
	assert_int_equal(notices, 0);
}

/* The completion is in the CQ, and no event of the CQ wakes the thread that waits. */
UNIT_CASE(ready_ring_wakes_the_waiter_at_once)
{
	error = EALREADY;
	assert_int_equal(arm_ring(ring), DAT_SUCCESS);
	assert_int_equal(notices, 1);
}

UNIT_CASE(arm_needs_a_receive_evd)
{
	ring->recv_evd = NULL;
	assert_int_equal(arm_ring(ring), BAD_HANDLE(EVD_RECV));
	assert_int_equal(poll_one(ring), (DAT_RETURN)DAT_QUEUE_EMPTY);	/* which needs none */
	assert_int_equal(calls, 1);
	ring->recv_evd = core_dto_evd;
}

UNIT_CASE(ring_calls_need_a_ring)
{
	assert_int_equal(poll_one(ep), NOT_SUPPORTED);
	assert_int_equal(release_frames(ep, 0), NOT_SUPPORTED);
	assert_int_equal(arm_ring(ep), NOT_SUPPORTED);
	assert_int_equal(calls, 0);
}

static void assert_ring_refused(DAT_RETURN expected)
{
	assert_int_equal(poll_one(ring), expected);
	assert_int_equal(release_frames(ring, 0), expected);
	assert_int_equal(arm_ring(ring), expected);
	assert_int_equal(calls, 0);
}

UNIT_CASE(ring_is_read_while_the_endpoint_is_connected)
{
	struct ibv_qp *qp = ring->qp;
	union sized to;

	ring->qp = NULL;		/* its reset has failed */
	assert_ring_refused(dapl_status_bad_ep_state(DAT_EP_STATE_CONNECTED));
	assert_int_equal(fill(&to, 8, ring, DAT_ETH_STATS_OP), dapl_status_bad_ep_state(DAT_EP_STATE_CONNECTED));
	assert_untouched(&to, 4);
	ring->qp = qp;
	assert_int_equal(dapl_eth_ep_disconnect((DAT_EP_HANDLE)ring, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	assert_ring_refused(BAD_STATE(EP_DISCONNECTED));
	assert_int_equal(fill(&to, 8, ring, DAT_ETH_STATS_OP), DAT_SUCCESS);	/* what was counted stays */
}

static DAT_RETURN moderate_evd(void *handle, DAT_COUNT frames, DAT_UINT32 us)
{
	return call(handle, DAT_ETH_MODERATE_OP, frames, us);
}

UNIT_CASE(moderation_is_set_for_the_cq_of_the_evd)
{
	assert_int_equal(moderate_evd(core_dto_evd, 16, 50), DAT_SUCCESS);
	assert_int_equal(frames_asked, 16);
	assert_int_equal(us_asked, 50);
	assert_int_equal(moderate_evd(core_dto_evd, 0, 0), DAT_SUCCESS);
	assert_int_equal(frames_asked, 0);
	assert_int_equal(us_asked, 0);
	error = EINVAL;			/* more than the device has */
	assert_int_equal(moderate_evd(core_dto_evd, 16, 50), BAD_PARAM(2));
	error = ENOMEM;
	assert_int_equal(moderate_evd(core_dto_evd, 16, 50), NO_RESOURCE(DEVICE));
}

UNIT_CASE(refused_moderation_does_not_reach_the_device)
{
	assert_int_equal(moderate_evd(NULL, 16, 50), BAD_HANDLE(EVD_REQUEST));
	assert_int_equal(moderate_evd(ep, 16, 50), BAD_HANDLE(EVD_REQUEST));
	assert_int_equal(moderate_evd(core_conn_evd, 16, 50), BAD_HANDLE(EVD_REQUEST));
	assert_int_equal(core_conn_evd->obj.calls, 0);
	assert_int_equal(moderate_evd(core_dto_evd, -1, 50), BAD_PARAM(2));
	assert_int_equal(moderate_evd(core_dto_evd, 1, 0), BAD_PARAM(3));
	core_eth_ops.moderate = NULL;
	assert_int_equal(moderate_evd(core_dto_evd, 16, 50), NOT_SUPPORTED);
	assert_int_equal(calls, 0);
}

/* --- which call it is ------------------------------------------------------------------------------------------- */

UNIT_CASE(calls_of_an_endpoint_need_a_raw_one)
{
	static const int ops[] = { DAT_ETH_POLL_OP, DAT_ETH_RELEASE_OP, DAT_ETH_ARM_OP, DAT_ETH_POST_SEND_OP,
		DAT_ETH_PACE_OP, DAT_ETH_STATS_OP, DAT_ETH_MODERATE_OP + 1 };
	struct dapl_ep *plain = core_objects_ep(NULL, NULL);
	void *handles[] = { NULL, core_ia, plain };

	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
			if (call(handles[k], ops[i], NULL, NULL, NULL, NULL, NULL) != BAD_HANDLE(EP))
				fail_msg("operation %zu, handle %zu", i, k);
	core_assert_refs(&plain->obj, 1);
	assert_int_equal(dapl_eth_ep_free((DAT_EP_HANDLE)plain), DAT_SUCCESS);
	assert_int_equal(call(ep, DAT_ETH_MODERATE_OP + 1), NOT_SUPPORTED);
}

static struct dapl_eth_wr posted;
static struct ibv_sge posted_segments[2];

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, ep->qp);
	assert_int_equal(wr->num_sge, 2);
	posted = *(struct dapl_eth_wr *)wr;
	memcpy(posted_segments, wr->sg_list, sizeof posted_segments);
	return 0;
}

UNIT_CASE(send_comes_with_its_arguments_in_order)
{
	const DAT_LMR_TRIPLET iov[] = { { .virtual_address = 64, .segment_length = 20 },
		{ .virtual_address = 128, .segment_length = 40 } };
	const DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_VLAN, .vlan_tci = 5 };
	const DAT_DTO_COOKIE cookie = { .as_64 = 77 };

	ep->max_send_iov = 2;
	core_device.post_send = note_post;
	assert_int_equal(call(ep, DAT_ETH_POST_SEND_OP, 2, iov, cookie, &how, DAT_COMPLETION_DEFAULT_FLAG),
			 DAT_SUCCESS);
	assert_int_equal(posted_segments[0].length, 20);
	assert_int_equal(posted_segments[1].length, 40);
	assert_int_equal(posted.how.vlan_tci, 5);
	assert_int_equal(((struct dapl_dto *)(uintptr_t)posted.wr.wr_id)->cookie.as_64, 77);
	assert_int_equal(call(ep, DAT_ETH_POST_SEND_OP, 2, iov, cookie, &how, DAT_COMPLETION_UNSIGNALLED_FLAG),
			 BAD_PARAM(6));
}

static int note_pace(struct ibv_qp *qp, const struct dapl_eth_pace *pace)
{
	assert_ptr_equal(qp, ep->qp);
	assert_int_equal(pace->bits_per_s, 8);
	calls++;
	return 0;
}

UNIT_CASE(rate_is_set)
{
	const DAT_ETH_PACE pace = { .bits_per_s = 8 };

	core_eth_ops.pace = note_pace;
	core_eth.attr.rate_max = 9;
	assert_int_equal(call(ep, DAT_ETH_PACE_OP, &pace), DAT_SUCCESS);
	assert_int_equal(calls, 1);
}

UNIT_CASE(calls_for_rules_come_with_their_arguments_in_order)
{
	const DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .tag = 4 };
	DAT_ETH_RULE_HANDLE handle;
	DAT_UINT64 frames, bytes;
	DAT_ETH_RULE copy;

	assert_int_equal(call(ep, DAT_ETH_RULE_ADD_OP, &rule, &handle), DAT_SUCCESS);
	core_eth.rules[0].frames = 6;
	core_eth.rules[0].bytes = 360;
	assert_int_equal(call(handle, DAT_ETH_RULE_QUERY_OP, &copy, &frames, &bytes), DAT_SUCCESS);
	assert_int_equal(copy.tag, 4);
	assert_int_equal(frames, 6);
	assert_int_equal(bytes, 360);
	assert_int_equal(call(handle, DAT_ETH_RULE_MOVE_OP, ring), DAT_SUCCESS);
	assert_int_equal(core_eth_count(ring->qp), 1);
	assert_int_equal(call(handle, DAT_ETH_RULE_FREE_OP), DAT_SUCCESS);
	assert_int_equal(core_eth_count(ring->qp), 0);
}

UNIT_CASE(calls_for_groups_come_with_their_arguments_in_order)
{
	static const uint16_t table[1];
	const DAT_ETH_RSS rss = { .fields = DAT_ETH_RSS_IP, .table_size = 1, .table = table };
	const DAT_EP_HANDLE members[] = { (DAT_EP_HANDLE)ep, (DAT_EP_HANDLE)ring };
	DAT_ETH_GROUP_HANDLE group;

	assert_int_equal(call(core_ia, DAT_ETH_GROUP_CREATE_OP, 2, members, &rss, &group), DAT_SUCCESS);
	assert_int_equal(((struct dapl_group *)group)->members, 2);
	assert_int_equal(call(group, DAT_ETH_GROUP_SET_OP, table), DAT_SUCCESS);
	assert_int_equal(calls, 1);
	assert_int_equal(call(group, DAT_ETH_GROUP_FREE_OP), DAT_SUCCESS);
	assert_null(core_eth.groups[0]);
}

UNIT_MAIN(NULL, NULL)
