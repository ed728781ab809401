/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_receive.c - posted receives of a port: which frames come, what is known of them, and what was lost. The socket
 * is replaced by a queue of messages here, rules by the first byte of a frame; ring receive is packet_ring.c's. */
#include <ifaddrs.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <sys/uio.h>
#include "dapl/softeth/port.h"
#include "dapl/softeth/port_types.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/validate.h"
#include "test/unit/softeth/control.h"
#include "test/unit/unit.h"

enum { MESSAGES = 8, WANTED = 0xaa, UNWANTED = 0x55, LONGEST = 1600, PARSED = 512, INDEX = 5 };

/* A message of the socket. */
struct message {
	uint32_t length;
	uint8_t first;			/* byte of the frame; the others count up */
	bool strange;			/* the kernel cannot describe it */
	uint8_t type;			/* PACKET_* */
	uint32_t overflow;		/* frames for which the socket had no room until now */
	uint32_t status;		/* TP_STATUS_* */
	uint16_t tci, tpid;
	uint64_t time;
};

static struct message queue[MESSAGES];
static unsigned first_message, messages;
static struct eth_port port;
static struct eth_rule rule;
static struct rule_counts counts;
static struct eth_spread *const group = (struct eth_spread *)&port;	/* it is not looked at */

/* --- the socket ------------------------------------------------------------------------------------------ */

REPLACE(recvmsg, recv, getsockopt, getifaddrs, freeifaddrs)

static uint8_t byte_of(const struct message *m, size_t i) { return i ? (uint8_t)(m->first + i) : m->first; }

static void add_controls(struct msghdr *message, const struct message *m)
{
	const struct tpacket_auxdata aux = { .tp_status = m->status, .tp_len = 1, .tp_snaplen = 1,
		.tp_vlan_tci = m->tci, .tp_vlan_tpid = m->tpid };
	const struct timespec at = { .tv_sec = (time_t)(m->time / 1000000000),
		.tv_nsec = (long)(m->time % 1000000000) };
	size_t used = 0;

	control_add(message, &used, SOL_SOCKET, SCM_TIMESTAMPNS, &at, sizeof at);
	if (m->overflow)
		control_add(message, &used, SOL_SOCKET, SO_RXQ_OVFL, &m->overflow, sizeof m->overflow);
	control_add(message, &used, SOL_PACKET, PACKET_AUXDATA, &aux, sizeof aux);
	message->msg_controllen = used;
}

/* The header of virtio-net, then the frame. */
static void fill(const struct iovec *iov, size_t n, const struct message *m)
{
	const struct virtio_net_hdr vnet = { .gso_type = VIRTIO_NET_HDR_GSO_NONE, .gso_size = 77 };
	size_t at = 0;

	assert_int_equal(iov[0].iov_len, sizeof vnet);
	memcpy(iov[0].iov_base, &vnet, sizeof vnet);
	for (size_t i = 1; i < n; i++)
		for (size_t j = 0; j < iov[i].iov_len && at < m->length; j++)
			((uint8_t *)iov[i].iov_base)[j] = byte_of(m, at++);
}

static void consume(void) { first_message++; }

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	const struct message *m = &queue[first_message];
	struct sockaddr_ll from = { .sll_family = AF_PACKET };

	assert_int_equal(fd, port.fd);
	assert_true(flags & MSG_DONTWAIT);
	errno = EAGAIN;
	if (first_message == messages)
		return -1;
	if (!(flags & MSG_PEEK))
		consume();
	errno = EINVAL;
	if (m->strange)
		return -1;
	from.sll_pkttype = m->type;
	memcpy(message->msg_name, &from, sizeof from);
	add_controls(message, m);
	fill(message->msg_iov, message->msg_iovlen, m);
	assert_true(flags & MSG_TRUNC);
	return (ssize_t)(sizeof(struct virtio_net_hdr) + m->length);
}

ssize_t __wrap_recv(int fd, void *to, size_t size, int flags)
{
	assert_int_equal(fd, port.fd);
	assert_true(flags & MSG_DONTWAIT);
	assert_true(first_message < messages);
	consume();
	return 0;
}

static struct message *add_message(uint8_t first, uint32_t length)
{
	assert_true(messages < MESSAGES);
	queue[messages] = (struct message){ .length = length, .first = first, .time = 1000 };
	return &queue[messages++];
}

/* --- the kernel's counters --------------------------------------------------------------------------------- */

