/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ud.c - the format of datagrams, which ones are sent and taken, and what their receives hold. The UDP socket is
 * replaced here. */
#include <limits.h>
#include "common/address.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "test/unit/soft/stream_test.h"
#include "test/unit/unit.h"

enum {
	HEADER = 24, MAGIC = 0x44504c01, IMMEDIATE = 1, SOLICITED = 2,	/* of the wire format */
	KEY = 0x777, FROM = 0x123456, AT = 8192, WRS = 4, SGES = 3,
};

static struct soft_qp *qp;
static struct ibv_ah *ah;
static struct sockaddr_in peer;

static uint8_t sent[8192];
static size_t sent_length;
static struct sockaddr_storage sent_to;
static unsigned calls;
static int fails[3];			/* errno of the next calls, up to a 0 */
static uint8_t datagram[HEADER + SOFT_UD_MTU + 8];	/* that the socket has */
static size_t datagram_length;
static unsigned datagrams;

static int real_socket;			/* 0: none; else what is sent goes there, too */

EXTEND(sendmsg)
REPLACE(recvfrom)
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
	if (real_socket)
		assert_true(__real_sendmsg(real_socket, msg, flags) > 0);
	assert_int_equal(fd, stream_device.dev->datagrams.fd);
	assert_int_equal(flags, MSG_DONTWAIT | MSG_NOSIGNAL);
	calls++;
	errno = fails[0];
	memmove(fails, fails + 1, sizeof fails - sizeof *fails);
	if (errno)
		return -1;
	memcpy(&sent_to, msg->msg_name, msg->msg_namelen);
	sent_length = 0;
	for (size_t i = 0; i < msg->msg_iovlen; sent_length += msg->msg_iov[i++].iov_len)
		memcpy(sent + sent_length, msg->msg_iov[i].iov_base, msg->msg_iov[i].iov_len);
	return (ssize_t)sent_length;
}

ssize_t __wrap_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from, socklen_t *length)
{
	assert_int_equal(fd, stream_device.dev->datagrams.fd);
	assert_int_equal(flags, MSG_DONTWAIT);
	assert_true(size >= datagram_length);
	errno = EAGAIN;
	if (!datagrams)
		return -1;
	datagrams--;
	memcpy(to, datagram, datagram_length);
	memcpy(from, &peer, sizeof peer);
	*length = sizeof peer;
	return (ssize_t)datagram_length;
}

/* --- a datagram queue pair -------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { WRS, WRS, SGES, SGES, 64 } };
	struct ibv_qp *made;

	if (soft_qp_create(stream_device.dev, stream_device.pd, &attr, &made))
		return -1;
	qp = (struct soft_qp *)made;
	qp->qkey = KEY;
	peer = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(999),
				     .sin_addr.s_addr = htonl(0x0a010203) };
	for (int i = 0; i < STREAM_LOCAL; i++)
		stream_device.memory->local[i] = (char)(i * 167 >> 3);
	memset(fails, 0, sizeof fails);
	sent_length = calls = datagrams = 0;
	return soft_ud_ah_create(stream_device.pd, (struct sockaddr *)&peer, 4444, &ah);
}

static int tear_down(void **state)
{
	soft_ud_ah_destroy(ah);
	return soft_qp_destroy(&qp->qp);
}

static struct ibv_send_wr wr_of(struct ibv_sge *sge, int sges)
{
	struct ibv_send_wr wr = { .sg_list = sge, .num_sge = sges, .opcode = IBV_WR_SEND };

	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0x654321;
	wr.wr.ud.remote_qkey = 0x888;
	return wr;
}

/* Returns an errno value. With 0, *status is that of the completion. */
static int send_it(const struct ibv_send_wr *wr, enum ibv_wc_status *status)
{
	int err;

	dapl_mutex_lock(&qp->lock);
	err = soft_ud_send(qp, wr, status);
	dapl_mutex_unlock(&qp->lock);
	return err;
}

static void receive(uint64_t id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = stream_test_sge(offset, length);
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(soft_qp_post_recv(&qp->qp, &wr, &bad), 0);
}

/* The socket has this datagram `n` times; the device looks once. */
static void come(uint32_t to_qp, uint32_t key, uint32_t flags, const char *payload, unsigned n)
{
	wire_put32(datagram, MAGIC);
	wire_put32(datagram + 4, to_qp);
	wire_put32(datagram + 8, FROM);
	wire_put32(datagram + 12, key);
	wire_put32(datagram + 16, flags);
	wire_put32(datagram + 20, 0x01020304);
	memcpy(datagram + HEADER, payload, strlen(payload));
	datagram_length = HEADER + strlen(payload);
	datagrams = n;
	soft_progress_lock(stream_device.dev);
	soft_ud_receive(stream_device.dev);
	soft_progress_unlock(stream_device.dev);
}

