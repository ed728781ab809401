/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_send.c - how frames are given to a port's socket, one or a batch: its errors, a lowered MTU, the end of a
 * bypass, and the time at which a frame left. The socket is replaced here; tags, checksums and segments are
 * test_send_offload.c's matter. */
#include <time.h>
#include <linux/errqueue.h>	/* needs struct timespec */
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/virtio_net.h>
#include "common/interface.h"
#include "dapl/softeth/port_types.h"
#include "dapl/softeth/send.h"
#include "test/unit/softeth/control.h"
#include "test/unit/softeth/frames.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { INDEX = 5, SOCKET = 1000, BATCH = 64, MANY = BATCH + 6, STAMPS = 4, HEADERS = 54, SEGMENT = 10 };

static struct eth_port port;
static struct frame frames[MANY];	/* each of another length */
static struct frame message;		/* to segment */
static struct iovec iov[MANY];
static struct eth_out out[MANY];
static struct dapl_eth_send hows[MANY];
static const char *wrong;
static int sent;

/* --- the socket ------------------------------------------------------------------------------------------------ */

REPLACE(sendmsg, sendmmsg, recvmsg, setsockopt, interface_request_index)
#pragma GCC visibility push(default)	/* the sanitizers' libraries call it, too */
int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr);
#pragma GCC visibility pop

static int errors[4];			/* of the next system calls that send; 0: none */
static unsigned call;			/* of them */
static int accepts;			/* frames of a batch, at most */
static size_t lengths[MANY];		/* of frames that left */
static int left;
static bool carrier, no_memory;
static int mtu;				/* of now; 0: not known */
static uint64_t times[STAMPS];		/* in the error queue */
static unsigned first_time, time_count;
static uint32_t stamp_asked;		/* beside the last frame */

static void read_request(const struct msghdr *header)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(header);

	stamp_asked = 0;
	if (!c)
		return;
	assert_int_equal(c->cmsg_level, SOL_SOCKET);
	assert_int_equal(c->cmsg_type, SO_TIMESTAMPING);
	assert_int_equal(c->cmsg_len, CMSG_LEN(sizeof stamp_asked));
	memcpy(&stamp_asked, CMSG_DATA(c), sizeof stamp_asked);
	assert_int_equal(first_time, time_count);	/* the time to come is not taken for an older one */
}

static void take_frame(const struct msghdr *header)
{
	size_t length = 0;

	assert_int_equal(header->msg_iov[0].iov_len, sizeof(struct virtio_net_hdr));
	for (size_t i = 1; i < header->msg_iovlen; i++)
		length += header->msg_iov[i].iov_len;
	assert_in_range(left, 0, MANY - 1);
	lengths[left++] = length;
	read_request(header);
}

/* Returns -1 with the errno of this call, or 0. */
static int call_error(int fd, int flags)
{
	assert_int_equal(fd, SOCKET);
	assert_true(flags & MSG_DONTWAIT);
	assert_in_range(call, 0, 3);
	errno = errors[call++];
	return errno ? -1 : 0;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *header, int flags)
{
	step("send");
	if (call_error(fd, flags))
		return -1;
	take_frame(header);
	return 1;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *headers, unsigned n, int flags)
{
	int taken = 0;

	step("batch");
	assert_in_range(n, 1, BATCH);
	if (call_error(fd, flags))
		return -1;
	for (; taken < (int)n && taken < accepts; taken++)
		take_frame(&headers[taken].msg_hdr);
	return taken;
}