static uint32_t socket_drops, missed, fifo_errors;	/* the first restarts when it is read */
static bool silent;					/* the device does not tell */

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
	const struct tpacket_stats_v3 now = { .tp_packets = 1000, .tp_drops = socket_drops };

	assert_int_equal(fd, port.fd);
	assert_int_equal(level, SOL_PACKET);
	assert_int_equal(name, PACKET_STATISTICS);
	assert_true(*size >= sizeof now);
	memcpy(value, &now, sizeof now);
	socket_drops = 0;
	return 0;
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
	static struct rtnl_link_stats counters, others = { .rx_missed_errors = 99 };
	static struct sockaddr_ll packet = { .sll_family = AF_PACKET, .sll_ifindex = INDEX };
	static struct sockaddr_ll other = { .sll_family = AF_PACKET, .sll_ifindex = INDEX + 1 };
	static struct sockaddr inet = { .sa_family = AF_INET };
	static struct ifaddrs all[4];

	counters = (struct rtnl_link_stats){ .rx_missed_errors = missed, .rx_fifo_errors = fifo_errors,
		.rx_dropped = 50 };
	all[0] = (struct ifaddrs){ .ifa_next = &all[1], .ifa_name = "eth0", .ifa_addr = NULL, .ifa_data = &others };
	all[1] = (struct ifaddrs){ .ifa_next = &all[2], .ifa_name = "eth0", .ifa_addr = &inet, .ifa_data = &others };
	all[2] = (struct ifaddrs){ .ifa_next = &all[3], .ifa_name = "eth0", .ifa_addr = (struct sockaddr *)&other,
		.ifa_data = &others };
	all[3] = (struct ifaddrs){ .ifa_name = "now0", .ifa_addr = (struct sockaddr *)&packet,
		.ifa_data = silent ? NULL : &counters };
	*list = all;
	return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list) { assert_string_equal(list->ifa_name, "eth0"); }

/* --- rules and checksums ------------------------------------------------------------------------------------- */

static uint8_t looked_at[PARSED];	/* what the rules saw of the last frame */
static uint32_t looked_at_length, validated_length, validated_flags;
static struct eth_tag found_tag;
static bool found_other_host;

REPLACE(eth_rule_find, eth_validate)

struct eth_rule *__wrap_eth_rule_find(struct eth_port *at, const uint8_t *frame, uint32_t captured, struct eth_tag tag,
				      uint64_t time, bool outgoing, bool other_host, uint32_t *hash)
{
	assert_int_not_equal(at->lock.state, 0);
	assert_int_not_equal(time, 0);
	assert_in_range(captured, 1, PARSED);
	memcpy(looked_at, frame, captured);
	looked_at_length = captured;
	found_tag = tag;
	found_other_host = other_host;
	*hash = 0x1234;
	return frame[0] == WANTED ? &rule : NULL;
}

void __wrap_eth_validate(const struct eth_port *at, struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
			 const uint8_t *head, uint32_t parsed, const struct iovec *iov, int n)
{
	assert_ptr_equal(at, &port);
	assert_int_equal(vnet->gso_size, 77);
	assert_int_equal(head[0], WANTED);
	validated_length = parsed;
	frame->flags |= validated_flags;
}

/* --- a case -------------------------------------------------------------------------------------------------- */

static uint8_t memory[LONGEST];
static struct dapl_eth_frame frame;

UNIT_FIXTURE(set_up)
{
	port = (struct eth_port){ .fd = 33, .index = INDEX };
	dapl_mutex_init(&port.lock, RANK_SOFT_ETH);
	counts = (struct rule_counts){ .refs = 1 };
	rule = (struct eth_rule){ .rule = { .tag = 9 }, .counts = &counts };
	first_message = messages = 0;
	socket_drops = missed = fifo_errors = validated_flags = 0;
	silent = false;
	memset(memory, 0, sizeof memory);
}

static int receive_into(size_t room)
{
	struct iovec iov = { memory, room };

	return dapl_softeth_ops.receive(&port, &iov, 1, &frame);
}

static int receive(void) { return receive_into(sizeof memory); }

static void assert_received(uint32_t lost)
{
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.lost, lost);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, NULL)

/* --- which frames come ------------------------------------------------------------------------------------------ */

TEST(frames_that_no_rule_wants_are_skipped)
{
	assert_int_equal(receive(), EAGAIN);
	add_message(UNWANTED, 60);
	add_message(WANTED, 100);
	add_message(UNWANTED, 60);
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.length, 100);
	assert_int_equal(frame.tag, 9);
	assert_int_equal(receive(), EAGAIN);
	assert_int_equal(counts.frames, 1);
	assert_int_equal(counts.bytes, 100);
	assert_int_equal(port.stats.received, 1);
	assert_int_equal(port.stats.received_bytes, 100);
	assert_int_equal(port.lock.state, 0);
}

