/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_fuzz.c - any bytes as datagrams to the socket of a device, and to that of a multicast group: a
 * datagram with the right numbers and key completes the next receive, with its bytes; every other one
 * changes nothing. A receive that is too short fails; bytes beside the payload stay as they are.
 *
 * An input is a byte (1: receives come from an SRQ) and records of two bytes, `kind` and length, and so
 * many more:
 *
 *   RAW      a datagram
 *   MADE     flags, immediate, payload; the rest is right, but for what `wrong` says
 *   RECEIVE  a receive, 16 times as long as the first byte
 *   OWN      our queue pair sends to itself, or to the group
 *   ERROR    our queue pair changes to the error state, or back */
#include "test/unit/device_harness.h"
#include "test/unit/soft/stream.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/rdmap/mcast.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "common/address.h"
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RAW, MADE, RECEIVE, OWN, ERROR, KINDS };
enum { WRONG_MAGIC = 1, WRONG_QP = 2, WRONG_KEY = 4, TO_GROUP = 8, LONGEST = 16, TOO_LONG = 32 };
enum {
	RECEIVES = 16, HEADER = 24, IMMEDIATE = 1, MAGIC = 0x44504c01,
	SLOT = 8192, /* bytes of the buffer for each receive */
	MOMENT_MS = 1000, /* a datagram over loopback takes less; else it was dropped */
};

static int peer;			/* the socket that sends */
static struct sockaddr_storage own, group;	/* addresses of the device, and of the group's datagrams */
static struct ibv_mr *buffer_mr;
static uint8_t *buffer;

struct run {
	struct soft_qp *qp;
	struct ibv_srq *srq;
	struct soft_member member;
	struct ibv_ah *ah[2];			/* of own, group */
	uint32_t lengths[RECEIVES];		/* of the receives that are posted, from `first` on */
	unsigned first, posted;
	bool failed;
};

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ud_fuzz: %s\n", what);
	abort();
}

/* --- one queue pair -------------------------------------------------------------------------- */

static void open_run(struct run *r, bool with_srq)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { RECEIVES, RECEIVES, 4, 4, 64 } };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = RECEIVES, .max_sge = 4 } };
	struct dapl_device *dev = stream_device.dev;
	struct ibv_qp *qp;

	memset(r, 0, sizeof *r);
	if (with_srq)
		demand(!soft_srq_create(stream_device.pd, &shared, &r->srq), "no SRQ");
	attr.srq = r->srq;
	demand(!soft_qp_create(dev, stream_device.pd, &attr, &qp), "no queue pair");
	r->qp = r->member.qp = (struct soft_qp *)qp;
	own = dev->address;
	address_set_port((struct sockaddr *)&own, dev->datagrams.port);
	demand(!soft_ud_ah_create(stream_device.pd, (struct sockaddr *)&own, dev->datagrams.port, &r->ah[0]) &&
	       !soft_ud_ah_create(stream_device.pd, (struct sockaddr *)&group, SOFT_MCAST_PORT, &r->ah[1]),
	       "no address handle");
	soft_progress_lock(dev);
	demand(!soft_mcast_may_send(dev) &&
	       !soft_mcast_join(dev, (struct sockaddr *)&group, &r->member), "no multicast group");
	soft_progress_unlock(dev);
	memset(buffer, 0xa5, RECEIVES * SLOT);
}

static void close_run(struct run *r)
{
	soft_progress_lock(stream_device.dev);
	soft_mcast_leave(stream_device.dev, &r->member);
	soft_progress_unlock(stream_device.dev);
	soft_ud_ah_destroy(r->ah[0]);
	soft_ud_ah_destroy(r->ah[1]);
	demand(!soft_qp_destroy(&r->qp->qp), "the queue pair is not destroyed");
	if (r->srq)
		demand(!soft_srq_destroy(r->srq), "the SRQ is not destroyed");
}

static void post_receive(struct run *r, uint32_t length)
{
	unsigned i = (r->first + r->posted) % RECEIVES;
	struct ibv_sge sge[2] = {
		{ (uintptr_t)buffer + i * SLOT, length / 3, buffer_mr->lkey },
		{ (uintptr_t)buffer + i * SLOT + length / 3, length - length / 3, buffer_mr->lkey },
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = sge, .num_sge = 2 }, *bad;

	if (r->posted == RECEIVES)
		return;
	if (r->srq ? soft_srq_post(r->srq, &wr, &bad) : soft_qp_post_recv(&r->qp->qp, &wr, &bad))
		return;
	r->lengths[i] = length;
	r->posted++;
	memset(buffer + i * SLOT, 0xa5, SLOT);
}

/* --- what must hold -------------------------------------------------------------------------- */

