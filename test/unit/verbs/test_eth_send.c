/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_send.c - sends of raw QPs: the request that the device gets, headers that do not fit the offload, what is
 * counted, and the rate. The device is replaced here. */
#include "dapl/verbs/eth_send.h"
#include "dapl/verbs/eth_types.h"
#include "dapl/verbs/hw.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/unit.h"

enum { ETHERNET = 14, IPV4 = 20, IPV6 = 40, TCP = 20, MTU = 1500, MAX_TSO = 4000, SOME_KEY = 9 };

static struct dapl_device dev;
static struct hw_eth_device eth = { .dev = &dev };
static struct verbs_context verbs;
static struct ibv_qp device_qp = { .context = &verbs.context };
static struct hw_eth q;

static struct {
	struct ibv_send_wr wr;
	struct ibv_sge sge[4];
	uint8_t header[256];
} sent[4];
static int posts, refuse_at;		/* the post of this number fails; -1: none */
static struct ibv_qp_rate_limit_attr rate;
static int rate_result;

static int post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	assert_ptr_equal(of, &device_qp);
	assert_null(wr->next);
	if (posts == refuse_at) {
		*bad = wr;
		return ENOMEM;
	}
	sent[posts].wr = *wr;
	for (int i = 0; i < wr->num_sge && i < 4; i++)
		sent[posts].sge[i] = wr->sg_list[i];
	if (wr->opcode == IBV_WR_TSO)
		memcpy(sent[posts].header, wr->tso.hdr, wr->tso.hdr_sz);
	posts++;
	return 0;
}

static int modify_rate(struct ibv_qp *of, struct ibv_qp_rate_limit_attr *attr)
{
	assert_ptr_equal(of, &device_qp);
	rate = *attr;
	return rate_result;
}

UNIT_FIXTURE(begin)
{
	verbs.sz = sizeof verbs;
	verbs.modify_qp_rate_limit = modify_rate;
	verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs.context.ops.post_send = post_send;
	memset(&q, 0, sizeof q);
	memset(sent, 0, sizeof sent);
	q.eth = &eth;
	q.hw = &device_qp;
	q.mtu = MTU;
	q.config.max_frame = ETHERNET + MTU;
	q.config.max_tso = MAX_TSO;
	posts = rate_result = 0;
	refuse_at = -1;
}

/* --- frames ------------------------------------------------------------------------------------------- */

static struct frame frame;

static void put_zeroes(size_t n)
{
	static const char zeroes[400];

	frame_put(&frame, zeroes, n);
}

/* Ethernet, IP, TCP without options and a payload; the length in the IP header is 0. */
static void message_over(int version, size_t payload)
{
	frame.length = 0;
	frame_put_ethernet(&frame, version == 4 ? 0x0800 : 0x86dd);
	if (version == 4)
		frame_put_ipv4(&frame, IPPROTO_TCP);
	else
		frame_put_ipv6(&frame, IPPROTO_TCP);
	put_zeroes(TCP);
	frame.bytes[frame.length - TCP + 12] = 5 << 4;
	memset(frame.bytes + ETHERNET + (version == 4 ? 2 : 4), 0, 2);
	put_zeroes(payload);
}

static uint16_t header_of(int version) { return ETHERNET + (version == 4 ? IPV4 : IPV6) + TCP; }
static void set_ip_length(uint16_t length) { memcpy(frame.bytes + ETHERNET + 2, &(uint16_t){ htons(length) }, 2); }

/* The frame in two segments, of which the first has `cut` bytes. */
static int post_cut(const struct dapl_eth_send *how, size_t cut, struct ibv_sge sge[2])
{
	struct dapl_eth_wr one = { .wr = { .wr_id = 7, .opcode = IBV_WR_DRIVER1, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge, .num_sge = 2 }, .how = *how };
	struct ibv_send_wr *bad;

	sge[0] = (struct ibv_sge){ (uintptr_t)frame.bytes, (uint32_t)cut, SOME_KEY };
	sge[1] = (struct ibv_sge){ (uintptr_t)frame.bytes + cut, (uint32_t)(frame.length - cut), SOME_KEY };
	return hw_eth_post_send(&q.qp, &one.wr, &bad);
}