/* A time between messages that look like it. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *header, int flags)
{
	const struct scm_timestamping other = { .ts = { { .tv_sec = 99 } } };
	struct scm_timestamping stamp = { .ts = { { .tv_sec = 0 } } };
	size_t used = 0;

	assert_int_equal(fd, SOCKET);
	assert_int_equal(flags, MSG_ERRQUEUE | MSG_DONTWAIT);
	errno = EAGAIN;
	if (first_time == time_count)
		return -1;
	stamp.ts[0].tv_sec = (time_t)(times[first_time] / 1000000000);
	stamp.ts[0].tv_nsec = (long)(times[first_time] % 1000000000);
	first_time++;
	control_add(header, &used, SOL_PACKET, SCM_TIMESTAMPING, &other, sizeof other);
	control_add(header, &used, SOL_SOCKET, SCM_TIMESTAMPING, &stamp, sizeof stamp);
	control_add(header, &used, SOL_PACKET, SCM_TIMESTAMPING, &other, sizeof other);
	control_add(header, &used, SOL_SOCKET, SO_RXQ_OVFL, &other, sizeof(uint32_t));
	header->msg_controllen = used;
	return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	uint32_t number;

	assert_int_equal(fd, SOCKET);
	assert_int_equal(size, sizeof number);
	memcpy(&number, value, sizeof number);
	if (level == SOL_PACKET && name == PACKET_QDISC_BYPASS && !number)
		return step("unbypass");
	assert_int_equal(level, SOL_SOCKET);
	assert_int_equal(name, SO_TIMESTAMPING);
	assert_int_equal(number, SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_TSONLY);
	return step("stamping");
}

int __wrap_interface_request_index(int index, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(index, INDEX);
	assert_int_equal(request, SIOCGIFFLAGS);
	ifr->ifr_flags = carrier ? IFF_UP | IFF_RUNNING : IFF_UP;
	return step("flags") ? ENODEV : 0;
}

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *ifr)
{
	assert_int_equal(fd, SOCKET);
	if (request == SIOCGIFNAME) {
		assert_int_equal(ifr->ifr_ifindex, INDEX);
		strcpy(ifr->ifr_name, "now0");		/* it was renamed */
		return 0;
	}
	assert_int_equal(request, SIOCGIFMTU);
	assert_string_equal(ifr->ifr_name, "now0");
	ifr->ifr_mtu = mtu;
	errno = ENODEV;
	return mtu ? 0 : -1;
}

UNIT_FAIL_MALLOC(no_memory)

/* --- a case --------------------------------------------------------------------------------------------------- */

static void make_message(void)
{
	message = (struct frame){ .length = 0 };
	frame_put_ethernet_ipv4(&message, 6);
	FRAME_PUT(&message, "\x30\x39\x00\x50\x00\x00\x00\x01\x00\x00\x00\x02\x50\x10\x40\x00\x00\x00\x00\x00");
	assert_int_equal(message.length, HEADERS);
	FRAME_PUT(&message, "a payload of three segments");
}

UNIT_FIXTURE(set_up)
{
	forget_steps();
	port = (struct eth_port){ .fd = SOCKET, .mtu = 1500, .index = INDEX };
	memset(errors, 0, sizeof errors);
	call = first_time = time_count = 0;
	accepts = MANY;
	left = 0;
	carrier = no_memory = false;
	mtu = 1500;
	wrong = "of an earlier frame";
	for (unsigned i = 0; i < MANY; i++) {
		hows[i] = (struct dapl_eth_send){ .flags = 0 };
		frames[i].length = 60 + i;
		iov[i] = (struct iovec){ frames[i].bytes, frames[i].length };
		out[i] = (struct eth_out){ &iov[i], 1, &hows[i] };
	}
	make_message();
}

UNIT_FIXTURE(tear_down)
{
	no_memory = false;	/* the end of the process allocates, too: with --enable-coverage */
	free(port.batch);
}

static int send_one(void) { return eth_send(&port, out[0].iov, out[0].n, out[0].how, &wrong); }
static int send_batch(int n) { return eth_send_batch(&port, out, n, &sent, &wrong); }

static void batch_leaves(int n, int err, int until)
{
	assert_int_equal(send_batch(n), err);
	assert_int_equal(sent, until);
}

static void segment(unsigned i)
{
	hows[i] = (struct dapl_eth_send){ .flags = ETH_SEND_TSO, .mss = SEGMENT, .header_length = HEADERS };
	iov[i] = (struct iovec){ message.bytes, message.length };
}

static void assert_steps(const char *expected)
{
	assert_string_equal(steps, expected);
	forget_steps();
}

/* The first `n` frames have left in their order, and were counted. */
static void assert_left(int n)
{
	uint64_t bytes = 0;

	assert_int_equal(left, n);
	for (int i = 0; i < n; i++) {
		assert_int_equal(lengths[i], iov[i].iov_len);
		bytes += iov[i].iov_len;
	}
	assert_int_equal(port.stats.sent, n);
	assert_int_equal(port.stats.sent_bytes, bytes);
}

/* --- errors of the socket --------------------------------------------------------------------------------------- */

