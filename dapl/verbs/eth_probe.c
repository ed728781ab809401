/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_probe.c - finds out which flows a device supports by making some, since no query reports it. These
 * flows match an address that no station has, and exist for a moment. ibv_query_device_ex reports the other
 * offloads. */
#include "eth_clock.h"
#include "eth_flow.h"
#include "eth_hash.h"
#include "eth_probe.h"
#include "eth_qp.h"
#include "eth_wq.h"
#include "hw.h"
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

int hw_eth_raw_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_cq *cq, struct ibv_qp **qp)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RAW_PACKET, .pd = pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 } };

	*qp = ibv_create_qp_ex(dev->verbs, &attr);
	return *qp ? 0 : hw_null_errno();
}

/* --- rules to try ------------------------------------------------------------------------- */

static void ask_nothing_more(struct dapl_eth_rule *rule)
{
	(void)rule;
}

static void ask_partial(struct dapl_eth_rule *rule)
{
	rule->key.src[0] = 0x02;
	rule->mask.src[0] = 0xff;
}

static void ask_copy(struct dapl_eth_rule *rule)
{
	rule->mode = ETH_COPY;
}

static void ask_sniffer(struct dapl_eth_rule *rule)
{
	*rule = (struct dapl_eth_rule){ .mode = ETH_COPY, .flags = ETH_ALL | ETH_EGRESS };
}

static void ask_tunnel(struct dapl_eth_rule *rule, uint32_t tunnel)
{
	rule->key.ip_version = 4;
	rule->mask.ip_version = 0xff;
	rule->key.tunnel = tunnel;
	rule->mask.tunnel = rule->mask.tunnel_id = 0xffffffff;
	rule->key.tunnel_id = htonl(1);
}

static void ask_vxlan(struct dapl_eth_rule *rule)
{
	ask_tunnel(rule, ETH_VXLAN);
}

static void ask_inner(struct dapl_eth_rule *rule)
{
	ask_vxlan(rule);
	rule->inner_key.dst[0] = 0x02;
	memset(rule->inner_mask.dst, 0xff, sizeof rule->inner_mask.dst);
}

static const struct {
	void (*ask)(struct dapl_eth_rule *rule);
	uint32_t tag;
	size_t found;			/* member of hw_eth_caps */
} shapes[] = {
	{ ask_nothing_more, 1, offsetof(struct hw_eth_caps, tags) },
	{ ask_partial, 0, offsetof(struct hw_eth_caps, partial) },
	{ ask_copy, 0, offsetof(struct hw_eth_caps, copy) },
	{ ask_sniffer, 0, offsetof(struct hw_eth_caps, sniffer) },
	{ ask_vxlan, 0, offsetof(struct hw_eth_caps, vxlan) },
	{ ask_inner, 0, offsetof(struct hw_eth_caps, inner) },
};

static bool works(struct ibv_qp *qp, uint8_t port, const struct dapl_eth_rule *rule, uint32_t tag)
{
	struct hw_flow flow;
	struct ibv_flow *made = NULL;

	if (!hw_flow_build(rule, port, tag, &flow))
		made = ibv_create_flow(qp, &flow.attr);
	if (made)
		ibv_destroy_flow(made);
	return made;
}

static struct dapl_eth_rule rule_for_no_station(void)
{
	static const uint8_t no_station[6] = { 0x02, 0x00, 0x00, 0xda, 0x71, 0x01 };
	struct dapl_eth_rule rule = { .mode = ETH_TAKE };

	memcpy(rule.key.dst, no_station, sizeof no_station);
	memset(rule.mask.dst, 0xff, sizeof rule.mask.dst);
	return rule;
}

static void probe_flows(struct hw_eth_device *eth, struct ibv_qp *qp)
{
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct dapl_eth_rule rule = rule_for_no_station();

		shapes[i].ask(&rule);
		*(bool *)((char *)&eth->caps + shapes[i].found) =
			works(qp, (uint8_t)eth->dev->attr.port, &rule, shapes[i].tag);
	}
}

/* --- work queues and hashes ---------------------------------------------------------------- */

#define HASH_ALL (IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_IPV6 | IBV_RX_HASH_DST_IPV6 | \
		  IBV_RX_HASH_SRC_PORT_TCP | IBV_RX_HASH_DST_PORT_TCP | IBV_RX_HASH_SRC_PORT_UDP | \
		  IBV_RX_HASH_DST_PORT_UDP)

static bool is_for_raw(uint32_t types)
{
	return types & 1u << IBV_QPT_RAW_PACKET;
}

/* Tries a table that names a queue twice, as tables of groups may: those of mlx4 cannot. */
static bool can_hash(struct hw_eth_device *eth, struct ibv_pd *pd, struct ibv_wq *wq, uint64_t fields)
{
	static const uint8_t key[HW_ETH_HASH_KEY];
	struct ibv_wq *twice[2] = { wq, wq };
	struct hw_hash hash;

	if (hw_eth_wq_hash_open(eth, pd, twice, 2, fields, key, &hash))
		return false;
	hw_eth_wq_hash_close(&hash);
	return true;
}

