/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ud.c - address handles of datagram peers: on Ethernet from the address that a request came from, on InfiniBand
 * from what the peer tells; and which GID of this side they use. libibverbs is replaced here. */
#include <rdma/rdma_cma.h>
#include "dapl/core/base/settings.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/pdata.h"
#include "dapl/verbs/ud.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { PORT = 2, QPN = 0x1234, QKEY = 77, LID = 9, NO_GID_TYPE = 9 };

struct dapl_settings dapl_settings;		/* in place of the environment */

static struct verbs_context verbs;
static struct dapl_device dev;
static struct ibv_pd pd;
static struct ibv_qp qp = { .qp_num = QPN };
static struct ibv_ah ah;
static struct sockaddr_in remote;
static struct hw_ud_self told;
static struct dapl_ud_peer peer;

/* The GIDs of the device, and the arguments of its last call. */
static struct ibv_port_attr port;
static struct ibv_gid_entry table[4];
static ssize_t entries;
static int refusal;			/* of the step that fails; 0 sets no errno */
static bool no_memory;
static struct ibv_ah_attr asked;

static int query_port(struct ibv_context *of, uint8_t number, struct ibv_port_attr *attr, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(number, PORT);
	assert_int_equal(size, sizeof *attr);
	if (step("port"))
		return refusal;
	*attr = port;
	return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *of, struct ibv_gid_entry *out, size_t max, uint32_t flags, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	assert_int_equal(flags, 0);
	assert_int_equal(size, sizeof *out);
	assert_true(entries <= (ssize_t)max);
	if (entries > 0)
		memcpy(out, table, (size_t)entries * sizeof *out);
	return entries;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *in, struct ibv_ah_attr *attr)
{
	assert_ptr_equal(in, &pd);
	asked = *attr;
	if (step("ah")) {
		errno = refusal;
		return NULL;
	}
	return &ah;
}

UNIT_FAIL_CALLOC(no_memory)

UNIT_FIXTURE(begin)
{
	memset(&dapl_settings, 0, sizeof dapl_settings);
	dapl_settings.tclass = -1;
	verbs = (struct verbs_context){ .sz = sizeof verbs, .query_port = query_port,
		.context = { .abi_compat = __VERBS_ABI_IS_EXTENDED } };
	dev = (struct dapl_device){ .verbs = &verbs.context, .attr = { .port = PORT } };
	dev.attr.gid.raw[0] = 0xfe;
	dev.attr.gid.raw[15] = 1;
	port = (struct ibv_port_attr){ .link_layer = IBV_LINK_LAYER_INFINIBAND, .lid = LID };
	memset(table, 0, sizeof table);
	entries = 0;
	remote = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(5) };
	inet_pton(AF_INET, "10.0.0.2", &remote.sin_addr);
	told = (struct hw_ud_self){ .qpn = QPN, .qkey = QKEY, .lid = LID + 1 };
	told.gid[0] = 0xfe;		/* the subnet of the device */
	told.gid[15] = 2;
	peer = (struct dapl_ud_peer){ 0 };
	memset(&asked, 0xee, sizeof asked);
	refusal = ENOBUFS;
	no_memory = false;
	forget_steps();
}

/* Adds an entry of the table that has the device's GID. */
static void gid_is_at(uint32_t index, uint32_t number, uint32_t type)
{
	table[entries++] = (struct ibv_gid_entry){ .gid = dev.attr.gid, .gid_index = index, .port_num = number,
		.gid_type = type };
}

static int passive(void) { return hw_ud_peer_passive(&dev, &pd, (struct sockaddr *)&remote, &told, &peer); }

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

/* --- what this side tells --------------------------------------------------------------------------------- */

TEST(own_place_has_what_a_peer_needs)
{
	struct hw_ud_self self;

	hw_ud_self(&dev, &qp, &self);
	assert_memory_equal(self.gid, &dev.attr.gid, sizeof self.gid);
	assert_int_equal(self.qpn, QPN);
	assert_int_equal(self.qkey, RDMA_UDP_QKEY);
	assert_int_equal(self.lid, LID);
}

TEST(port_that_does_not_answer_has_no_lid)
{
	struct hw_ud_self self;

	failing = "port";
	hw_ud_self(&dev, &qp, &self);
	assert_int_equal(self.lid, 0);
	assert_int_equal(self.qpn, QPN);
}