UNIT_CASE(frame_that_the_socket_refuses_is_not_counted)
{
	static const int rows[] = { EAGAIN, ENOBUFS, EMSGSIZE, EPERM };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		errors[0] = rows[i];
		assert_int_equal(send_one(), rows[i]);
		assert_null(wrong);
		assert_steps("send");
		assert_left(0);
	}
}

/* The socket reports ENETDOWN once, though the device is up again. */
UNIT_CASE(device_that_was_down_is_tried_again)
{
	errors[0] = ENETDOWN;
	assert_int_equal(send_one(), 0);
	assert_steps("send send");
	assert_left(1);
	errors[2] = errors[3] = ENETDOWN;
	assert_int_equal(send_one(), ENETDOWN);
	assert_left(1);
}

/* Past the queueing discipline the kernel returns ENOBUFS for both. */
UNIT_CASE(full_queue_is_told_apart_from_a_missing_carrier)
{
	static const struct {
		bool bypass, carrier;
		const char *failing, *steps;
		int err;
	} rows[] = { { true, true, NULL, "send flags", ENOBUFS }, { true, false, NULL, "send flags", ENETDOWN },
		{ true, false, "flags", "send flags", ENOBUFS }, { false, false, NULL, "send", ENOBUFS } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		port.bypass = rows[i].bypass;
		carrier = rows[i].carrier;
		failing = rows[i].failing;
		errors[0] = ENOBUFS;
		assert_int_equal(send_one(), rows[i].err);
		assert_steps(rows[i].steps);
	}
	set_up(NULL);
	port.bypass = true;
	errors[0] = EAGAIN;
	assert_int_equal(send_one(), EAGAIN);
	assert_steps("send");
}

/* --- the bypass of the queueing discipline ---------------------------------------------------------------------- */

/* The kernel would drop it where the device does not segment. Frames must not overtake it. */
UNIT_CASE(bypass_ends_before_a_message_is_segmented)
{
	port.bypass = true;
	assert_int_equal(send_one(), 0);
	assert_steps("send");
	segment(0);
	assert_int_equal(send_one(), 0);
	assert_steps("unbypass send");
	assert_false(port.bypass);
	assert_int_equal(send_one(), 0);
	assert_steps("send");
}

UNIT_CASE(message_waits_for_the_end_of_the_bypass)
{
	port.bypass = true;
	segment(0);
	failing = "unbypass";
	assert_int_equal(send_one(), ENOBUFS);
	assert_steps("unbypass");
	assert_true(port.bypass);
	assert_left(0);
}

/* --- an MTU that was lowered ------------------------------------------------------------------------------------ */

enum { PACKET = HEADERS - ETH_HLEN + SEGMENT };		/* bytes of a segment, without its Ethernet header */

UNIT_CASE(message_is_compared_with_the_mtu_of_now)
{
	static const struct { int mtu, err; } rows[] = { { PACKET - 1, EMSGSIZE }, { PACKET, 0 }, { 0, 0 } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		set_up(NULL);
		port.bypass = true;
		segment(0);
		mtu = rows[i].mtu;
		assert_int_equal(send_one(), rows[i].err);
		assert_null(wrong);
		assert_steps(rows[i].err ? "" : "unbypass send");
		assert_int_equal(port.bypass, rows[i].err != 0);
		assert_int_equal(port.stats.sent, rows[i].err ? 0 : 3);
	}
}

UNIT_CASE(frames_before_a_message_above_the_mtu_leave)
{
	segment(2);
	mtu = PACKET - 1;
	batch_leaves(5, EMSGSIZE, 2);
	assert_null(wrong);
	assert_steps("batch");
	assert_left(2);
}

UNIT_CASE(full_queue_before_a_message_above_the_mtu_is_told_first)
{
	segment(2);
	mtu = PACKET - 1;
	errors[0] = EAGAIN;
	batch_leaves(5, EAGAIN, 0);
}

/* --- times of departure ----------------------------------------------------------------------------------------- */

static void add_time(uint64_t time)
{
	assert_in_range(time_count, 0, STAMPS - 1);
	times[time_count++] = time;
}

