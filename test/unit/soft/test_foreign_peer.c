/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_foreign_peer.c - the software RNIC and a peer of another implementation: a socket on which
 * the test speaks MPA, DDP and RDMAP, correctly or not. In both roles, with CRC and without,
 * with FPDUs in parts of any size; each invalid frame must end in the right Terminate. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/core/base/settings.h"
#include "common/log.h"
#include "dapl/soft/cm/half_open.h"
#include "dapl/soft/tcp/wire.h"
#include "test/own_network.h"
#include "test/unit/device_harness.h"

static const struct dapl_device_ops *ops = &dapl_device_ops;

#define OK(call) assert_int_equal((call), 0)

/* --- upcalls ----------------------------------------------------------------------- */

/* Waits for the only upcall of this kind since the endpoint exists. */
static struct upcall await(enum upcall_kind kind)
{
	struct upcall up = { 0 };

	if (!upcall_wait(kind, NULL, 10000, &up))
		fail_msg("upcall %d did not come", kind);
	assert_int_equal(upcall_count(kind, NULL), 1);
	return up;
}

/* --- the device's end -------------------------------------------------------------- */

enum { BUFFER = 1 << 20 };

static struct {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct dapl_conn *conn;
	struct dapl_listener *listener;
	uint16_t port;
	char *buf;
} we;

static void open_device_end(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 64, 64, 4, 4, 64 }, .qp_type = IBV_QPT_RC };

	upcalls_drop(NULL);
	memset(&we, 0, sizeof we);
	OK(ops->open("127.0.0.1 0", &we, &we.dev));
	OK(ops->alloc_pd(we.dev, &we.pd));
	OK(ops->create_cq(we.dev, 1000, NULL, NULL, &we.cq));
	attr.send_cq = attr.recv_cq = we.cq;
	OK(ops->create_qp(we.dev, we.pd, &attr, &we.qp));
	we.buf = calloc(1, BUFFER);
	OK(ops->reg_mr(we.pd, we.buf, BUFFER, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_WRITE, NULL, &we.mr));
	OK(ops->listen(we.dev, NULL, &we.port, false, 8, &we, &we.listener));
}

static void close_device_end(void)
{
	if (we.conn) {
		ops->release(we.conn);
		await(RELEASED);
	}
	ops->unlisten(we.listener);
	OK(ops->destroy_qp(we.qp));
	OK(ops->dereg_mr(we.mr));
	OK(ops->destroy_cq(we.cq));
	OK(ops->dealloc_pd(we.pd));
	ops->close(we.dev);
	free(we.buf);
}

/* Replaces the endpoint of a connection that has ended. */
static void restart_device_end(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 64, 64, 4, 4, 64 }, .qp_type = IBV_QPT_RC };

	ops->release(we.conn);
	await(RELEASED);
	OK(ops->destroy_qp(we.qp));
	attr.send_cq = attr.recv_cq = we.cq;
	OK(ops->create_qp(we.dev, we.pd, &attr, &we.qp));
	upcalls_drop(NULL);
}

static struct dapl_conn_params params(const struct sockaddr_in *to)
{
	return (struct dapl_conn_params){ .qp = we.qp, .owner = &we, .reads_in = 4,
		.reads_out = 4, .remote = (const struct sockaddr *)to };
}

static void post_recv(uint64_t id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)we.buf + offset, length, we.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	OK(ibv_post_recv(we.qp, &wr, &bad));
}

static void post(uint64_t id, enum ibv_wr_opcode op, uint32_t offset, uint32_t length,
		 uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)we.buf + offset, length, we.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { remote, rkey } }, *bad;

	OK(ibv_post_send(we.qp, &wr, &bad));
}