static bool is_untouched(const uint8_t *p, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (p[i] != 0xa5)
			return false;
	return true;
}

/* A datagram that is to be delivered: its receive completes with it. */
static void check_delivered(struct run *r, const uint8_t *datagram, size_t length)
{
	uint32_t total = SOFT_GRH + length - HEADER, i = r->first;
	const uint8_t *at = buffer + i * SLOT;
	struct ibv_wc wc[2];

	demand(soft_cq_poll(stream_device.cq, 2, wc) == 1, "not one completion of a good datagram");
	demand(wc[0].wr_id == i && wc[0].qp_num == r->qp->qp.qp_num, "another receive");
	r->first = (i + 1) % RECEIVES;
	r->posted--;
	if (total > r->lengths[i]) {
		demand(wc[0].status == IBV_WC_LOC_LEN_ERR && is_untouched(at, SLOT), "more than fits");
		return;
	}
	demand(wc[0].status == IBV_WC_SUCCESS && wc[0].byte_len == total, "wrong length or status");
	demand(wc[0].src_qp == wire_get32(datagram + 8), "wrong source");
	demand(!(wc[0].wc_flags & IBV_WC_WITH_IMM) == !(wire_get32(datagram + 16) & IMMEDIATE),
	       "immediate data that were not sent, or not those that were");
	demand(!memcmp(at + SOFT_GRH, datagram + HEADER, length - HEADER), "other bytes");
	demand(is_untouched(at + total, SLOT - total), "bytes behind the payload");
}

static void check_nothing(void)
{
	struct ibv_wc wc;

	demand(!soft_cq_poll(stream_device.cq, 1, &wc), "a completion of a datagram that is not for us");
}

/* What the header must be, restated; ud.c has the format. */
static bool is_for_us(const struct run *r, const uint8_t *p, size_t length, bool to_group)
{
	if (length < HEADER || length > HEADER + SOFT_UD_MTU || wire_get32(p) != MAGIC)
		return false;
	if (to_group)
		return wire_get32(p + 4) == SOFT_MCAST_QPN && wire_get32(p + 12) == SOFT_MCAST_QKEY;
	return wire_get32(p + 4) == r->qp->qp.qp_num && wire_get32(p + 12) == r->qp->qkey;
}

/* False: the system has dropped it. */
static bool await_datagram(void)
{
	struct pollfd ready = { .fd = stream_device.dev->data_epoll, .events = POLLIN };
	int came;

	do	/* the fuzzer has a timer */
		came = poll(&ready, 1, MOMENT_MS);
	while (came < 0 && errno == EINTR);
	return came > 0;
}

/* A failed queue pair takes no receive; one of its own queue is flushed by then. */
static void receive(struct run *r, const uint8_t *p, size_t length, bool to_group)
{
	bool good = is_for_us(r, p, length, to_group) && r->posted && !r->failed;

	if (!await_datagram())
		return;
	soft_progress_lock(stream_device.dev);
	soft_ud_receive(stream_device.dev);
	soft_progress_unlock(stream_device.dev);
	if (good)
		check_delivered(r, p, length);
	else
		check_nothing();
}

/* --- records --------------------------------------------------------------------------------- */

static void send_datagram(struct run *r, const uint8_t *p, size_t length, bool to_group)
{
	const struct sockaddr_storage *to = to_group ? &group : &own;
	ssize_t n = sendto(peer, p, length, MSG_DONTWAIT, (const struct sockaddr *)to,
			   address_length((const struct sockaddr *)to));

	if (n == (ssize_t)length)
		receive(r, p, length, to_group);
}

/* p: what is wrong, source, flags, immediate, payload. */
static void send_made(struct run *r, const uint8_t *p, size_t length)
{
	static uint8_t datagram[HEADER + SOFT_UD_MTU + 64];
	bool to_group = length && p[0] & TO_GROUP;
	size_t payload;

	if (length < 13)
		return;
	wire_put32(datagram, MAGIC ^ (p[0] & WRONG_MAGIC));
	wire_put32(datagram + 4, (to_group ? SOFT_MCAST_QPN : r->qp->qp.qp_num) ^ (p[0] & WRONG_QP));
	memcpy(datagram + 8, p + 1, 4);
	wire_put32(datagram + 12, (to_group ? SOFT_MCAST_QKEY : r->qp->qkey) ^ (p[0] & WRONG_KEY));
	memcpy(datagram + 16, p + 5, 8);
	payload = length - 13;
	memset(datagram + HEADER, p[0], SOFT_UD_MTU + 64);
	memcpy(datagram + HEADER, p + 13, payload);
	if (p[0] & LONGEST)
		payload = SOFT_UD_MTU + (p[0] & TOO_LONG ? 1 + p[1] % 64u : 0);
	send_datagram(r, datagram, HEADER + payload, to_group);
}