UNIT_CASE(frame_asks_for_its_time)
{
	hows[0].flags = ETH_SEND_STAMP;
	assert_int_equal(send_one(), 0);
	assert_steps("stamping send");
	assert_int_equal(stamp_asked, SOF_TIMESTAMPING_TX_SOFTWARE);
	assert_true(port.stamping);
	assert_int_equal(send_one(), 0);
	assert_steps("send");
	assert_int_equal(stamp_asked, SOF_TIMESTAMPING_TX_SOFTWARE);
	hows[0].flags = 0;
	assert_int_equal(send_one(), 0);
	assert_int_equal(stamp_asked, 0);
}

UNIT_CASE(frame_whose_time_cannot_be_told_is_not_sent)
{
	hows[0].flags = ETH_SEND_STAMP;
	failing = "stamping";
	assert_int_equal(send_one(), ENOBUFS);
	assert_steps("stamping");
	assert_false(port.stamping);
	assert_left(0);
}

UNIT_CASE(last_time_is_that_of_the_last_frame)
{
	uint64_t time = 5;

	assert_int_equal(eth_send_stamp(&port, &time), EAGAIN);
	assert_int_equal(time, 5);
	add_time(1000000001);
	add_time(7000000999);
	assert_int_equal(eth_send_stamp(&port, &time), 0);
	assert_true(time == 7000000999);
	assert_int_equal(eth_send_stamp(&port, &time), EAGAIN);
}

UNIT_CASE(older_times_are_forgotten_before_a_frame_is_sent)
{
	uint64_t time;

	hows[0].flags = ETH_SEND_STAMP;
	add_time(1);
	add_time(2);
	assert_int_equal(send_one(), 0);	/* the socket looks whether they are gone */
	assert_int_equal(eth_send_stamp(&port, &time), EAGAIN);
}

/* --- batches ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(batch_has_a_largest_size)
{
	batch_leaves(MANY, 0, BATCH);
	assert_steps("batch");
	assert_left(BATCH);
}

UNIT_CASE(error_of_a_frame_is_that_behind_those_that_left)
{
	accepts = 3;
	errors[1] = EAGAIN;
	batch_leaves(5, EAGAIN, 3);
	assert_null(wrong);
	assert_left(3);
}

UNIT_CASE(frames_before_a_wrong_one_leave)
{
	hows[3].flags = ETH_SEND_CSUM;		/* there is no IP header */
	batch_leaves(5, EINVAL, 3);
	assert_non_null(wrong);
	assert_left(3);
	assert_int_equal(eth_send_batch(&port, out + 3, 2, &sent, &wrong), EINVAL);
	assert_int_equal(sent, 0);
	assert_non_null(wrong);
	assert_int_equal(left, 3);
}

/* It is told once those before it have left. */
UNIT_CASE(wrong_frame_behind_an_error_is_not_told)
{
	hows[3].flags = ETH_SEND_CSUM;
	accepts = 1;
	errors[1] = ENOBUFS;
	batch_leaves(5, ENOBUFS, 1);
	assert_null(wrong);
	assert_left(1);
}

UNIT_CASE(batch_is_tried_again_on_a_device_that_was_down)
{
	accepts = 2;
	errors[1] = ENETDOWN;
	assert_int_equal(send_batch(4), 0);
	assert_steps("batch batch batch");
	assert_left(4);
	call = 0;
	errors[0] = errors[1] = ENETDOWN;
	batch_leaves(4, ENETDOWN, 0);
	assert_left(4);
	call = 0;
	errors[1] = 0;
	errors[2] = ENETDOWN;		/* once more, after frames have left */
	assert_int_equal(send_batch(4), 0);
}

UNIT_CASE(batch_with_a_message_to_segment_ends_the_bypass)
{
	port.bypass = true;
	assert_int_equal(send_batch(3), 0);
	assert_steps("batch");
	segment(1);
	failing = "unbypass";
	batch_leaves(3, ENOBUFS, 0);
	assert_true(port.bypass);
	assert_steps("unbypass");
	batch_leaves(3, 0, 3);
	assert_steps("unbypass batch");
	assert_int_equal(send_batch(3), 0);
	assert_steps("batch");
	assert_int_equal(port.stats.sent, 3 + 2 * (2 + 3));	/* a message is as many frames as it becomes */
}

UNIT_CASE(batch_without_memory_is_one_frame)
{
	no_memory = true;
	batch_leaves(5, 0, 1);
	assert_left(1);
	errors[1] = EAGAIN;
	batch_leaves(5, EAGAIN, 0);
	assert_steps("send send");
}

UNIT_MAIN(NULL, NULL)
