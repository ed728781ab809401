/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_peer.c - see foreign_peer.h. */
#include <poll.h>
#include "test/unit/soft/foreign_peer.h"
#include "test/unit/unit.h"

const struct dapl_device_ops *const ops = &dapl_device_ops;

/* --- upcalls ----------------------------------------------------------------------- */

struct upcall await(enum upcall_kind kind)
{
	struct upcall up = { 0 };

	if (!upcall_wait(kind, NULL, 10000, &up))
		fail_msg("upcall %d did not come", kind);
	assert_int_equal(upcall_count(kind, NULL), 1);
	return up;
}

/* --- the device's end -------------------------------------------------------------- */

struct device_end we;

void open_device_end(void)
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

void close_device_end(void)
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

void restart_device_end(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 64, 64, 4, 4, 64 }, .qp_type = IBV_QPT_RC };

	ops->release(we.conn);
	await(RELEASED);
	OK(ops->destroy_qp(we.qp));
	attr.send_cq = attr.recv_cq = we.cq;
	OK(ops->create_qp(we.dev, we.pd, &attr, &we.qp));
	upcalls_drop(NULL);
}

struct dapl_conn_params params(const struct sockaddr_in *to)
{
	return (struct dapl_conn_params){ .qp = we.qp, .owner = &we, .reads_in = 4,
		.reads_out = 4, .remote = (const struct sockaddr *)to };
}

void post_recv(uint64_t id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)we.buf + offset, length, we.mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	OK(ibv_post_recv(we.qp, &wr, &bad));
}

void post(uint64_t id, enum ibv_wr_opcode op, uint32_t offset, uint32_t length,
	  uint64_t remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)we.buf + offset, length, we.mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED, .wr.rdma = { remote, rkey } }, *bad;

	OK(ibv_post_send(we.qp, &wr, &bad));
}

struct ibv_wc completion(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc = { 0 };

	for (int i = 0; i < 100000 && !ibv_poll_cq(we.cq, 1, &wc); i++)
		usleep(100);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
	return wc;
}

void in_any_order(uint64_t a, uint64_t b)
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

int peer_socket, cut;
static bool crc_on;

static void sleep_a_little(void) { usleep(200); }

void put(const void *p, size_t n)
{
	const char *at = p;
	size_t part;

	for (; n; at += part, n -= part) {
		part = cut && n > (size_t)cut ? (size_t)cut : n;
		assert_int_equal(send(peer_socket, at, part, MSG_NOSIGNAL), part);
		if (cut)
			sleep_a_little();
	}
}

bool get(void *p, size_t n)
{
	struct pollfd in = { .fd = peer_socket, .events = POLLIN };
	char *at = p;

	while (n) {
		ssize_t k;

		if (poll(&in, 1, 10000) != 1)
			fail_msg("the device sends nothing");
		k = recv(peer_socket, at, n, 0);
		if (k <= 0)
			return false;
		at += k;
		n -= k;
	}
	return true;
}

void put_fpdu(const uint8_t *ulpdu, uint16_t n)
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

void put_segment(struct wire_segment seg, const void *body, uint16_t n)
{
	uint8_t *ulpdu = malloc(n + 32);
	unsigned head = wire_segment_put(ulpdu, &seg);

	if (n)
		memcpy(ulpdu + head, body, n);
	put_fpdu(ulpdu, head + n);
	free(ulpdu);
}

bool get_fpdu(uint8_t *ulpdu, uint16_t *n)
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

void reset_foreign_peer(bool crc)
{
	crc_on = crc;
	cut = 0;
}

struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

void dial(void)
{
	struct sockaddr_in to = loopback(we.port);

	peer_socket = socket(AF_INET, SOCK_STREAM, 0);
	OK(connect(peer_socket, (struct sockaddr *)&to, sizeof to));
}

int listen_for_device(struct sockaddr_in *at)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof *at;

	*at = loopback(0);
	OK(bind(listener, (struct sockaddr *)at, sizeof *at));
	OK(listen(listener, 5));
	OK(getsockname(listener, (struct sockaddr *)at, &length));
	return listener;
}

void put_mpa(bool reply, uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced,
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

bool get_mpa(bool reply, struct wire_mpa *mpa, uint8_t *pdata, size_t *n)
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

const struct wire_mpa four_reads = { .ird = 4, .ord = 4 };

struct wire_mpa passive_up(uint8_t flags, uint8_t revision, const struct wire_mpa *enhanced)
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

void foreign_peer_up(bool crc)
{
	struct wire_mpa mpa;

	reset_foreign_peer(crc);
	open_device_end();
	mpa = passive_up(WIRE_MPA_S | (crc ? WIRE_MPA_CRC : 0), 2, &four_reads);
	assert_int_equal(!!(mpa.flags & WIRE_MPA_CRC), crc);
	assert_int_equal(mpa.ird, 4);
	assert_int_equal(mpa.ord, 4);
}

void foreign_peer_down(void)
{
	close(peer_socket);
	close_device_end();
}

int set_up_device_alone(void **state)
{
	reset_foreign_peer(false);
	open_device_end();
	peer_socket = -1;
	return 0;
}

int tear_down_foreign_peer(void **state)
{
	foreign_peer_down();
	return 0;
}

struct wire_segment send_seg(uint32_t msn, uint32_t mo, bool last)
{
	return (struct wire_segment){ .op = WIRE_SEND, .last = last, .qn = 0, .msn = msn, .mo = mo };
}

void talk(void)
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