static struct ibv_wc completion(void)
{
	struct ibv_wc wc;

	assert_int_equal(soft_cq_take((struct soft_cq *)stream_device.cq, 1, &wc), 1);
	return wc;
}

static void expect_nothing(void)
{
	struct ibv_wc wc;

	assert_int_equal(soft_cq_take((struct soft_cq *)stream_device.cq, 1, &wc), 0);
}

/* With peers on this host only, polls would look at rings for long before they look at a socket. */
UNIT_CASE(polls_look_for_datagrams_at_once)
{
	struct dapl_device *dev = stream_device.dev;
	unsigned streams = dev->progress.streams;

	soft_ud_close(dev);
	dev->progress.turns = UINT_MAX;
	assert_int_equal(soft_ud_open(dev), 0);
	assert_int_equal(dev->progress.turns, 0);
	assert_int_equal(dev->progress.streams, streams + 1);
	dev->progress.streams = streams;
}

/* An address of the documentation (RFC 5737) is no host's. */
UNIT_CASE(device_without_its_address_gets_no_socket)
{
	struct dapl_device *dev = stream_device.dev;
	struct sockaddr_storage own = dev->address;
	struct sockaddr_in lost = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201) };
	unsigned streams = dev->progress.streams;

	soft_ud_close(dev);
	memcpy(&dev->address, &lost, sizeof lost);
	assert_int_equal(soft_ud_open(dev), EADDRNOTAVAIL);
	assert_int_equal(dev->datagrams.fd, -1);
	assert_int_equal(dev->progress.streams, streams);
	dev->address = own;
	assert_int_equal(soft_ud_open(dev), 0);
	dev->progress.streams = streams;
}

/* --- sending ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(address_handle_keeps_its_domain)
{
	struct soft_pd *pd = (struct soft_pd *)stream_device.pd;
	unsigned refs = pd->refs;
	struct ibv_ah *made;

	assert_int_equal(soft_ud_ah_create(stream_device.pd, (struct sockaddr *)&peer, 5555, &made), 0);
	assert_int_equal(pd->refs, refs + 1);
	assert_ptr_equal(made->pd, stream_device.pd);
	assert_int_equal(address_port((struct sockaddr *)&((struct soft_ah *)made)->address), 5555);
	assert_int_equal(soft_ud_ah_destroy(made), 0);
	assert_int_equal(pd->refs, refs);
}

/* Returns the traffic class that the IP header of a datagram to a real socket has. -1: none is set. */
static int class_that_comes(bool ip6, int traffic_class)
{
	struct sockaddr_in6 loopback6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in loopback = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct ibv_send_wr wr = wr_of(NULL, 0);
	struct sockaddr_storage address;
	socklen_t length = sizeof address;
	char byte[HEADER], control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { byte, sizeof byte };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			      .msg_controllen = sizeof control };
	enum ibv_wc_status status;
	int on = 1, fd, got = 0;

	address_copy(&address, ip6 ? (struct sockaddr *)&loopback6 : (struct sockaddr *)&loopback);
	fd = socket(address.ss_family, SOCK_DGRAM, 0);
	if (bind(fd, (struct sockaddr *)&address, address_length((struct sockaddr *)&address)) && ip6) {
		close(fd);
		skip();			/* this host has no IPv6 */
	}
	assert_int_equal(setsockopt(fd, ip6 ? IPPROTO_IPV6 : IPPROTO_IP, ip6 ? IPV6_RECVTCLASS : IP_RECVTOS, &on,
				    sizeof on), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	assert_int_equal(soft_ud_ah_create(stream_device.pd, (struct sockaddr *)&address,
					   address_port((struct sockaddr *)&address), &wr.wr.ud.ah), 0);
	if (traffic_class >= 0)
		soft_ud_ah_set_class(wr.wr.ud.ah, traffic_class);
	real_socket = socket(address.ss_family, SOCK_DGRAM, 0);
	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(recvmsg(fd, &msg, 0), sizeof byte);
	assert_non_null(CMSG_FIRSTHDR(&msg));
	if (ip6)
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof got);
	else
		got = *CMSG_DATA(CMSG_FIRSTHDR(&msg));	/* IP_TOS comes as a byte */
	close(fd);
	close(real_socket);
	real_socket = 0;
	soft_ud_ah_destroy(wr.wr.ud.ah);
	return got;
}

