/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_probe.c - what is found out about a device: offloads that it names, flows and hashes that it makes when
 * asked, and that nothing is left of what was tried. */
#include "dapl/verbs/eth_clock.h"
#include "dapl/verbs/eth_flow.h"
#include "dapl/verbs/eth_probe.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

#define RAW (1u << IBV_QPT_RAW_PACKET)
#define OTHER (1u << IBV_QPT_RC)
#define HASH_ALL (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | \
		  IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP | \
		  IBV_RX_HASH_DST_PORT_UDP)
#define COUNT(a) (sizeof(a) / sizeof *(a))

/* --- flows, by what is special about them ------------------------------------------------------------------- */

enum kind { PLAIN, TAGS, PARTIAL, COPY, SNIFFER, VXLAN, INNER, KINDS };
static unsigned refused_kinds;		/* bit mask */
static int tried[KINDS];
static struct ibv_qp *target;		/* of the last flow */

static const void *spec_of(const struct ibv_flow_attr *flow, int type)
{
	const uint8_t *at = (const uint8_t *)(flow + 1), *end = (const uint8_t *)flow + flow->size;

	for (; at < end; at += ((const struct hw_spec_head *)(const void *)at)->size)
		if ((int)((const struct hw_spec_head *)(const void *)at)->type == type)
			return at;
	return NULL;
}

static enum kind kind_of(const struct ibv_flow_attr *flow)
{
	static const struct { int type; enum kind kind; } special[] = {
		{ IBV_FLOW_SPEC_ACTION_TAG, TAGS },
		{ IBV_FLOW_SPEC_INNER | IBV_FLOW_SPEC_ETH, INNER },
		{ IBV_FLOW_SPEC_VXLAN_TUNNEL, VXLAN },
	};
	const struct ibv_flow_spec_eth *ethernet = spec_of(flow, IBV_FLOW_SPEC_ETH);

	if (flow->type == IBV_FLOW_ATTR_SNIFFER)
		return SNIFFER;
	for (size_t i = 0; i < COUNT(special); i++)
		if (spec_of(flow, special[i].type))
			return special[i].kind;
	if (flow->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP)
		return COPY;
	return ethernet->mask.src_mac[0] ? PARTIAL : PLAIN;
}