/* Frames of a group need flow tags: there is no other way to find their rules. */
static void probe_hashes(struct hw_eth_device *eth, const struct ibv_rss_caps *rss, struct ibv_pd *pd,
			 struct ibv_wq *wq)
{
	struct hw_eth_caps *c = &eth->caps;

	if (!c->tags || (rss->rx_hash_fields_mask & HASH_ALL) != HASH_ALL)
		return;
	c->joint_hash = can_hash(eth, pd, wq, HASH_ALL);
	if (c->joint_hash || can_hash(eth, pd, wq, hw_hash_fields(HASH_IPV4_TCP, HASH_ALL)))
		c->hash_fields = HASH_ALL;
	c->max_table = rss->max_rwq_indirection_table_size;
}

/* Probes flows that lead to a work queue, if the device has such flows. */
static void probe_queue(struct hw_eth_device *eth, const struct ibv_rss_caps *rss, struct ibv_pd *pd, struct ibv_wq *wq)
{
	static const uint8_t key[HW_ETH_HASH_KEY];
	struct dapl_eth_rule rule = rule_for_no_station();
	struct hw_hash hash;

	if (hw_eth_wq_hash_open(eth, pd, &wq, 1, 0, key, &hash))
		return;
	eth->caps.work_queues = works(hash.qp, (uint8_t)eth->dev->attr.port, &rule, 0);
	if (eth->caps.work_queues) {
		probe_flows(eth, hash.qp);
		probe_hashes(eth, rss, pd, wq);
	}
	hw_eth_wq_hash_close(&hash);
}

static void probe_queues(struct hw_eth_device *eth, struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_wq_init_attr attr = { .max_wr = 1, .max_sge = 1, .pd = pd, .cq = cq };
	struct ibv_device_attr_ex ex;
	struct ibv_wq *wq;

	if (ibv_query_device_ex(eth->dev->verbs, NULL, &ex) || !is_for_raw(ex.rss_caps.supported_qpts) ||
	    !(ex.rss_caps.rx_hash_function & IBV_RX_HASH_FUNC_TOEPLITZ) || hw_eth_wq_create(eth, &attr, &wq))
		return;
	probe_queue(eth, &ex.rss_caps, pd, wq);
	ibv_destroy_wq(wq);
}

/* --- the whole ----------------------------------------------------------------------------- */

static void probe_offloads(struct hw_eth_device *eth)
{
	struct hw_eth_caps *c = &eth->caps;
	struct ibv_device_attr_ex ex;

	if (ibv_query_device_ex(eth->dev->verbs, NULL, &ex))
		return;
	c->checksums = ex.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM ||
		       ex.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM;
	c->fcs = ex.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS;
	if (is_for_raw(ex.tso_caps.supported_qpts) && c->checksums)
		c->max_tso = ex.tso_caps.max_tso;
	if (is_for_raw(ex.packet_pacing_caps.supported_qpts)) {
		c->rate_min = ex.packet_pacing_caps.qp_rate_limit_min;
		c->rate_max = ex.packet_pacing_caps.qp_rate_limit_max;
	}
	c->moderate_frames = ex.cq_mod_caps.max_cq_count;
	c->moderate_us = ex.cq_mod_caps.max_cq_period;
	c->core_khz = ex.hca_core_clock;
	c->stamp_mask = ex.completion_timestamp_mask;
}

/* Flows need a QP that was moved to INIT, on some drivers to RTS. Without privilege there is none: nothing is
 * found then, and an endpoint cannot be made either. */
static void probe(struct hw_eth_device *eth)
{
	struct ibv_pd *pd = ibv_alloc_pd(eth->dev->verbs);
	struct ibv_cq *cq = ibv_create_cq(eth->dev->verbs, 1, NULL, NULL, 0);
	struct ibv_qp *qp;

	probe_offloads(eth);
	if (pd && cq)
		probe_queues(eth, pd, cq);
	if (pd && cq && !eth->caps.work_queues && !hw_eth_raw_qp(eth->dev, pd, cq, &qp)) {
		if (!hw_eth_to_rts(qp, (uint8_t)eth->dev->attr.port))
			probe_flows(eth, qp);
		ibv_destroy_qp(qp);
	}
	if (cq)
		ibv_destroy_cq(cq);
	if (pd)
		ibv_dealloc_pd(pd);
}

void hw_eth_probe(struct hw_eth_device *eth)
{
	dapl_mutex_lock(&eth->lock);
	if (!eth->probed) {
		probe(eth);
		hw_eth_clock_init(eth);
		eth->probed = true;
	}
	dapl_mutex_unlock(&eth->lock);
}