UNIT_CASE(datagram_has_the_traffic_class_of_its_address_handle)
{
	assert_int_equal(class_that_comes(false, 0xb8), 0xb8);
	assert_int_equal(class_that_comes(false, -1), 0);
}

UNIT_CASE(datagram_over_ipv6_has_its_traffic_class)
{
	assert_int_equal(class_that_comes(true, 0xb8), 0xb8);
	assert_int_equal(class_that_comes(true, -1), 0);
}

UNIT_CASE(datagram_has_a_header_and_its_pieces)
{
	struct ibv_sge sge[] = { stream_test_sge(0, 10), { 0, 0, 12345 }, stream_test_sge(100, 20) };
	struct ibv_send_wr wr = wr_of(sge, 3);
	enum ibv_wc_status status;

	for (int i = 0; i < 2; i++) {
		wr.opcode = i ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND;
		wr.send_flags = i ? IBV_SEND_SOLICITED : 0;
		wr.imm_data = htonl(0x01020304);
		assert_int_equal(send_it(&wr, &status), 0);
		assert_int_equal(status, IBV_WC_SUCCESS);
		assert_int_equal(sent_length, HEADER + 30);
		assert_int_equal(wire_get32(sent), MAGIC);
		assert_int_equal(wire_get32(sent + 4), 0x654321);
		assert_int_equal(wire_get32(sent + 8), qp->qp.qp_num);
		assert_int_equal(wire_get32(sent + 12), 0x888);
		assert_int_equal(wire_get32(sent + 16), i ? IMMEDIATE | SOLICITED : 0);
		assert_int_equal(wire_get32(sent + 20), i ? 0x01020304 : 0);
		assert_memory_equal(sent + HEADER, stream_device.memory->local, 10);
		assert_memory_equal(sent + HEADER + 10, stream_device.memory->local + 100, 20);
		assert_int_equal(address_port((struct sockaddr *)&sent_to), 4444);
		assert_true(address_same_host((struct sockaddr *)&sent_to, (struct sockaddr *)&peer));
	}
}

UNIT_CASE(malformed_request_is_refused)
{
	struct ibv_sge sge[SGES + 1] = { stream_test_sge(0, 10) };
	struct ibv_send_wr wr = wr_of(sge, 1);
	enum ibv_wc_status status;

	wr.opcode = IBV_WR_RDMA_WRITE;
	assert_int_equal(send_it(&wr, &status), EOPNOTSUPP);
	wr = wr_of(sge, SGES + 1);
	assert_int_equal(send_it(&wr, &status), EINVAL);
	wr = wr_of(sge, -1);
	assert_int_equal(send_it(&wr, &status), EINVAL);
	wr = wr_of(sge, 1);
	wr.wr.ud.ah = NULL;
	assert_int_equal(send_it(&wr, &status), EINVAL);
	assert_int_equal(calls, 0);
}

UNIT_CASE(failed_request_is_not_sent)
{
	struct ibv_sge sge[2] = { stream_test_sge(0, SOFT_UD_MTU), stream_test_sge(0, 1) };
	struct ibv_send_wr wr = wr_of(sge, 2);
	enum ibv_wc_status status;

	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(status, IBV_WC_LOC_LEN_ERR);
	sge[1].lkey = 12345;
	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(calls, 0);
	wr.num_sge = 1;
	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(status, IBV_WC_SUCCESS);
	assert_int_equal(sent_length, HEADER + SOFT_UD_MTU);
}

UNIT_CASE(errors_of_the_socket_lose_a_datagram_at_most)
{
	struct ibv_sge sge = stream_test_sge(0, 10);
	struct ibv_send_wr wr = wr_of(&sge, 1);
	enum ibv_wc_status status;

	fails[0] = EINTR;
	fails[1] = ECONNREFUSED;	/* of a datagram before it */
	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(calls, 3);
	assert_int_equal(sent_length, HEADER + 10);
	fails[0] = EAGAIN;
	assert_int_equal(send_it(&wr, &status), 0);
	assert_int_equal(status, IBV_WC_SUCCESS);
	assert_int_equal(calls, 4);
}

/* --- receiving -------------------------------------------------------------------------------------------------- */