/* A flow that is tried takes no frame from anything else, except the sniffer, which gets copies. */
static void harms_no_traffic(const struct ibv_flow_attr *flow)
{
	static const uint8_t local_unicast[1] = { 0x02 }, full[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const struct ibv_flow_spec_eth *ethernet = spec_of(flow, IBV_FLOW_SPEC_ETH);

	if (flow->type == IBV_FLOW_ATTR_SNIFFER)
		return;
	assert_int_equal(flow->type, IBV_FLOW_ATTR_NORMAL);
	assert_non_null(ethernet);
	assert_memory_equal(ethernet->mask.dst_mac, full, sizeof full);
	assert_memory_equal(ethernet->val.dst_mac, local_unicast, sizeof local_unicast);
}

static bool flow_is_known(struct ibv_qp *qp, const struct ibv_flow_attr *flow)
{
	enum kind kind = kind_of(flow);

	harms_no_traffic(flow);
	target = qp;
	tried[kind]++;
	return !(refused_kinds & 1u << kind);
}

static unsigned kinds_found(void)
{
	const struct hw_eth_caps *c = &eth.caps;

	return (unsigned)c->tags << TAGS | (unsigned)c->partial << PARTIAL | (unsigned)c->copy << COPY |
	       (unsigned)c->sniffer << SNIFFER | (unsigned)c->vxlan << VXLAN | (unsigned)c->inner << INNER;
}

static const unsigned all_kinds = (1u << KINDS) - 1 - (1u << PLAIN);

UNIT_FIXTURE(begin)
{
	refused_kinds = 0;
	memset(tried, 0, sizeof tried);
	target = NULL;
	objects_begin(state);
	has_flow = flow_is_known;
}

static void has_work_queues(void)
{
	device_attr.rss_caps = (struct ibv_rss_caps){ .supported_qpts = RAW | OTHER,
		.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ, .rx_hash_fields_mask = HASH_ALL,
		.max_rwq_indirection_table_size = 128 };
}

#define TEST(name) UNIT_TEST_WITH(name, begin, objects_end)

TEST(qp_to_try_is_a_small_raw_one)
{
	struct ibv_qp *qp;

	ibv_alloc_pd(dev.verbs);
	assert_int_equal(hw_eth_raw_qp(&dev, &objects.pd, &objects.cq, &qp), 0);
	assert_ptr_equal(qp, &objects.qp);
	assert_int_equal(asked_qp.qp_type, IBV_QPT_RAW_PACKET);
	assert_ptr_equal(asked_qp.pd, &objects.pd);
	assert_ptr_equal(asked_qp.send_cq, &objects.cq);
	assert_ptr_equal(asked_qp.recv_cq, &objects.cq);
	assert_int_equal(asked_qp.cap.max_send_wr, 1);
	assert_int_equal(asked_qp.cap.max_recv_wr, 1);
	assert_int_equal(asked_qp.cap.max_send_sge, 1);
	assert_int_equal(asked_qp.cap.max_recv_sge, 1);
	ibv_destroy_qp(qp);
	ibv_dealloc_pd(&objects.pd);
}

TEST(reason_of_the_refusal_is_told)
{
	struct ibv_qp *qp;

	failing = "qp";
	refusal = EPERM;
	assert_int_equal(hw_eth_raw_qp(&dev, &objects.pd, &objects.cq, &qp), EPERM);
	refusal = 0;
	assert_int_equal(hw_eth_raw_qp(&dev, &objects.pd, &objects.cq, &qp), EIO);
}

/* --- offloads --------------------------------------------------------------------------------------------------- */

TEST(offloads_are_those_that_the_device_names)
{
	device_attr.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM | IBV_RAW_PACKET_CAP_SCATTER_FCS;
	device_attr.tso_caps = (struct ibv_tso_caps){ .max_tso = 65536, .supported_qpts = RAW };
	device_attr.packet_pacing_caps = (struct ibv_packet_pacing_caps){ 10, 20000, RAW };
	device_attr.cq_mod_caps = (struct ibv_cq_moderation_caps){ .max_cq_count = 77, .max_cq_period = 88 };
	device_attr.hca_core_clock = 156250;
	device_attr.completion_timestamp_mask = 0xffffffff;
	hw_eth_probe(&eth);
	assert_true(eth.caps.checksums);
	assert_true(eth.caps.fcs);
	assert_int_equal(eth.caps.max_tso, 65536);
	assert_int_equal(eth.caps.rate_min, 10);
	assert_int_equal(eth.caps.rate_max, 20000);
	assert_int_equal(eth.caps.moderate_frames, 77);
	assert_int_equal(eth.caps.moderate_us, 88);
	assert_int_equal(eth.clock.khz, 156250);
	assert_int_equal(eth.clock.mask, 0xffffffff);
	assert_true(hw_eth_clock_works(&eth));
}

TEST(device_without_offloads_has_none)
{
	hw_eth_probe(&eth);
	assert_false(eth.caps.checksums || eth.caps.fcs || eth.caps.max_tso || eth.caps.rate_max ||
		     eth.caps.moderate_frames || eth.caps.work_queues || eth.caps.hash_fields);
	assert_false(hw_eth_clock_works(&eth));
}

TEST(offloads_of_other_qps_do_not_count)
{
	device_attr.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	device_attr.tso_caps = (struct ibv_tso_caps){ .max_tso = 65536, .supported_qpts = OTHER };
	device_attr.packet_pacing_caps = (struct ibv_packet_pacing_caps){ 10, 20000, OTHER };
	hw_eth_probe(&eth);
	assert_int_equal(eth.caps.max_tso, 0);
	assert_int_equal(eth.caps.rate_min, 0);
	assert_int_equal(eth.caps.rate_max, 0);
}

TEST(older_devices_name_checksums_elsewhere)
{
	device_attr.orig_attr.device_cap_flags = IBV_DEVICE_RAW_IP_CSUM;
	hw_eth_probe(&eth);
	assert_true(eth.caps.checksums);
	assert_false(eth.caps.fcs);
}

/* Segments have checksums of their own. */
TEST(segmentation_needs_checksums)
{
	device_attr.tso_caps = (struct ibv_tso_caps){ .max_tso = 65536, .supported_qpts = RAW };
	hw_eth_probe(&eth);
	assert_int_equal(eth.caps.max_tso, 0);
}

TEST(device_that_does_not_answer_has_no_offloads)
{
	has_work_queues();
	device_attr.raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
	device_attr.cq_mod_caps.max_cq_count = 77;
	failing = "query";
	hw_eth_probe(&eth);
	assert_false(eth.caps.checksums || eth.caps.moderate_frames || eth.caps.work_queues);
	assert_int_equal(kinds_found(), all_kinds);		/* of the QP */
}

/* --- flows ------------------------------------------------------------------------------------------------------ */

TEST(each_kind_of_flow_is_found_by_itself)
{
	for (int queues = 0; queues < 2; queues++)
		for (int kind = TAGS; kind < KINDS; kind++) {
			begin(state);
			if (queues)
				has_work_queues();
			refused_kinds = 1u << kind;
			hw_eth_probe(&eth);
			assert_int_equal(kinds_found(), all_kinds & ~refused_kinds);
			assert_int_equal(tried[kind], 1);
			nothing_is_alive();
		}
}

TEST(flows_are_tried_on_a_qp_that_sends)
{
	hw_eth_probe(&eth);
	assert_ptr_equal(target, &objects.qp);
	assert_non_null(strstr(steps, "qp qp:INIT qp:RTR qp:RTS flow -flow"));
	assert_non_null(strstr(steps, "flow -flow -qp -cq -pd"));
}

TEST(flows_are_tried_on_a_qp_over_a_work_queue_if_there_are_some)
{
	has_work_queues();
	hw_eth_probe(&eth);
	assert_true(eth.caps.work_queues);
	assert_int_equal(kinds_found(), all_kinds);
	assert_null(strstr(steps, "qp:INIT"));
	assert_non_null(strstr(steps, "wq wq:RDY table hash"));
	assert_non_null(strstr(steps, "-hash -table -wq -cq -pd"));
	assert_ptr_equal(target, &objects.hash);
	assert_ptr_equal(asked_wq.pd, &objects.pd);
	assert_ptr_equal(asked_wq.cq, &objects.cq);
}

TEST(work_queues_need_all_that_leads_frames_to_them)
{
	static const char *const words[] = { "wq", "wq:RDY", "table", "hash", "hash:INIT", "hash:RTR" };

	for (size_t i = 0; i < COUNT(words) + 3; i++) {
		begin(state);
		has_work_queues();
		if (i < COUNT(words))
			failing = words[i];
		else if (i == COUNT(words))
			refused_kinds = 1u << PLAIN;
		else if (i == COUNT(words) + 1)
			device_attr.rss_caps.supported_qpts = OTHER;
		else
			device_attr.rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ << 1;
		hw_eth_probe(&eth);
		assert_false(eth.caps.work_queues);
		assert_int_equal(eth.caps.hash_fields, 0);
		assert_ptr_equal(target, &objects.qp);
		assert_int_equal(kinds_found(), all_kinds);
		nothing_is_alive();
	}
}

/* --- hashes ----------------------------------------------------------------------------------------------------- */

static bool table_of_one(uint32_t size) { return size == 1; }

static bool hash_of_one_version(uint64_t fields)
{
	return !(fields & IBV_RX_HASH_SRC_IPV4) || !(fields & IBV_RX_HASH_SRC_IPV6);
}

static bool hash_of_nothing(uint64_t fields) { return !fields; }

TEST(hashes_are_joint_if_one_qp_has_all_fields)
{
	has_work_queues();
	hw_eth_probe(&eth);
	assert_true(eth.caps.joint_hash);
	assert_int_equal(eth.caps.hash_fields, HASH_ALL);
	assert_int_equal(eth.caps.max_table, 128);
	assert_int_equal(asked_hash.rx_hash_conf.rx_hash_fields_mask, HASH_ALL);
	assert_ptr_equal(asked_queues[0], &objects.wq);
	assert_ptr_equal(asked_queues[1], &objects.wq);
}

TEST(hashes_of_one_version_suffice_for_groups)
{
	has_work_queues();
	has_hash = hash_of_one_version;
	hw_eth_probe(&eth);
	assert_false(eth.caps.joint_hash);
	assert_int_equal(eth.caps.hash_fields, HASH_ALL);
	assert_int_equal(eth.caps.max_table, 128);
	assert_int_equal(asked_hash.rx_hash_conf.rx_hash_fields_mask, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
									      IBV_RX_HASH_SRC_PORT_TCP |
									      IBV_RX_HASH_DST_PORT_TCP);
}

/* A table that names a queue once only, as with mlx4, a hash of no fields, frames without tags, a field that is
 * missing. */
TEST(groups_need_tables_hashes_and_tags)
{
	for (int lack = 0; lack < 4; lack++) {
		begin(state);
		has_work_queues();
		has_table = lack == 0 ? table_of_one : NULL;
		has_hash = lack == 1 ? hash_of_nothing : NULL;
		refused_kinds = lack == 2 ? 1u << TAGS : 0;
		if (lack == 3)
			device_attr.rss_caps.rx_hash_fields_mask &= ~(uint64_t)IBV_RX_HASH_DST_PORT_UDP;
		hw_eth_probe(&eth);
		assert_true(eth.caps.work_queues);
		assert_false(eth.caps.joint_hash);
		assert_int_equal(eth.caps.hash_fields, 0);
		nothing_is_alive();
	}
}

TEST(probing_that_fails_finds_nothing_and_leaves_nothing)
{
	static const char *const words[] = { "pd", "cq", "qp", "qp:INIT", "qp:RTR", "qp:RTS" };

	for (size_t i = 0; i < COUNT(words); i++) {
		begin(state);
		failing = words[i];
		device_attr.cq_mod_caps.max_cq_count = 77;
		hw_eth_probe(&eth);
		assert_int_equal(kinds_found(), 0);
		assert_int_equal(eth.caps.moderate_frames, 77);		/* that needs no objects */
		nothing_is_alive();
	}
}

UNIT_MAIN(NULL, NULL)