/* A frame that an endpoint has no receive for stays in the socket. */
TEST(look_leaves_the_first_frame_that_a_rule_wants)
{
	assert_false(dapl_softeth_ops.has_frame(&port));
	add_message(UNWANTED, 60);
	add_message(WANTED, 100);
	assert_true(dapl_softeth_ops.has_frame(&port));
	assert_true(dapl_softeth_ops.has_frame(&port));
	assert_int_equal(messages - first_message, 1);
	assert_int_equal(counts.frames, 0);
	assert_received(0);
	add_message(UNWANTED, 60);
	assert_false(dapl_softeth_ops.has_frame(&port));
	assert_int_equal(messages, first_message);
}

TEST(frame_is_cut_to_its_receive)
{
	struct iovec iov[3] = { { memory, 7 }, { memory + 100, 0 }, { memory + 200, 13 } };
	const struct message *m = add_message(WANTED, 60);

	assert_int_equal(dapl_softeth_ops.receive(&port, iov, 3, &frame), 0);
	assert_int_equal(frame.length, 20);
	assert_int_equal(frame.wire_length, 60);
	assert_int_equal(validated_length, 20);
	for (size_t i = 0; i < 20; i++)
		assert_int_equal(memory[i < 7 ? i : 200 + i - 7], byte_of(m, i));
	assert_int_equal(memory[213], 0);
	assert_int_equal(looked_at_length, 60);		/* rules see what is cut, too */
	for (size_t i = 0; i < 60; i++)
		assert_int_equal(looked_at[i], byte_of(m, i));
}

TEST(rules_see_the_beginning_of_a_long_frame)
{
	const struct message *m = add_message(WANTED, 1500);

	assert_int_equal(receive(), 0);
	assert_int_equal(frame.length, 1500);
	assert_int_equal(looked_at_length, PARSED);
	assert_int_equal(validated_length, PARSED);
	assert_int_equal(looked_at[PARSED - 1], byte_of(m, PARSED - 1));
	add_message(WANTED, 1500);
	assert_true(dapl_softeth_ops.has_frame(&port));
	assert_int_equal(looked_at_length, PARSED);
}

TEST(receive_has_a_limit_of_pieces)
{
	struct iovec iov[65];

	for (int i = 0; i < 65; i++)
		iov[i] = (struct iovec){ memory + i, 1 };
	add_message(WANTED, 60);
	assert_int_equal(dapl_softeth_ops.receive(&port, iov, 65, &frame), EINVAL);
	assert_int_equal(first_message, 0);
	assert_int_equal(dapl_softeth_ops.receive(&port, iov, 64, &frame), 0);
}

/* --- what is known of a frame ----------------------------------------------------------------------------------- */

TEST(stripped_tag_comes_with_the_frame)
{
	static const struct {
		uint32_t status;
		uint16_t tci, type;
		uint32_t flags;
	} rows[] = { { 0, 0, 0, 0 }, { TP_STATUS_VLAN_VALID, 0x2003, ETH_P_8021Q, ETH_FRAME_VLAN },
		{ TP_STATUS_VLAN_VALID | TP_STATUS_VLAN_TPID_VALID, 0x2003, ETH_P_8021AD, ETH_FRAME_VLAN } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct message *m = add_message(WANTED, 60);

		m->status = rows[i].status;
		m->tci = 0x2003;
		m->tpid = ETH_P_8021AD;
		assert_int_equal(receive(), 0);
		assert_int_equal(frame.flags, rows[i].flags);
		assert_int_equal(frame.vlan_tci, rows[i].tci);
		assert_int_equal(frame.vlan_type, rows[i].type);
		assert_int_equal(found_tag.type, rows[i].type);
		assert_int_equal(found_tag.tci, rows[i].tci);
	}
}

TEST(word_of_the_kernel_about_checksums_is_told)
{
	static const struct {
		uint32_t status, flags;
	} rows[] = { { TP_STATUS_CSUM_VALID, ETH_FRAME_L4_OK }, { TP_STATUS_CSUMNOTREADY, ETH_FRAME_PARTIAL },
		{ TP_STATUS_CSUMNOTREADY | TP_STATUS_CSUM_VALID, ETH_FRAME_PARTIAL } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		add_message(WANTED, 60)->status = rows[i].status;
		assert_int_equal(receive(), 0);
		assert_int_equal(frame.flags, rows[i].flags);
	}
}

TEST(frames_of_this_host_and_for_others_are_told_apart)
{
	add_message(WANTED, 60)->type = PACKET_OUTGOING;
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.flags, ETH_FRAME_OUTGOING);
	assert_false(found_other_host);
	add_message(WANTED, 60)->type = PACKET_OTHERHOST;
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.flags, 0);
	assert_true(found_other_host);
}

TEST(hash_comes_with_frames_of_a_group)
{
	add_message(WANTED, 60);
	add_message(WANTED, 60);
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.flags, 0);
	assert_int_equal(frame.hash, 0);
	rule.spread = group;
	assert_int_equal(receive(), 0);
	assert_int_equal(frame.flags, ETH_FRAME_HASH);
	assert_int_equal(frame.hash, 0x1234);
}