UNIT_CASE(malformed_datagram_is_not_parsed)
{
	uint8_t p[HEADER + SOFT_UD_MTU + 1] = { 0 };
	struct soft_datagram is;

	wire_put32(p, MAGIC);
	for (uint32_t i = 1; i < 6; i++)
		wire_put32(p + 4 * i, i);
	assert_false(soft_ud_parse(&is, p, HEADER - 1));
	assert_false(soft_ud_parse(&is, p, HEADER + SOFT_UD_MTU + 1));
	assert_true(soft_ud_parse(&is, p, HEADER));
	assert_int_equal(is.length, 0);
	assert_true(soft_ud_parse(&is, p, HEADER + SOFT_UD_MTU));
	assert_int_equal(is.length, SOFT_UD_MTU);
	assert_ptr_equal(is.data, p + HEADER);
	assert_int_equal(is.to_qp, 1);
	assert_int_equal(is.from_qp, 2);
	assert_int_equal(is.qkey, 3);
	assert_int_equal(is.flags, 4);
	assert_int_equal(is.immediate, 5);
	p[3] ^= 1;
	assert_false(soft_ud_parse(&is, p, HEADER));
}

UNIT_CASE(receive_holds_a_route_header_and_the_payload)
{
	char *at = stream_device.memory->local + AT;
	struct ibv_wc wc;

	memset(at, 'x', 100);
	receive(5, AT, 100);
	arm_solicited();
	come(qp->qp.qp_num, KEY, 0, "payload", 1);
	wc = completion();
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.byte_len, SOFT_GRH + 7);
	assert_int_equal(wc.src_qp, FROM);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
	assert_false(was_solicited());
	assert_memory_equal(at + SOFT_GRH, "payloadx", 8);
}

UNIT_CASE(flags_of_a_datagram_reach_the_completion)
{
	struct ibv_wc wc;

	receive(5, AT, 100);
	arm_solicited();
	come(qp->qp.qp_num, KEY, IMMEDIATE | SOLICITED, "", 1);
	wc = completion();
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htonl(0x01020304));
	assert_true(was_solicited());
}

UNIT_CASE(route_header_names_both_hosts)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = { { { 0xfd, 1, 2, 3, [15] = 9 } } } };
	struct sockaddr_storage from = { 0 }, to = { 0 };
	struct soft_datagram is = { .data = (const uint8_t *)"abc", .length = 3 };
	struct ibv_grh grh;

	memcpy(&from, &peer, sizeof peer);
	memcpy(&to, &six, sizeof six);
	receive(5, AT, 100);
	soft_ud_deliver(qp, &is, &from, &to);
	memcpy(&grh, stream_device.memory->local + AT, sizeof grh);
	assert_int_equal(ntohl(grh.version_tclass_flow) >> 28, 6);
	assert_int_equal(ntohs(grh.paylen), 3);
	assert_memory_equal(grh.sgid.raw, mapped, 12);
	assert_memory_equal(grh.sgid.raw + 12, "\x0a\x01\x02\x03", 4);
	assert_memory_equal(grh.dgid.raw, &six.sin6_addr, 16);
}

UNIT_CASE(datagram_for_another_is_dropped)
{
	receive(5, AT, 100);
	come(qp->qp.qp_num + 1, KEY, 0, "payload", 1);
	come(qp->qp.qp_num, KEY + 1, 0, "payload", 1);
	qp->qp.qp_type = IBV_QPT_RC;
	come(qp->qp.qp_num, KEY, 0, "payload", 1);
	qp->qp.qp_type = IBV_QPT_UD;
	soft_qp_set_state(qp, IBV_QPS_INIT);
	come(qp->qp.qp_num, KEY, 0, "payload", 1);
	soft_qp_set_state(qp, IBV_QPS_RTS);
	expect_nothing();
	come(qp->qp.qp_num, KEY, 0, "payload", 1);
	assert_int_equal(completion().wr_id, 5);
}

UNIT_CASE(datagram_without_a_receive_is_lost)
{
	come(qp->qp.qp_num, KEY, 0, "payload", 2);
	receive(5, AT, 100);
	expect_nothing();
}

UNIT_CASE(short_receive_fails)
{
	receive(5, AT, SOFT_GRH + 6);
	receive(6, AT, SOFT_GRH + 7);
	come(qp->qp.qp_num, KEY, 0, "payload", 2);
	assert_int_equal(completion().status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(completion().status, IBV_WC_SUCCESS);
}

UNIT_CASE(receive_whose_memory_went_away_fails)
{
	struct ibv_wc wc;

	receive(5, AT, 100);
	soft_rwqe(&qp->rq, 0)->sge->lkey = 12345;
	come(qp->qp.qp_num, KEY, 0, "payload", 1);
	wc = completion();
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	expect_nothing();
}

UNIT_CASE(one_look_takes_a_batch)
{
	come(qp->qp.qp_num, KEY, 0, "payload", UD_BATCH + 3);
	assert_int_equal(datagrams, 3);
}

UNIT_MAIN(stream_test_open_device, stream_test_close_device)