static struct ibv_wc completion(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	for (int i = 0; i < 100000 && !ibv_poll_cq(we.cq, 1, &wc); i++)
		usleep(100);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

static void in_any_order(uint64_t a, uint64_t b)
{
	struct ibv_wc wc[2];
	int n = 0;

	for (int i = 0; i < 100000 && n < 2; i++) {
		n += ibv_poll_cq(we.cq, 2 - n, wc + n);
		usleep(100);
	}
	assert_int_equal(n, 2);
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
	assert_true((wc[0].wr_id == a && wc[1].wr_id == b) ||
		    (wc[0].wr_id == b && wc[1].wr_id == a));
}

/* --- the foreign peer -------------------------------------------------------------- */

static int s;			/* its socket */
static bool crc_on;
static int cut;			/* bytes per send; 0: all */

static void sleep_a_little(void)
{
	usleep(200);
}

static void put(const void *p, size_t n)
{
	const char *at = p;
	size_t part;

	for (; n; at += part, n -= part) {
		part = cut && n > (size_t)cut ? (size_t)cut : n;
		assert_int_equal(send(s, at, part, MSG_NOSIGNAL), part);
		if (cut)
			sleep_a_little();
	}
}

static bool get(void *p, size_t n)
{
	struct pollfd in = { .fd = s, .events = POLLIN };
	char *at = p;

	while (n) {
		ssize_t k;

		if (poll(&in, 1, 10000) != 1)
			fail_msg("the device sends nothing");
		k = recv(s, at, n, 0);
		if (k <= 0)
			return false;
		at += k;
		n -= k;
	}
	return true;
}

/* Sends a ULPDU in an FPDU. */
static void put_fpdu(const uint8_t *ulpdu, uint16_t n)
{
	uint8_t *fpdu = calloc(1, n + 16);
	size_t pad = -(2 + n) & 3;

	wire_put16(fpdu, n);
	memcpy(fpdu + 2, ulpdu, n);
	if (crc_on)
		wire_crc_put(fpdu + 2 + n + pad,
			     wire_crc(WIRE_CRC_START, fpdu, 2 + n + pad));
	put(fpdu, 2 + n + pad + 4);
	free(fpdu);
}

static void put_segment(struct wire_segment seg, const void *body, uint16_t n)
{
	uint8_t *ulpdu = malloc(n + 32);
	unsigned head = wire_segment_put(ulpdu, &seg);

	if (n)
		memcpy(ulpdu + head, body, n);
	put_fpdu(ulpdu, head + n);
	free(ulpdu);
}

/* Receives the next FPDU of the device. Returns false at the end of the stream. */
static bool get_fpdu(uint8_t *ulpdu, uint16_t *n)
{
	uint8_t head[2], *rest, crc[4];
	size_t pad;

	if (!get(head, 2))
		return false;
	*n = wire_get16(head);
	pad = -(2 + *n) & 3;
	rest = malloc(*n + pad + 4);
	assert_true(get(rest, *n + pad + 4));
	memcpy(ulpdu, rest, *n);
	if (crc_on) {
		uint32_t sum = wire_crc(WIRE_CRC_START, head, 2);

		wire_crc_put(crc, wire_crc(sum, rest, *n + pad));
		assert_memory_equal(crc, rest + *n + pad, 4);
	}
	free(rest);
	return true;
}

static void reset_foreign_peer(bool crc)
{
	crc_on = crc;
	cut = 0;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static void dial(void)
{
	struct sockaddr_in to = loopback(we.port);

	s = socket(AF_INET, SOCK_STREAM, 0);
	OK(connect(s, (struct sockaddr *)&to, sizeof to));
}

static void put_mpa(bool reply, uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced,
		    const void *pdata, uint16_t n)
{
	uint8_t frame[WIRE_MPA_MAX + 100];
	struct wire_mpa mpa = { .reply = reply, .flags = flags, .revision = revision };
	size_t at = WIRE_MPA_HEADER;

	if (enhanced) {
		wire_enhanced_put(frame + at, enhanced);
		at += WIRE_MPA_ENHANCED;
	}
	if (n)
		memcpy(frame + at, pdata, n);
	at += n;
	mpa.length = at - WIRE_MPA_HEADER;
	wire_mpa_put(frame, &mpa);
	put(frame, at);
}

/* Returns false at the end of the stream. */
static bool get_mpa(bool reply, struct wire_mpa *mpa, uint8_t *pdata, size_t *n)
{
	uint8_t frame[WIRE_MPA_MAX];

	if (!get(frame, WIRE_MPA_HEADER))
		return false;
	assert_true(wire_mpa_get(frame, reply, mpa));
	*n = mpa->length;
	assert_true(*n <= 512);
	assert_true(get(frame, *n));
	if (mpa->flags & WIRE_MPA_S) {
		wire_enhanced_get(frame, mpa);
		*n -= 4;
		memcpy(pdata, frame + 4, *n);
	} else {
		memcpy(pdata, frame, *n);
	}
	return true;
}

static const struct wire_mpa four_reads = { .ird = 4, .ord = 4 };

/* The foreign peer connects; the device accepts. */
static struct wire_mpa passive_up(uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced)
{
	struct dapl_conn_params p = params(NULL);
	struct upcall request;
	uint8_t pdata[600];
	struct wire_mpa mpa;
	size_t n;

	dial();
	put_mpa(false, flags, revision, enhanced, "hello", 5);
	request = await(REQUEST);
	assert_int_equal(request.length, 5);
	assert_memory_equal(request.pdata, "hello", 5);
	we.conn = request.conn;
	p.pdata = "world";
	p.pdata_len = 5;
	OK(ops->accept(we.conn, &p));
	await(ESTABLISHED);
	assert_true(get_mpa(true, &mpa, pdata, &n));
	assert_false(mpa.flags & WIRE_MPA_REJECT);
	assert_int_equal(mpa.flags & 15, 0);
	assert_int_equal(mpa.revision, revision);
	assert_int_equal(n, 5);
	assert_memory_equal(pdata, "world", 5);
	return mpa;
}

static void foreign_peer_up(bool crc)
{
	struct wire_mpa mpa;

	reset_foreign_peer(crc);
	open_device_end();
	mpa = passive_up(WIRE_MPA_S | (crc ? WIRE_MPA_CRC : 0), 2, &four_reads);
	assert_int_equal(!!(mpa.flags & WIRE_MPA_CRC), crc);
	assert_int_equal(mpa.ird, 4);
	assert_int_equal(mpa.ord, 4);
}

static void foreign_peer_down(void)
{
	close(s);
	close_device_end();
}

static struct wire_segment send_seg(uint32_t msn, uint32_t mo, bool last)
{
	return (struct wire_segment){ .op = WIRE_SEND, .last = last, .qn = 0, .msn = msn, .mo = mo };
}

/* --- tests: data transfer ---------------------------------------------------------- */

/* Sends, writes and reads, both ways. */
static void talk(void)
{
	struct wire_segment seg = send_seg(1, 0, true);
	uint8_t ulpdu[65536], body[28];
	char text[5000];
	uint16_t n;
	size_t at;

	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (char)(i * 13);
	post_recv(1, 0, 100);
	post_recv(2, 1000, 10000);
	/* sent behind the initiator's first FPDU, or after SOFT_FIRST_MS */
	post(10, IBV_WR_SEND, 0, 50, 0, 0);
	put_segment(seg, "0123456789", 10);
	in_any_order(1, 10);
	assert_memory_equal(we.buf, "0123456789", 10);
	assert_true(get_fpdu(ulpdu, &n));
	assert_int_equal(n, 18 + 50);
	assert_int_equal(ulpdu[0], 0x41);
	assert_int_equal(ulpdu[1], 0x43);
	/* a message in three segments */
	put_segment(send_seg(2, 0, false), text, 1);
	put_segment(send_seg(2, 1, false), text + 1, 3000);
	put_segment(send_seg(2, 3001, true), text + 3001, 1999);
	assert_int_equal(completion(2, 0).byte_len, 5000);
	assert_memory_equal(we.buf + 1000, text, 5000);
	/* write, then read it back */
	seg = (struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE,
		.stag = we.mr->rkey, .to = (uintptr_t)we.buf + 20000 };
	put_segment(seg, text, 5000);
	wire_put32(body, 77);
	wire_put64(body + 4, 0x1000);
	wire_put32(body + 12, 5000);
	wire_put32(body + 16, we.mr->rkey);
	wire_put64(body + 20, (uintptr_t)we.buf + 20000);
	put_segment((struct wire_segment){ .last = true, .op = WIRE_READ_REQUEST, .qn = 1,
		.msn = 1 }, body, sizeof body);
	for (at = 0; at < 5000; at += n - 14) {
		assert_true(get_fpdu(ulpdu, &n));
		assert_int_equal(ulpdu[1], 0x42);
		assert_int_equal(wire_get32(ulpdu + 2), 77);
		assert_true(wire_get64(ulpdu + 6) == 0x1000 + at);
		assert_memory_equal(ulpdu + 14, text + at, n - 14);
		assert_int_equal(!!(ulpdu[0] & 0x40), at + n - 14 == 5000);
	}
	/* the device reads from the test, and writes */
	post(20, IBV_WR_RDMA_READ, 40000, 3000, 0x123456789, 42);
	post(21, IBV_WR_RDMA_WRITE, 40000, 10, 0x5555, 43);
	assert_true(get_fpdu(ulpdu, &n));
	assert_int_equal(n, 46);
	assert_int_equal(ulpdu[1], 0x41);
	assert_int_equal(wire_get32(ulpdu + 18 + 12), 3000);
	assert_int_equal(wire_get32(ulpdu + 18 + 16), 42);
	assert_true(wire_get64(ulpdu + 18 + 20) == 0x123456789);
	seg = (struct wire_segment){ .tagged = true, .op = WIRE_READ_RESPONSE,
		.stag = wire_get32(ulpdu + 18), .to = wire_get64(ulpdu + 22) };
	put_segment(seg, text, 1234);
	seg.to += 1234;
	seg.last = true;
	put_segment(seg, text + 1234, 3000 - 1234);
	assert_int_equal(completion(20, 0).byte_len, 3000);
	completion(21, 0);
	assert_memory_equal(we.buf + 40000, text, 3000);
	assert_true(get_fpdu(ulpdu, &n));
	assert_int_equal(ulpdu[1], 0x40);
	assert_int_equal(n, 24);
}

static void device_works_as_acceptor(void **state)
{
	static const int cuts[] = { 0, 1, 7, 1000 };

	(void)state;
	for (int crc = 0; crc < 2; crc++)
		for (int i = 0; i < 4; i++) {
			foreign_peer_up(crc);
			cut = cuts[i];
			talk();
			/* the end: FIN at a boundary is a disconnect */
			post_recv(5, 0, 8);
			shutdown(s, SHUT_WR);
			await(CLOSED);
			completion(5, IBV_WC_WR_FLUSH_ERR);
			foreign_peer_down();
		}
}

static void device_works_as_initiator(void **state)
{
	struct sockaddr_in at = loopback(0);
	socklen_t length = sizeof at;
	struct dapl_conn_params p;
	struct wire_mpa mpa;
	uint8_t pdata[600], ulpdu[65536];
	uint16_t n16;
	size_t n;
	int l;

	(void)state;
	for (int crc = 0; crc < 2; crc++) {
		reset_foreign_peer(crc);
		open_device_end();
		l = socket(AF_INET, SOCK_STREAM, 0);
		at = loopback(0);
		OK(bind(l, (struct sockaddr *)&at, sizeof at));
		OK(listen(l, 5));
		OK(getsockname(l, (struct sockaddr *)&at, &length));
		p = params(&at);
		p.pdata = "hello";
		p.pdata_len = 5;
		OK(ops->connect(we.dev, &p, &we.conn));
		s = accept(l, NULL, NULL);
		assert_true(get_mpa(false, &mpa, pdata, &n));
		assert_int_equal(mpa.flags, WIRE_MPA_S | WIRE_DAPL_REQUEST);
		assert_int_equal(mpa.revision, 2);
		assert_false(mpa.p2p);
		assert_int_equal(mpa.ird, 4);
		assert_int_equal(n, 5);
		put_mpa(true, WIRE_MPA_S | (crc ? WIRE_MPA_CRC : 0), 2,
			&(struct wire_mpa){ .ird = 1, .ord = 1 }, "you", 4);
		assert_string_equal(await(ESTABLISHED).pdata, "you");
		post(1, IBV_WR_SEND, 0, 10, 0, 0);
		completion(1, 0);
		assert_true(get_fpdu(ulpdu, &n16));
		assert_int_equal(n16, 28);
		/* one read outstanding at a time, as the Reply said */
		post(2, IBV_WR_RDMA_READ, 0, 8, 1, 1);
		post(3, IBV_WR_RDMA_READ, 8, 8, 2, 2);
		for (int i = 0; i < 2; i++) {
			struct pollfd in = { .fd = s, .events = POLLIN };

			assert_true(get_fpdu(ulpdu, &n16));
			assert_int_equal(n16, 46);
			assert_int_equal(poll(&in, 1, 20), 0);
			put_segment((struct wire_segment){ .tagged = true, .last = true,
				.op = WIRE_READ_RESPONSE, .stag = wire_get32(ulpdu + 18),
				.to = wire_get64(ulpdu + 22) }, "abcdefgh", 8);
			completion(2 + i, 0);
		}
		post_recv(9, 0, 100);
		put_segment(send_seg(1, 0, true), "x", 1);
		completion(9, 0);
		/* the device disconnects: a FIN, without a private frame before it */
		OK(ops->error_qp(we.qp));
		OK(ops->disconnect(we.conn));
		assert_false(get(pdata, 1));
		close(l);
		foreign_peer_down();
	}
}

static void bad_replies_fail_the_connection(void **state)
{
	struct sockaddr_in at;
	socklen_t length = sizeof at;
	struct dapl_conn_params p;
	struct wire_mpa mpa;
	uint8_t pdata[600];
	size_t n;
	int l;

	(void)state;
	for (int kind = 0; kind < 5; kind++) {
		struct upcall up;
		reset_foreign_peer(false);
		open_device_end();
		l = socket(AF_INET, SOCK_STREAM, 0);
		at = loopback(0);
		OK(bind(l, (struct sockaddr *)&at, sizeof at));
		OK(listen(l, 5));
		OK(getsockname(l, (struct sockaddr *)&at, &length));
		p = params(&at);
		OK(ops->connect(we.dev, &p, &we.conn));
		s = accept(l, NULL, NULL);
		assert_true(get_mpa(false, &mpa, pdata, &n));
		switch (kind) {
		case 0:		/* rejected, with data */
			put_mpa(true, WIRE_MPA_S | WIRE_MPA_REJECT, 2, &four_reads, "no", 3);
			break;
		case 1:		/* markers wanted */
			put_mpa(true, WIRE_MPA_S | WIRE_MPA_MARKERS, 2, &four_reads, "", 0);
			break;
		case 2:		/* no Reply at all */
			put_mpa(false, WIRE_MPA_S, 2, &four_reads, "", 0);
			break;
		case 3:		/* the end without a Reply: once more with revision 1 */
			close(s);
			s = accept(l, NULL, NULL);
			assert_true(get_mpa(false, &mpa, pdata, &n));
			assert_int_equal(mpa.revision, 1);
			assert_int_equal(mpa.flags, 0);
			close(s);
			s = -1;
			break;
		case 4:		/* claims to be this implementation, but has no trailer */
			put_mpa(true, WIRE_MPA_S | WIRE_DAPL_REPLY, 2, &four_reads, "", 0);
			break;
		}
		up = await(FAILED);
		assert_int_equal(up.failure, kind ? DAPL_CONN_REFUSED : DAPL_CONN_REJECTED);
		if (!kind)
			assert_string_equal(up.pdata, "no");
		close(l);
		foreign_peer_down();
	}
}

static void peer_to_peer_and_revision_1_connect(void **state)
{
	struct wire_mpa want = { .p2p = true, .p2p_write = true, .p2p_read = true, .ird = 4,
		.ord = 4 }, mpa;
	uint8_t ulpdu[65536];
	uint16_t n;

	(void)state;
	reset_foreign_peer(false);
	open_device_end();
	mpa = passive_up(WIRE_MPA_S, 2, &want);
	assert_true(mpa.p2p && mpa.p2p_write && !mpa.p2p_read && !mpa.p2p_send);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	put_segment((struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE }, "", 0);
	completion(1, 0);
	assert_true(get_fpdu(ulpdu, &n));
	foreign_peer_down();

	reset_foreign_peer(true);
	open_device_end();
	passive_up(WIRE_MPA_CRC, 1, NULL);
	talk();
	foreign_peer_down();
}

/* In DAT the acceptor may send first, to an initiator that waits for its data. If the
 * initiator announced a frame, the acceptor waits for it. */
static void acceptor_may_send_first(void **state)
{
	struct wire_mpa promise = { .p2p = true, .p2p_write = true, .ird = 4, .ord = 4 };
	struct pollfd in = { .events = POLLIN };
	uint8_t ulpdu[65536];
	uint16_t n;

	(void)state;
	foreign_peer_up(true);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	assert_true(get_fpdu(ulpdu, &n));
	assert_int_equal(ulpdu[1], 0x43);
	completion(1, 0);
	post_recv(2, 0, 8);
	put_segment(send_seg(1, 0, true), "x", 1);
	completion(2, 0);
	foreign_peer_down();

	reset_foreign_peer(false);
	open_device_end();
	passive_up(WIRE_MPA_S, 2, &promise);
	post(1, IBV_WR_SEND, 0, 10, 0, 0);
	in.fd = s;
	assert_int_equal(poll(&in, 1, 300), 0);
	put_segment((struct wire_segment){ .tagged = true, .last = true, .op = WIRE_WRITE }, "", 0);
	completion(1, 0);
	foreign_peer_down();
}

/* --- tests: bad Requests ----------------------------------------------------------- */

static void bad_requests_are_refused(void **state)
{
	static const struct wire_mpa send_only = { .p2p = true, .p2p_send = true };
	uint8_t pdata[600], junk[1024];
	struct wire_mpa mpa;
	size_t n;

	(void)state;
	reset_foreign_peer(false);
	open_device_end();
	/* with a Reply that says so */
	for (int kind = 0; kind < 2; kind++) {
		dial();
		if (!kind)
			put_mpa(false, WIRE_MPA_S | WIRE_MPA_MARKERS, 2, &four_reads, "", 0);
		else
			put_mpa(false, WIRE_MPA_S, 2, &send_only, "", 0);
		assert_true(get_mpa(true, &mpa, pdata, &n));
		assert_true(mpa.flags & WIRE_MPA_REJECT);
		assert_false(get(pdata, 1));
		close(s);
	}
	/* with the end of the connection */
	for (int kind = 0; kind < 5; kind++) {
		dial();
		memset(junk, 'x', sizeof junk);
		switch (kind) {
		case 0:
			put(junk, 20);
			break;
		case 1:
			put_mpa(true, 0, 2, NULL, "", 0);
			break;
		case 2:
			put_mpa(false, 0, 3, NULL, "", 0);
			break;
		case 3:		/* enhanced data promised, not there */
			put_mpa(false, WIRE_MPA_S, 2, NULL, "ab", 2);
			break;
		case 4:		/* too long */
			put_mpa(false, 0, 1, NULL, junk, 513);
			break;
		}
		assert_false(get(pdata, 1));
		close(s);
	}
	assert_int_equal(upcall_count(REQUEST, NULL), 0);
	foreign_peer_down();
}

/* --- tests: half-open connections -------------------------------------------------- */

static void allow_descriptors(rlim_t n)
{
	struct rlimit limit;

	OK(getrlimit(RLIMIT_NOFILE, &limit));
	if (limit.rlim_max < n) {
		print_message("%lu descriptors are allowed, %lu needed\n",
			      (unsigned long)limit.rlim_max, (unsigned long)n);
		skip();
	}
	limit.rlim_cur = limit.rlim_cur < n ? n : limit.rlim_cur;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
}

/* Returns the previous limits. */
static struct rlimit set_descriptors(rlim_t n)
{
	struct rlimit before, limit;

	OK(getrlimit(RLIMIT_NOFILE, &before));
	allow_descriptors(n);
	limit = before;
	limit.rlim_cur = n;
	OK(setrlimit(RLIMIT_NOFILE, &limit));
	return before;
}

static long resident_bytes(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		fail_msg("/proc/self/statm");
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

static bool at_end(int socket, int timeout_ms)
{
	struct pollfd in = { .fd = socket, .events = POLLIN };
	char byte;

	return poll(&in, 1, timeout_ms) == 1 && recv(socket, &byte, 1, 0) <= 0;
}

/* Half of the connections send nothing, the others only the beginning of a Request. */
static void dial_and_be_silent(int *silent, int n)
{
	for (int i = 0; i < n; i++) {
		dial();
		silent[i] = s;
		if (i % 2)
			put("MPA ID", 6);
	}
}

/* Half-open connections cost little, do not keep other peers out, and are closed after SOFT_HANDSHAKE_S. */
static void half_open_connections_time_out(void **state)
{
	enum { N = 1000 };
	static int silent[N];
	long before;

	(void)state;
	allow_descriptors(2 * N + 100);
	own_network();
	reset_foreign_peer(false);
	open_device_end();
	before = resident_bytes();
	dial_and_be_silent(silent, N);
	passive_up(WIRE_MPA_S, 2, &four_reads);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(resident_bytes() - before < N * 4096l);
#endif
	(void)before;
	for (int i = 0; i < N; i++) {
		assert_true(at_end(silent[i], 60000));
		close(silent[i]);
	}
	talk();		/* the complete connection is still open */
	foreign_peer_down();
}

/* One source address gets 1/8 of the descriptors: its oldest connection is closed for its newest. */
static void beyond_the_limit_the_oldest_is_closed(void **state)
{
	enum { DESCRIPTORS = 4096, LIMIT = DESCRIPTORS / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES, MORE = 20 };
	static int silent[LIMIT + MORE];
	struct rlimit before;

	(void)state;
	before = set_descriptors(DESCRIPTORS);
	own_network();
	reset_foreign_peer(false);
	open_device_end();
	dial_and_be_silent(silent, LIMIT + MORE);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	assert_false(at_end(silent[LIMIT + MORE - 1], 0));
	for (int i = 0; i < MORE; i++)
		assert_true(at_end(silent[i], 1000));
	talk();
	for (int i = 0; i < LIMIT + MORE; i++)
		close(silent[i]);
	foreign_peer_down();
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

/* Forks a process that makes connections and sends nothing, until it is killed. */
static pid_t fork_silent_process(int go, int done, int sources, int each)
{
	struct sockaddr_in to, from = loopback(0);
	uint16_t port;
	pid_t pid = fork();

	if (pid)
		return pid;
	if (read(go, &port, sizeof port) != sizeof port)
		_exit(1);
	to = loopback(port);
	for (int i = 0; i < sources * each; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + i % sources);
		if (bind(fd, (struct sockaddr *)&from, sizeof from) ||
		    connect(fd, (struct sockaddr *)&to, sizeof to))
			_exit(2);
	}
	if (write(done, "d", 1) != 1)
		_exit(3);
	pause();
	_exit(0);
}

static int open_descriptors(int limit)
{
	int count = 0;

	for (int fd = 0; fd < limit; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* The connections of the silent process are in the backlog before that of the test: once that one is
 * accepted, all of them were. */
static void half_open_connections_leave_descriptors(int sources, int most)
{
	enum { DESCRIPTORS = 400, EACH = 300 };
	static int taken[DESCRIPTORS];
	int go[2], done[2], before, n = 0, last;
	struct rlimit rlimit;
	char byte;
	pid_t pid;

	OK(pipe(go) | pipe(done));
	pid = fork_silent_process(go[0], done[1], sources, EACH);
	assert_true(pid > 0);
	rlimit = set_descriptors(DESCRIPTORS);
	reset_foreign_peer(false);
	open_device_end();
	before = open_descriptors(DESCRIPTORS);
	assert_int_equal(write(go[1], &we.port, sizeof we.port), sizeof we.port);
	assert_int_equal(read(done[0], &byte, 1), 1);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	assert_in_range(open_descriptors(DESCRIPTORS) - before, 2, 2 + most);
	close(s);
	await(CLOSED);
	/* The application uses all other descriptors. A new peer gets the place of a silent one. */
	while ((taken[n] = dup(0)) >= 0)
		n++;
	assert_true(n > 0);
	last = taken[--n];
	close(last);
	restart_device_end();
	passive_up(WIRE_MPA_S, 2, &four_reads);
	while (n)
		close(taken[--n]);
	talk();
	foreign_peer_down();
	OK(kill(pid, SIGKILL));
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(done[i]);
	}
	OK(setrlimit(RLIMIT_NOFILE, &rlimit));
}

static void one_source_gets_half_of_the_share(void **state)
{
	(void)state;
	half_open_connections_leave_descriptors(1, 400 / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES);
}

static void all_sources_get_a_share(void **state)
{
	(void)state;
	half_open_connections_leave_descriptors(4, 400 / HALF_OPEN_FRACTION);
}

/* --- tests: bad frames ------------------------------------------------------------- */

static void bad_frame(int kind)
{
	struct wire_segment write = { .tagged = true, .last = true, .op = WIRE_WRITE,
		.stag = we.mr->rkey, .to = (uintptr_t)we.buf };
	struct wire_segment read = { .last = true, .op = WIRE_READ_REQUEST, .qn = 1, .msn = 1 };
	struct wire_segment seg = send_seg(1, 0, true);
	uint8_t ulpdu[64] = { 0 }, body[64] = { 0 };
	unsigned n;

	switch (kind) {
	case 0:
		write.stag ^= 0x100;
		put_segment(write, "12345678", 8);
		break;
	case 1:
		write.to += BUFFER - 7;
		put_segment(write, "12345678", 8);
		break;
	case 2:
		write.to = UINT64_MAX - 2;
		put_segment(write, "12345678", 8);
		break;
	case 3:		/* DDP version */
		n = wire_segment_put(ulpdu, &write);
		ulpdu[0] ^= 3;
		put_fpdu(ulpdu, n);
		break;
	case 4:
		n = wire_segment_put(ulpdu, &seg);
		ulpdu[0] ^= 3;
		put_fpdu(ulpdu, n);
		break;
	case 5:		/* RDMAP version */
		n = wire_segment_put(ulpdu, &seg);
		ulpdu[1] ^= 0xc0;
		put_fpdu(ulpdu, n);
		break;
	case 6:		/* an opcode that only peers of this implementation use */
		seg.op = WIRE_IMMEDIATE;
		put_segment(seg, "12345678", 8);
		break;
	case 7:
		seg.op = WIRE_ATOMIC_REQUEST;
		seg.qn = 1;
		put_segment(seg, body, 52);
		break;
	case 8:		/* tagged send */
		write.op = WIRE_SEND;
		put_segment(write, "", 0);
		break;
	case 9:
		seg.qn = 1;
		put_segment(seg, "", 0);
		break;
	case 10:
		seg.msn = 2;
		put_segment(seg, "", 0);
		break;
	case 11:
		seg.mo = 4;
		put_segment(seg, "", 0);
		break;
	case 12:	/* a hole in a message */
		seg.last = false;
		put_segment(seg, "1234", 4);
		seg.mo = 8;
		put_segment(seg, "1234", 4);
		break;
	case 13:	/* longer than the receive */
		put_segment(seg, body, 64);
		break;
	case 14:	/* shorter than any header */
		put_fpdu(ulpdu, 3);
		break;
	case 15:
		ulpdu[0] = 0x41;
		ulpdu[1] = 0x43;
		put_fpdu(ulpdu, 17);
		break;
	case 16:	/* read request of a wrong length */
		put_segment(read, body, 27);
		break;
	case 17:	/* read of an unknown STag */
		wire_put32(body + 12, 8);
		wire_put32(body + 16, we.mr->rkey ^ 0x10000);
		put_segment(read, body, 28);
		break;
	case 18:
		wire_put32(body + 12, BUFFER + 1);
		wire_put32(body + 16, we.mr->rkey);
		wire_put64(body + 20, (uintptr_t)we.buf);
		put_segment(read, body, 28);
		break;
	case 19:	/* a response without a request */
		write.op = WIRE_READ_RESPONSE;
		put_segment(write, "12345678", 8);
		break;
	case 20:	/* invalidates an STag that must not be invalidated */
		seg.op = WIRE_SEND_INV;
		seg.stag = we.mr->rkey;
		put_segment(seg, "", 0);
		break;
	case 21:	/* wrong CRC (only with CRC) */
		n = 4;
		put("\0\x12\x41\x43" "................" "\0\0" "....", 26);
		break;
	}
}

static const struct {
	int term, crc;
} wants[] = {
	{ WIRE_TERM_DDP_STAG, -1 }, { WIRE_TERM_DDP_BOUNDS, -1 }, { WIRE_TERM_DDP_WRAP, -1 },
	{ WIRE_TERM_TAGGED_VERSION, -1 }, { WIRE_TERM_UNTAGGED_VERSION, -1 },
	{ WIRE_TERM_RDMAP_VERSION, -1 }, { WIRE_TERM_OPCODE, -1 }, { WIRE_TERM_OPCODE, -1 },
	{ WIRE_TERM_OPCODE, -1 }, { WIRE_TERM_QN, -1 }, { WIRE_TERM_MSN, -1 },
	{ WIRE_TERM_MO, -1 }, { WIRE_TERM_MO, -1 }, { WIRE_TERM_TOO_LONG, -1 },
	{ WIRE_TERM_LENGTH, -1 }, { WIRE_TERM_LENGTH, -1 }, { WIRE_TERM_LENGTH, -1 },
	{ WIRE_TERM_STAG, -1 }, { WIRE_TERM_BOUNDS, -1 }, { WIRE_TERM_OPCODE, -1 },
	{ WIRE_TERM_INVALIDATE, -1 }, { WIRE_TERM_CRC, 1 },
};

static void each_bad_frame_gets_its_terminate(void **state)
{
	uint8_t ulpdu[65536];
	uint16_t n;

	(void)state;
	for (int crc = 0; crc < 2; crc++)
		for (int kind = 0; kind < (int)(sizeof wants / sizeof wants[0]); kind++) {
			if (wants[kind].crc >= 0 && wants[kind].crc != crc)
				continue;
			foreign_peer_up(crc);
			post_recv(1, 0, 32);
			bad_frame(kind);
			assert_true(get_fpdu(ulpdu, &n));
			assert_int_equal(ulpdu[1], 0x47);
			assert_int_equal(wire_get32(ulpdu + 6), 2);
			assert_int_equal(wire_get32(ulpdu + 10), 1);
			if (wire_get16(ulpdu + 18) != wants[kind].term)
				print_message("bad frame %d, crc %d\n", kind, crc);
			assert_int_equal(wire_get16(ulpdu + 18), wants[kind].term);
			assert_int_equal(n, 22);
			assert_false(get(ulpdu, 1));
			await(BROKEN);
			completion(1, kind == 13 ? IBV_WC_LOC_LEN_ERR : IBV_WC_WR_FLUSH_ERR);
			foreign_peer_down();
		}
}

static void more_reads_than_agreed_are_refused(void **state)
{
	uint8_t ulpdu[65536], body[28] = { 0 };
	bool terminated = false;
	uint16_t n;

	(void)state;
	foreign_peer_up(false);
	wire_put32(body + 12, BUFFER);		/* more than the socket takes at once */
	wire_put32(body + 16, we.mr->rkey);
	wire_put64(body + 20, (uintptr_t)we.buf);
	for (int i = 0; i < 40; i++)
		put_segment((struct wire_segment){ .last = true, .op = WIRE_READ_REQUEST,
			.qn = 1, .msn = i + 1 }, body, sizeof body);
	while (get_fpdu(ulpdu, &n) && !terminated)
		if (ulpdu[1] == 0x47) {
			assert_int_equal(wire_get16(ulpdu + 18), WIRE_TERM_NO_BUFFER);
			terminated = true;
		}
	assert_true(terminated);
	foreign_peer_down();
}

static void terminate_of_the_peer_ends_the_connection(void **state)
{
	static const uint8_t layouts[2][4] = { { 0x01, 0x02, 0, 0 }, { 0x10, 0x02, 0x07, 0 } };
	uint8_t ulpdu[65536];
	uint16_t n;

	(void)state;
	for (int i = 0; i < 2; i++) {
		foreign_peer_up(false);
		post_recv(1, 0, 100);
		put_segment(send_seg(1, 0, true), "a", 1);
		completion(1, 0);
		post_recv(2, 0, 100);
		post(3, IBV_WR_RDMA_READ, 0, 8, 0, 0);
		assert_true(get_fpdu(ulpdu, &n));
		put_segment((struct wire_segment){ .last = true, .op = WIRE_TERMINATE, .qn = 2,
			.msn = 1 }, layouts[i], 4);
		completion(3, IBV_WC_REM_ACCESS_ERR);
		completion(2, IBV_WC_WR_FLUSH_ERR);
		await(BROKEN);
		foreign_peer_down();
	}
}

static void disorderly_ends_break_the_connection(void **state)
{
	struct linger reset = { 1, 0 };

	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		foreign_peer_up(kind == 2);
		post_recv(1, 0, 100);
		if (kind == 0) {
			put("\0\x20\x41", 3);		/* FIN inside an FPDU */
		} else if (kind == 1) {
			setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
		} else {
			put_segment(send_seg(1, 0, false), "abc", 3);	/* inside a message */
		}
		close(s);
		await(BROKEN);
		completion(1, IBV_WC_WR_FLUSH_ERR);
		s = -1;
		foreign_peer_down();
	}
}

/* Sends of 32 KiB until there are `most` of them or the device's socket takes no more. */
static int send_without_receives(int most)
{
	static const uint8_t block[32768] = { 'b' };
	struct timeval limit = { 0, 300000 };
	int sent = 0;

	setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	for (; sent < most; sent++) {
		uint8_t fpdu[18 + 2 + 32768 + 8] = { 0 };
		struct wire_segment seg = send_seg(sent + 1, 0, true);

		wire_put16(fpdu, 18 + 32768);
		wire_segment_put(fpdu + 2, &seg);
		memcpy(fpdu + 20, block, 32768);
		if (send(s, fpdu, 20 + 32768 + 4, MSG_NOSIGNAL) != 20 + 32768 + 4)
			break;
	}
	return sent;
}

static void sends_without_receives_stop_reading(void **state)
{
	int sent, got = 0;

	(void)state;
	foreign_peer_up(false);
	sent = send_without_receives(2000);
	assert_true(sent > 20 && sent < 2000);
	for (; got < sent; got++) {
		post_recv(got, 0, 32768);
		assert_int_equal(completion(got, 0).byte_len, 32768);
	}
	foreign_peer_down();
}

/* The device stops reading at the Send beyond 1 MiB. That Send is short, so the socket has room for the FIN
 * behind it, and the device is notified of the FIN without reading up to it. */
static void end_of_a_stalled_peer_is_noticed(void **state)
{
	enum { A_MIB = 32 };

	(void)state;
	foreign_peer_up(false);
	assert_int_equal(send_without_receives(A_MIB), A_MIB);
	put_segment(send_seg(A_MIB + 1, 0, true), "more", 4);
	OK(shutdown(s, SHUT_WR));
	await(BROKEN);
	foreign_peer_down();
}

/* Returns the class of the record in `records` that contains `text`; 0 if there is none. */
static unsigned class_of_record(FILE *records, const char *text)
{
	unsigned class = 0, found;
	char line[512];

	rewind(records);
	while (fgets(line, sizeof line, records))
		if (strstr(line, text) && sscanf(line, "%X", &found) == 1)
			class = found;
	return class;
}

/* Runs `part` with all trace records enabled. They are written to a file. */
static FILE *traced(void (*part)(void))
{
	FILE *records = tmpfile();
	int terminal = dup(STDERR_FILENO);

	assert_non_null(records);
	dup2(fileno(records), STDERR_FILENO);
	trace_set_level(TRC_LVL_MAX);
	part();
	trace_set_level(0);
	dup2(terminal, STDERR_FILENO);
	close(terminal);
	return records;
}

static void one_more_than_a_source_may_have(void)
{
	enum { DESCRIPTORS = 128, LIMIT = DESCRIPTORS / HALF_OPEN_FRACTION / HALF_OPEN_SOURCES };
	struct rlimit before = set_descriptors(DESCRIPTORS);
	int silent[LIMIT + 1];

	reset_foreign_peer(false);
	open_device_end();
	dial_and_be_silent(silent, LIMIT + 1);
	passive_up(WIRE_MPA_S, 2, &four_reads);
	for (int i = 0; i < LIMIT + 1; i++)
		close(silent[i]);
	foreign_peer_down();
	OK(setrlimit(RLIMIT_NOFILE, &before));
}

static unsigned lines_with(FILE *records, const char *text)
{
	unsigned count = 0;
	char line[512];

	rewind(records);
	while (fgets(line, sizeof line, records))
		count += strstr(line, text) != NULL;
	return count;
}

/* Two are closed: one for the last silent connection, one for the test's own. */
static void closed_half_open_connections_are_one_line(void **state)
{
	unsigned mask = log_mask;
	FILE *records;

	(void)state;
	log_mask = 3;
	records = traced(one_more_than_a_source_may_have);
	log_mask = mask;
	assert_int_equal(lines_with(records, "half-open connection closed"), 2);
	assert_int_equal(lines_with(records, "too many connections sent no request: closed the oldest, "
				    "from 127.0.0.1"), 1);
	fclose(records);
}

static void errors_have_the_error_class(void **state)
{
	FILE *records = traced(one_more_than_a_source_may_have);

	(void)state;
	assert_int_equal(class_of_record(records, "half-open connection closed"), TRC_DAPL_ERROR);
	assert_int_equal(class_of_record(records, "data goes over TCP"), TRC_DAPL_EVENT);
	fclose(records);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(device_works_as_acceptor),
		cmocka_unit_test(device_works_as_initiator),
		cmocka_unit_test(bad_replies_fail_the_connection),
		cmocka_unit_test(peer_to_peer_and_revision_1_connect),
		cmocka_unit_test(acceptor_may_send_first),
		cmocka_unit_test(bad_requests_are_refused),
		cmocka_unit_test(half_open_connections_time_out),
		cmocka_unit_test(beyond_the_limit_the_oldest_is_closed),
		cmocka_unit_test(one_source_gets_half_of_the_share),
		cmocka_unit_test(all_sources_get_a_share),
		cmocka_unit_test(each_bad_frame_gets_its_terminate),
		cmocka_unit_test(more_reads_than_agreed_are_refused),
		cmocka_unit_test(terminate_of_the_peer_ends_the_connection),
		cmocka_unit_test(disorderly_ends_break_the_connection),
		cmocka_unit_test(sends_without_receives_stop_reading),
		cmocka_unit_test(end_of_a_stalled_peer_is_noticed),
		cmocka_unit_test(closed_half_open_connections_are_one_line),
		cmocka_unit_test(errors_have_the_error_class),
	};

	alarm(300);
	dapl_settings_read();
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests_name("soft_wire", tests, NULL, NULL);
}