/* Frames of several processors come in another order than their time stamps. A frame that is earlier by more than a
 * second came after the clock was set back, or behind one with a wrong time. */
TEST(time_does_not_run_backwards_by_up_to_a_second)
{
	static const uint64_t times[] = { 5000000007, 4999999999, 5000000008, 4000000008, 86400000000000, 6000000000,
		5000000001, 4000000000 };
	static const uint64_t told[] = { 5000000007, 5000000007, 5000000008, 5000000008, 86400000000000, 6000000000,
		6000000000, 4000000000 };

	for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
		add_message(WANTED, 60)->time = times[i];
		assert_int_equal(receive(), 0);
		assert_int_equal(frame.time, told[i]);
	}
}

TEST(frames_with_wrong_checksums_are_counted)
{
	static const uint32_t flags[] = { ETH_FRAME_IP_BAD, ETH_FRAME_L4_BAD, ETH_FRAME_IP_BAD | ETH_FRAME_L4_BAD,
		ETH_FRAME_IP_OK | ETH_FRAME_L4_OK };
	static const uint64_t bad[] = { 1, 2, 3, 3 };

	for (size_t i = 0; i < 4; i++) {
		add_message(WANTED, 60);
		validated_flags = flags[i];
		assert_int_equal(receive(), 0);
		assert_int_equal(port.stats.bad, bad[i]);
	}
}

/* --- losses ------------------------------------------------------------------------------------------------------ */

TEST(losses_are_told_with_the_next_frame)
{
	add_message(WANTED, 60)->overflow = 5;
	assert_received(5);
	add_message(WANTED, 60)->overflow = 5;
	assert_received(0);
	add_message(UNWANTED, 60)->overflow = 7;
	add_message(WANTED, 60)->overflow = 8;
	assert_received(3);
	add_message(WANTED, 60)->overflow = 0xffffffff;
	assert_received(0xfffffff7);
	add_message(WANTED, 60)->overflow = 2;	/* the counter has 32 bits */
	assert_received(3);
}

TEST(look_does_not_lose_the_number_of_losses)
{
	add_message(UNWANTED, 60)->overflow = 4;
	add_message(WANTED, 60)->overflow = 5;
	assert_true(dapl_softeth_ops.has_frame(&port));
	assert_received(5);
}

/* One that was joined in a way that the kernel cannot describe. */
TEST(frame_that_cannot_be_described_is_lost)
{
	add_message(0, 60)->strange = true;
	add_message(0, 60)->strange = true;
	add_message(WANTED, 60);
	assert_received(2);
	assert_int_equal(port.stats.lost, 2);
	add_message(0, 60)->strange = true;
	add_message(WANTED, 60);
	assert_true(dapl_softeth_ops.has_frame(&port));
	assert_int_equal(port.stats.lost, 3);
	assert_received(1);
}

/* --- counters ---------------------------------------------------------------------------------------------------- */

TEST(losses_of_the_socket_are_added_up)
{
	struct dapl_eth_stats stats;

	socket_drops = 5;
	dapl_softeth_ops.stats(&port, &stats);
	assert_int_equal(stats.lost, 5);
	socket_drops = 2;
	dapl_softeth_ops.stats(&port, &stats);
	assert_int_equal(stats.lost, 7);
	add_message(WANTED, 60);
	assert_received(0);		/* SO_RXQ_OVFL tells of them */
	port.ring.map = memory;
	socket_drops = 3;
	dapl_softeth_ops.stats(&port, &stats);
	add_message(WANTED, 60);
	assert_received(3);
}

static uint64_t device_losses(void)
{
	struct dapl_eth_stats stats;

	dapl_softeth_ops.stats(&port, &stats);
	return stats.lost_device;
}

/* The counters have 32 bits, and begin again when their driver is reset. */
TEST(losses_of_the_device_are_counted_from_the_opening_on)
{
	port.device.missed = 0xfffffff0;
	missed = 4;
	fifo_errors = 2;
	assert_int_equal(device_losses(), 0x16);
	missed = 5004;
	assert_int_equal(device_losses(), 0x16 + 5000);
	missed = 3;			/* a reset */
	fifo_errors = 0;
	assert_int_equal(device_losses(), 0x16 + 5003);
	missed = 10;
	assert_int_equal(device_losses(), 0x16 + 5010);
	silent = true;
	assert_true(device_losses() == ~(uint64_t)0);
	silent = false;
	assert_int_equal(device_losses(), 0x16 + 5010);
	port.device.unknown = true;
	assert_true(device_losses() == ~(uint64_t)0);
}

UNIT_MAIN(NULL, NULL)