static void send_own(struct run *r, uint8_t how, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)stream_device.memory->local, length, stream_device.local->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1,
		.opcode = how & 1 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND,
		.send_flags = how & 2 ? IBV_SEND_SOLICITED : 0,
		.wr.ud = { .ah = r->ah[how >> 2 & 1], .remote_qpn = r->qp->qp.qp_num,
			.remote_qkey = r->qp->qkey + (how >> 3 & 1) } };
	bool good = !(how & 4) && !(how & 8) && r->posted && !r->failed && length <= SOFT_UD_MTU;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct ibv_wc wc[2];
	int n;

	if (how & 4)
		wr.wr.ud.remote_qpn = SOFT_MCAST_QPN, wr.wr.ud.remote_qkey = SOFT_MCAST_QKEY;
	dapl_mutex_lock(&r->qp->lock);
	demand(!soft_ud_send(r->qp, &wr, &status), "a send is refused");
	dapl_mutex_unlock(&r->qp->lock);
	demand((status == IBV_WC_LOC_LEN_ERR) == (length > SOFT_UD_MTU), "wrong length of a send");
	if (status != IBV_WC_SUCCESS || !await_datagram())
		return;
	soft_progress_lock(stream_device.dev);
	soft_ud_receive(stream_device.dev);
	soft_progress_unlock(stream_device.dev);
	n = soft_cq_poll(stream_device.cq, 2, wc);	/* a member does not get its own */
	demand(n == good, "not one completion of what we sent to ourselves, or one of another");
	r->first = (r->first + (unsigned)n) % RECEIVES;
	r->posted -= (unsigned)n;
}

/* Of a queue of its own all receives complete; those of an SRQ stay. */
static void change_state(struct run *r)
{
	struct ibv_wc wc[RECEIVES + 1];
	int n;

	if (r->failed) {
		demand(!soft_qp_reset(stream_device.dev, &r->qp->qp), "reset");
		r->failed = false;
		return;
	}
	soft_qp_error(&r->qp->qp);
	n = soft_cq_poll(stream_device.cq, RECEIVES + 1, wc);
	demand(n == (r->srq ? 0 : (int)r->posted), "not each receive is flushed once");
	for (int i = 0; i < n; i++)
		demand(wc[i].status == IBV_WC_WR_FLUSH_ERR, "a receive of no datagram succeeds");
	if (!r->srq)
		r->posted = 0;
	r->failed = true;
}

static void record(struct run *r, unsigned kind, const uint8_t *p, uint32_t length)
{
	switch (kind % KINDS) {
	case RAW:
		send_datagram(r, p, length, kind & 8);
		break;
	case MADE:
		send_made(r, p, length);
		break;
	case RECEIVE:
		if (length && !r->failed)
			post_receive(r, p[0] * 16u);
		break;
	case OWN:
		if (length > 1 && !r->failed)
			send_own(r, p[0], p[1] * 32u);
		break;
	case ERROR:
		change_state(r);
		break;
	}
}

/* Asynchronous events of any number. The harness would keep them all. */
static void ignore(const struct upcall *up)
{
	(void)up;
}

static void open_sockets(void)
{
	struct dapl_device *dev = stream_device.dev;
	struct sockaddr_in *to = (struct sockaddr_in *)&group;
	struct in_addr interface = ((struct sockaddr_in *)&dev->address)->sin_addr;

	*to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(SOFT_MCAST_PORT),
		.sin_addr = { htonl(0xefff0000u | (getpid() & 0xffff)) } };	/* not another process's */
	peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	demand(peer >= 0 && !setsockopt(peer, IPPROTO_IP, IP_MULTICAST_IF, &interface, sizeof interface),
	       "no socket");
	demand(!soft_ud_open(dev), "no socket of the device");
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	upcall_observer = ignore;
	stream_device_open();
	dapl_watch_stop(&stream_device.dev->progress.data_watch);	/* only this thread serves */
	buffer = malloc(RECEIVES * SLOT);
	demand(buffer && !dapl_device_ops.reg_mr(stream_device.pd, buffer, RECEIVES * SLOT,
						 IBV_ACCESS_LOCAL_WRITE, NULL, &buffer_mr), "memory");
	open_sockets();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run r;

	if (!size)
		return 0;
	open_run(&r, data[0] & 1);
	data++;
	size--;
	while (size >= 2) {
		uint32_t length = wire_get16(data) & 0xfff;

		length = length < size - 2 ? length : size - 2;
		record(&r, data[0] >> 4, data + 2, length);
		data += 2 + length;
		size -= 2 + length;
	}
	close_run(&r);
	return 0;
}
