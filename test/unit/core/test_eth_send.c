/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_send.c - sends of raw Ethernet endpoints with offloads, and their rate: which the device does not see, and
 * what it is given (eth/send.c). */
#include "dapl/core/eth/send.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/core/core_eth.h"
#include "test/unit/unit.h"

enum { MESSAGE = 1514, TSO = 60000, RATE_MIN = 1000, RATE_MAX = 2000,
	ALL = DAT_ETH_CAP_TX_CSUM | DAT_ETH_CAP_TSO | DAT_ETH_CAP_VLAN_INSERT | DAT_ETH_CAP_LAUNCH |
		DAT_ETH_CAP_SEND_STAMP | DAT_ETH_CAP_INNER_CSUM | DAT_ETH_CAP_PACE };

static struct dapl_pz pz;
static struct dapl_eth eth;
static struct dapl_eth_send asked;
static struct dapl_eth_pace pace;
static struct dapl_dto *record;
static int posts, paces, error;

static int note_pace(struct ibv_qp *qp, const struct dapl_eth_pace *wanted)
{
	assert_ptr_equal(qp, core_qp());
	pace = *wanted;
	paces++;
	return 0;
}

static int note_post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	assert_ptr_equal(qp, core_qp());
	assert_int_equal(wr->opcode, IBV_WR_DRIVER1);
	asked = ((struct dapl_eth_wr *)wr)->how;
	record = (struct dapl_dto *)(uintptr_t)wr->wr_id;
	posts++;
	return error;
}

UNIT_FIXTURE(set_up)
{
	posts = paces = error = 0;
	core_eth_start();
	core_eth.attr.rate_min = RATE_MIN;
	core_eth.attr.rate_max = RATE_MAX;
	core_eth_ops.pace = note_pace;
	core_endpoint_open(16, DAT_EVD_DTO_FLAG, 16);
	core_device.post_send = note_post;
	eth = (struct dapl_eth){ .caps = ALL, .max_tso = TSO };
	pz = (struct dapl_pz){ .zero_based = false };
	ep->eth = &eth;
	ep->pz = &pz;
	ep->qp = core_qp();
	ep->is_ud = ep->is_raw = true;
	ep->max_send_iov = 2;
	ep->max_message = MESSAGE;
}

static DAT_RETURN send_frame(uint32_t length, DAT_ETH_SEND how)
{
	static char memory[TSO + 1];
	const DAT_LMR_TRIPLET iov = { .virtual_address = (uintptr_t)memory, .segment_length = length };

	return dapl_eth_post_send(ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = 7 }, &how, DAT_COMPLETION_DEFAULT_FLAG);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

CASE(members_without_their_flag_are_refused)
{
	static const DAT_ETH_SEND bad[] = {
		{ .flags = 0x40000 }, { .reserved0 = 1 }, { .reserved = 1 }, { .mss = 1 }, { .header_length = 1 },
		{ .flags = DAT_ETH_SEND_CSUM, .vlan_tci = 1 }, { .vlan_type = 0x8100 }, { .launch = 1 },
		{ .flags = DAT_ETH_SEND_STAMP | DAT_ETH_SEND_TSO },
		{ .flags = DAT_ETH_SEND_INNER_CSUM | DAT_ETH_SEND_TSO },
		{ .flags = DAT_ETH_SEND_VLAN, .vlan_type = 0x9100 },
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (send_frame(60, bad[i]) != BAD_PARAM(5))
			fail_msg("row %zu", i);
	assert_int_equal(dapl_eth_post_send(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 7 }, NULL,
					    DAT_COMPLETION_DEFAULT_FLAG), BAD_PARAM(5));
	assert_int_equal(posts, 0);
}

/* They are the sixth argument, behind those of the offload. */
CASE(completion_flags_are_told_apart_from_offloads)
{
	const DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_MORE };

	ep->request_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	assert_int_equal(dapl_eth_post_send(ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 7 }, &how,
					    DAT_COMPLETION_UNSIGNALLED_FLAG), BAD_PARAM(6));
	assert_int_equal(posts, 0);
}

CASE(offload_reaches_the_device_as_it_is)
{
	const DAT_ETH_SEND how = { .flags = DAT_ETH_SEND_TSO | DAT_ETH_SEND_VLAN | DAT_ETH_SEND_LAUNCH, .mss = 1000,
		.header_length = 54, .vlan_tci = 5, .vlan_type = 0x88a8, .launch = 99 };

	assert_int_equal(send_frame(60, how), DAT_SUCCESS);
	assert_memory_equal(&asked, &how, sizeof how);
	assert_int_equal(record->cookie.as_64, 7);
	assert_int_equal(record->flags, 0);
	assert_int_equal(ep->counters[DCNT_EP_POST_SEND_DATA], 60);
}