static int post(const struct dapl_eth_send *how)
{
	struct ibv_sge sge[2];

	return post_cut(how, 20, sge);
}

static int post_csum(void) { return post(&(struct dapl_eth_send){ .flags = ETH_SEND_CSUM }); }

static int post_tso(uint16_t header, uint16_t mss)
{
	return post(&(struct dapl_eth_send){ .flags = ETH_SEND_TSO, .header_length = header, .mss = mss });
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

/* --- plain sends ---------------------------------------------------------------------------------------- */

TEST(frames_are_sent_one_by_one_and_counted)
{
	struct ibv_sge sge[3] = { { 0x1000, 60, 1 }, { 0x2000, 40, 1 }, { 0x3000, 5, 1 } };
	struct ibv_send_wr second = { .wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = sge + 2, .num_sge = 1 };
	struct ibv_send_wr first = { .wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge, .num_sge = 2, .next = &second }, *bad;

	assert_int_equal(hw_eth_post_send(&q.qp, &first, &bad), 0);
	assert_int_equal(posts, 2);
	assert_int_equal(sent[0].wr.wr_id, 1);
	assert_int_equal(sent[0].wr.send_flags, IBV_SEND_SIGNALED);
	assert_int_equal(sent[0].wr.opcode, IBV_WR_SEND);
	assert_int_equal(sent[1].wr.wr_id, 2);
	assert_int_equal(q.stats.sent, 2);
	assert_int_equal(q.stats.sent_bytes, 105);
	assert_ptr_equal(first.next, &second);
}

TEST(first_refused_request_ends_the_post)
{
	struct ibv_sge sge = { 0x1000, 60, 1 };
	struct ibv_send_wr wr[3], *bad;

	for (int i = 0; i < 3; i++)
		wr[i] = (struct ibv_send_wr){ .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
			.next = i < 2 ? &wr[i + 1] : NULL };
	refuse_at = 1;
	assert_int_equal(hw_eth_post_send(&q.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(posts, 1);
	assert_int_equal(q.stats.sent, 1);
	wr[0].opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(hw_eth_post_send(&q.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[0]);
	assert_int_equal(posts, 1);
}

/* Core passes on frames that exceed the limit by a VLAN tag. */
TEST(frame_above_the_limit_must_be_tagged)
{
	static uint8_t bytes[ETHERNET + MTU + 4];
	struct ibv_sge sge = { (uintptr_t)bytes, sizeof bytes, 1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(hw_eth_post_send(&q.qp, &wr, &bad), EMSGSIZE);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(posts, 0);
	bytes[12] = 0x81;
	assert_int_equal(hw_eth_post_send(&q.qp, &wr, &bad), 0);
	bytes[12] = 0;
	sge.length = ETHERNET + MTU;
	assert_int_equal(hw_eth_post_send(&q.qp, &wr, &bad), 0);
}

TEST(qp_that_has_not_begun_sends_nothing)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad = NULL;

	q.hw = NULL;
	assert_int_equal(hw_eth_post_send(&q.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(posts, 0);
}

TEST(flushed_frames_are_not_counted)
{
	q.ended = true;
	message_over(4, 100);
	set_ip_length(IPV4 + TCP + 100);
	assert_int_equal(post_csum(), 0);
	assert_int_equal(post_tso(header_of(4), 50), 0);
	assert_int_equal(posts, 2);
	assert_int_equal(q.stats.sent, 0);
	assert_int_equal(q.stats.sent_bytes, 0);
}

/* --- checksums ------------------------------------------------------------------------------------------------ */

TEST(checksums_are_a_flag_of_the_send)
{
	message_over(4, 100);
	set_ip_length(IPV4 + TCP + 100);
	assert_int_equal(post_csum(), 0);
	assert_int_equal(sent[0].wr.opcode, IBV_WR_SEND);
	assert_int_equal(sent[0].wr.send_flags, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM);
	assert_int_equal(q.stats.sent, 1);
	assert_int_equal(q.stats.sent_bytes, frame.length);
	assert_int_equal(post(&(struct dapl_eth_send){ .flags = ETH_SEND_MORE }), 0);
	assert_int_equal(sent[1].wr.send_flags, IBV_SEND_SIGNALED);
}

TEST(headers_in_pieces_are_read_as_a_whole)
{
	struct ibv_sge sge[2];

	message_over(4, 300);		/* longer than what is looked at */
	set_ip_length(IPV4 + TCP + 300);
	for (size_t cut = 0; cut <= frame.length; cut++) {
		posts = 0;
		assert_int_equal(post_cut(&(struct dapl_eth_send){ .flags = ETH_SEND_CSUM }, cut, sge), 0);
	}
}

TEST(empty_segment_needs_no_address)
{
	struct ibv_sge sge[2] = { { 0, 0, 0 } };
	struct dapl_eth_wr one = { .wr = { .opcode = IBV_WR_DRIVER1, .sg_list = sge, .num_sge = 2 },
		.how = { .flags = ETH_SEND_CSUM } };
	struct ibv_send_wr *bad;

	message_over(4, 100);
	set_ip_length(IPV4 + TCP + 100);
	sge[1] = (struct ibv_sge){ (uintptr_t)frame.bytes, (uint32_t)frame.length, SOME_KEY };
	assert_int_equal(hw_eth_post_send(&q.qp, &one.wr, &bad), 0);
	assert_int_equal(posts, 1);
}

TEST(ip_length_may_fill_the_frame_but_not_exceed_it)
{
	message_over(4, 100);
	set_ip_length(IPV4 + TCP + 101);
	assert_int_equal(post_csum(), EINVAL);
	set_ip_length(IPV4 + TCP + 100);
	frame.bytes[ETHERNET - 2] = 0x12;	/* not IP */
	assert_int_equal(post_csum(), EINVAL);
	assert_int_equal(posts, 0);
}

/* --- segmentation ------------------------------------------------------------------------------------------------ */

TEST(message_is_sent_with_its_header_apart)
{
	static const int versions[] = { 4, 6 };

	for (int i = 0; i < 2; i++) {
		uint16_t header = header_of(versions[i]);

		begin(state);
		message_over(versions[i], 100);
		assert_int_equal(post_tso(header, 30), 0);
		assert_int_equal(sent[0].wr.opcode, IBV_WR_TSO);
		assert_int_equal(sent[0].wr.wr_id, 7);
		assert_int_equal(sent[0].wr.send_flags, IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM);
		assert_int_equal(sent[0].wr.tso.hdr_sz, header);
		assert_int_equal(sent[0].wr.tso.mss, 30);
		assert_memory_equal(sent[0].header, frame.bytes, header);
		assert_int_equal(sent[0].wr.num_sge, 1);
		assert_int_equal(sent[0].sge[0].addr, (uintptr_t)frame.bytes + header);
		assert_int_equal(sent[0].sge[0].length, 100);
		assert_int_equal(sent[0].sge[0].lkey, SOME_KEY);
		assert_int_equal(q.stats.sent, 4);		/* 30, 30, 30, 10 */
		assert_int_equal(q.stats.sent_bytes, 100 + 4 * header);
	}
}

TEST(header_may_end_in_any_segment)
{
	struct dapl_eth_send how = { .flags = ETH_SEND_TSO, .header_length = header_of(4), .mss = 50 };
	struct ibv_sge sge[2];

	message_over(4, 100);
	assert_int_equal(post_cut(&how, header_of(4) + 60, sge), 0);
	assert_int_equal(sent[0].wr.num_sge, 2);
	assert_int_equal(sent[0].sge[0].addr, (uintptr_t)frame.bytes + header_of(4));
	assert_int_equal(sent[0].sge[0].length, 60);
	assert_int_equal(sent[0].sge[1].length, 40);
	assert_int_equal(sge[0].length, header_of(4) + 60);	/* the caller's stay */
	assert_int_equal(q.stats.sent, 2);
}

TEST(header_length_must_be_that_of_the_headers)
{
	message_over(4, 100);
	assert_int_equal(post_tso(header_of(4) - 1, 50), EINVAL);
	assert_int_equal(post_tso(header_of(4) + 1, 50), EINVAL);
	message_over(4, 0);
	assert_int_equal(post_tso(header_of(4), 50), EINVAL);	/* no payload */
	assert_int_equal(posts, 0);
}

TEST(frames_must_fit_the_mtu)
{
	message_over(4, 100);
	assert_int_equal(post_tso(header_of(4), 0), EINVAL);
	assert_int_equal(post_tso(header_of(4), MTU - IPV4 - TCP + 1), EINVAL);
	assert_int_equal(post_tso(header_of(4), MTU - IPV4 - TCP), 0);
}

TEST(only_whole_tcp_is_segmented)
{
	frame = frame_over(4, IPPROTO_UDP, 80);
	put_zeroes(100);
	assert_int_equal(post_tso(ETHERNET + IPV4 + 8, 50), EINVAL);
	message_over(4, 100);
	frame.bytes[ETHERNET + 6] = 0x20;	/* more fragments */
	assert_int_equal(post_tso(header_of(4), 50), EINVAL);
	message_over(4, 100);
	frame.bytes[ETHERNET - 2] = 0x12;	/* not IP */
	assert_int_equal(post_tso(header_of(4), 50), EINVAL);
	message_over(4, 100);
	frame.length = ETHERNET + 39;		/* cut */
	assert_int_equal(post_tso(header_of(4), 50), EINVAL);
	assert_int_equal(posts, 0);
}

TEST(refused_message_is_not_counted)
{
	message_over(4, 100);
	refuse_at = 0;
	assert_int_equal(post_tso(header_of(4), 50), ENOMEM);
	assert_int_equal(q.stats.sent, 0);
}

TEST(too_many_segments_are_refused)
{
	struct ibv_sge sge[HW_ETH_MAX_SGE + 1];
	struct dapl_eth_wr one = { .wr = { .opcode = IBV_WR_DRIVER1, .sg_list = sge, .num_sge = HW_ETH_MAX_SGE + 1 } };
	struct ibv_send_wr *bad;

	for (int i = 0; i <= HW_ETH_MAX_SGE; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)frame.bytes, 1, SOME_KEY };
	assert_int_equal(hw_eth_post_send(&q.qp, &one.wr, &bad), EINVAL);
	assert_int_equal(posts, 0);
	one.wr.num_sge = HW_ETH_MAX_SGE;
	assert_int_equal(hw_eth_post_send(&q.qp, &one.wr, &bad), 0);
}

/* --- pacing ----------------------------------------------------------------------------------------------------- */

TEST(rate_is_rounded_down_to_kilobits)
{
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 1234567, 3000, 1500 }), 0);
	assert_int_equal(rate.rate_limit, 1234);
	assert_int_equal(rate.max_burst_sz, 3000);
	assert_int_equal(rate.typical_pkt_sz, 1500);
	assert_true(q.paced);
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 1000, 0, 0xffff }), 0);
	assert_int_equal(rate.typical_pkt_sz, 0xffff);
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 1000, 0, 0x10005 }), 0);
	assert_int_equal(rate.typical_pkt_sz, 0xffff);
}

TEST(rate_of_zero_ends_the_pacing)
{
	q.paced = true;
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 0, 3000, 1500 }), 0);
	assert_int_equal(rate.rate_limit, 0);
	assert_int_equal(rate.max_burst_sz, 0);
	assert_int_equal(rate.typical_pkt_sz, 0);
	assert_false(q.paced);
	rate_result = -EOPNOTSUPP;
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 0, 0, 0 }), EOPNOTSUPP);
}

TEST(refused_rate_changes_nothing)
{
	rate_result = -EINVAL;
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 1000, 0, 0 }), EINVAL);
	assert_false(q.paced);
	q.paced = true;
	assert_int_equal(hw_eth_pace(&q.qp, &(struct dapl_eth_pace){ 0, 0, 0 }), EINVAL);
	assert_true(q.paced);
}

UNIT_MAIN(NULL, NULL)