TEST(active_side_uses_what_the_cm_tells)
{
	struct rdma_ud_param param = { .qp_num = QPN, .qkey = QKEY,
		.ah_attr = { .dlid = 5, .is_global = 1, .port_num = 9, .grh = { .sgid_index = 3, .hop_limit = 64 } } };

	assert_int_equal(hw_ud_peer_active(&dev, &pd, &param, &peer), 0);
	steps_are("ah");
	assert_ptr_equal(peer.ah, &ah);
	assert_int_equal(peer.qpn, QPN);
	assert_int_equal(peer.qkey, QKEY);
	assert_int_equal(asked.dlid, 5);
	assert_int_equal(asked.port_num, PORT);
	assert_int_equal(asked.grh.sgid_index, 3);
	assert_int_equal(asked.grh.hop_limit, 64);
}

/* --- the passive side ----------------------------------------------------------------------------------------- */

TEST(ethernet_peer_is_where_its_request_came_from)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

	port.link_layer = IBV_LINK_LAYER_ETHERNET;
	assert_int_equal(passive(), 0);
	steps_are("port ah");
	assert_ptr_equal(peer.ah, &ah);
	assert_int_equal(peer.qpn, QPN);
	assert_int_equal(peer.qkey, QKEY);
	assert_int_equal(asked.is_global, 1);
	assert_int_equal(asked.port_num, PORT);
	assert_int_equal(asked.dlid, 0);
	assert_int_equal(asked.grh.hop_limit, 64);
	assert_memory_equal(asked.grh.dgid.raw, mapped, sizeof mapped);
}

TEST(infiniband_peer_is_where_it_says)
{
	assert_int_equal(passive(), 0);
	steps_are("port ah");
	assert_ptr_equal(peer.ah, &ah);
	assert_int_equal(peer.qpn, QPN);
	assert_int_equal(peer.qkey, QKEY);
	assert_int_equal(asked.dlid, LID + 1);
	assert_int_equal(asked.port_num, PORT);
	assert_memory_equal(asked.grh.dgid.raw, told.gid, sizeof told.gid);
	assert_int_equal(asked.is_global, 0);
}

TEST(peer_of_another_subnet_is_routed)
{
	told.gid[7] = 1;
	assert_int_equal(passive(), 0);
	assert_int_equal(asked.is_global, 1);
	assert_int_equal(asked.grh.hop_limit, 64);
}

TEST(global_routing_routes_to_all_peers)
{
	dapl_settings.global_routing = 1;
	assert_int_equal(passive(), 0);
	assert_int_equal(asked.is_global, 1);
}

/* --- the index of the GID of this side ------------------------------------------------------------------------- */

static void index_is(uint8_t index)
{
	assert_int_equal(passive(), 0);
	assert_int_equal(asked.grh.sgid_index, index);
}

TEST(best_type_of_a_gid_is_used)
{
	static const uint32_t types[] = { IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2 };

	for (uint32_t i = 0; i < 3; i++) {		/* each better than those before */
		gid_is_at(10 + i, PORT, types[i]);
		index_is(10 + i);
	}
	entries = 0;
	for (uint32_t i = 3; i--; ) {			/* and worse */
		gid_is_at(10 + i, PORT, types[i]);
		index_is(12);
	}
}

TEST(first_of_equal_gids_is_used)
{
	gid_is_at(5, PORT, IBV_GID_TYPE_ROCE_V2);
	gid_is_at(6, PORT, IBV_GID_TYPE_ROCE_V2);
	index_is(5);
}

TEST(gids_of_others_are_not_used)
{
	gid_is_at(4, PORT + 1, IBV_GID_TYPE_ROCE_V2);
	gid_is_at(5, PORT, NO_GID_TYPE);
	gid_is_at(6, PORT, IBV_GID_TYPE_ROCE_V2);
	table[2].gid.raw[15] ^= 1;
	index_is(0);
	gid_is_at(7, PORT, IBV_GID_TYPE_IB);
	index_is(7);
}

TEST(table_that_cannot_be_read_gives_the_first_index)
{
	gid_is_at(7, PORT, IBV_GID_TYPE_ROCE_V2);
	no_memory = true;
	index_is(0);
	no_memory = false;
	entries = -EOPNOTSUPP;
	index_is(0);
}

TEST(refused_handle_gives_the_reason)
{
	static const struct rdma_ud_param param;

	failing = "ah";
	assert_int_equal(hw_ud_peer_active(&dev, &pd, &param, &peer), ENOBUFS);
	assert_int_equal(passive(), ENOBUFS);
	assert_null(peer.ah);
	refusal = 0;
	assert_int_equal(hw_ud_peer_active(&dev, &pd, &param, &peer), EIO);
	assert_int_equal(passive(), EIO);
}

TEST(port_that_does_not_answer_makes_no_handle)
{
	failing = "port";
	assert_int_equal(passive(), ENOBUFS);
	steps_are("port");
	refusal = -ENODEV;
	assert_int_equal(passive(), ENODEV);
	assert_null(peer.ah);
}

UNIT_MAIN(NULL, NULL)