CASE(offload_needs_its_capability)
{
	static const struct { DAT_UINT32 flag; uint64_t cap; } rows[] = {
		{ DAT_ETH_SEND_CSUM, DAT_ETH_CAP_TX_CSUM }, { DAT_ETH_SEND_TSO, DAT_ETH_CAP_TSO },
		{ DAT_ETH_SEND_VLAN, DAT_ETH_CAP_VLAN_INSERT }, { DAT_ETH_SEND_LAUNCH, DAT_ETH_CAP_LAUNCH },
		{ DAT_ETH_SEND_STAMP, DAT_ETH_CAP_SEND_STAMP },
		{ DAT_ETH_SEND_INNER_CSUM, DAT_ETH_CAP_INNER_CSUM },
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		eth.caps = ALL & ~rows[i].cap;
		assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = rows[i].flag }), NOT_SUPPORTED);
		eth.caps = rows[i].cap;
		assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = rows[i].flag }), DAT_SUCCESS);
	}
	eth.caps = 0;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_MORE }), DAT_SUCCESS);
}

CASE(only_a_cut_message_is_longer_than_a_frame)
{
	const DAT_RETURN too_long = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);

	assert_int_equal(send_frame(MESSAGE + 1, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), too_long);
	assert_int_equal(send_frame(TSO + 1, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_TSO }), too_long);
	assert_int_equal(posts, 0);
	assert_int_equal(send_frame(MESSAGE, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), DAT_SUCCESS);
	assert_int_equal(send_frame(TSO, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_TSO }), DAT_SUCCESS);
}

/* Such a device finds the headers at the address of the segment, which must be a pointer then. */
CASE(zero_based_memory_is_refused_if_headers_are_read)
{
	pz.zero_based = true;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), DAT_SUCCESS);
	core_eth_ops.reads_headers = true;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), NOT_SUPPORTED);
	pz.zero_based = false;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), DAT_SUCCESS);
}

/* The device finds the headers that an offload needs, or does not. */
CASE(frame_that_does_not_fit_its_offload_is_a_bad_argument)
{
	error = EINVAL;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), BAD_PARAM(5));
	error = ENOMEM;
	assert_int_equal(send_frame(60, (DAT_ETH_SEND){ .flags = DAT_ETH_SEND_CSUM }), NO_RESOURCE(MEMORY));
}

static DAT_RETURN set_rate(uint64_t bits_per_s)
{
	return dapl_eth_pace(ep, &(DAT_ETH_PACE){ .bits_per_s = bits_per_s, .burst = 3000, .frame = 60 });
}

CASE(rate_is_within_the_limits_of_the_device)
{
	assert_int_equal(dapl_eth_pace(ep, NULL), BAD_PARAM(2));
	assert_int_equal(set_rate(RATE_MIN - 1), BAD_PARAM(2));
	assert_int_equal(set_rate(RATE_MAX + 1), BAD_PARAM(2));
	assert_int_equal(paces, 0);
	assert_int_equal(set_rate(RATE_MIN), DAT_SUCCESS);
	assert_int_equal(set_rate(RATE_MAX), DAT_SUCCESS);
	assert_int_equal(pace.bits_per_s, RATE_MAX);
	assert_int_equal(pace.burst, 3000);
	assert_int_equal(pace.frame, 60);
	assert_int_equal(set_rate(0), DAT_SUCCESS);	/* no limit */
	assert_int_equal(pace.bits_per_s, 0);
}

CASE(rate_needs_a_connected_endpoint_that_can_pace)
{
	eth.caps = ALL & ~DAT_ETH_CAP_PACE;
	assert_int_equal(set_rate(RATE_MIN), NOT_SUPPORTED);
	eth.caps = ALL;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	assert_int_equal(set_rate(RATE_MIN), BAD_STATE(EP_DISCONNECTED));
	ep->state = DAT_EP_STATE_CONNECTED;
	core_eth.query_error = EOPNOTSUPP;
	assert_int_equal(set_rate(RATE_MIN), NOT_SUPPORTED);
	assert_int_equal(paces, 0);
	core_eth.query_error = 0;
	assert_int_equal(set_rate(RATE_MIN), DAT_SUCCESS);	/* no refusal has left a lock */
}

UNIT_MAIN(NULL, NULL)
