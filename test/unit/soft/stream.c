/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.c - a connection of the software device in memory (stream.h). */
#include "test/unit/soft/stream.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "dapl/core/base/settings.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/rdmap/stream.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/receive/fpdu_rx.h"
#include "dapl/soft/rdmap/transmit.h"
#include "dapl/soft/cm/cm.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/soft/cm/conn.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct stream_device stream_device;

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "soft_stream: %s\n", what);
	abort();
}

#define OK(call) demand(!(call), #call)

void stream_device_open(void)
{
	const struct dapl_device_ops *ops = &dapl_device_ops;
	int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		  IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED;
	struct stream_device *d = &stream_device;

	dapl_settings_read();
	d->memory = aligned_alloc(64, (sizeof *d->memory + 63) & ~(size_t)63);
	demand(d->memory, "memory");
	memset(d->memory, 0xa5, sizeof *d->memory);
	OK(ops->open("127.0.0.1 0", d, &d->dev));
	OK(ops->alloc_pd(d->dev, &d->pd));
	OK(ops->alloc_pd(d->dev, &d->other_pd));
	OK(ops->create_cq(d->dev, 1000, NULL, NULL, &d->cq));
	OK(ops->reg_mr(d->pd, d->memory->open, STREAM_REGION, all, NULL, &d->open));
	OK(ops->reg_mr(d->other_pd, d->memory->open, STREAM_REGION, all, NULL, &d->foreign));
	OK(ops->reg_mr(d->pd, d->memory->constant, STREAM_REGION,
		       IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED, NULL, &d->constant));
	OK(ops->reg_mr(d->pd, d->memory->local, STREAM_LOCAL, IBV_ACCESS_LOCAL_WRITE, NULL,
		       &d->local));
}

void stream_device_close(void)
{
	const struct dapl_device_ops *ops = &dapl_device_ops;
	struct stream_device *d = &stream_device;

	OK(ops->dereg_mr(d->open));
	OK(ops->dereg_mr(d->foreign));
	OK(ops->dereg_mr(d->constant));
	OK(ops->dereg_mr(d->local));
	OK(ops->destroy_cq(d->cq));
	OK(ops->dealloc_pd(d->pd));
	OK(ops->dealloc_pd(d->other_pd));
	ops->close(d->dev);
	free(d->memory);
	memset(d, 0, sizeof *d);
}

/* --- open and close ----------------------------------------------------------------- */

static void make_queues(struct stream *s, bool srq)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC, .send_cq = stream_device.cq,
		.recv_cq = stream_device.cq, .cap = { STREAM_WRS, STREAM_WRS, 4, 4, 64 } };
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = STREAM_WRS, .max_sge = 4 } };
	struct ibv_srq *ibsrq;
	struct ibv_mw *mw;
	struct ibv_qp *qp;

	if (srq) {
		OK(soft_srq_create(stream_device.pd, &shared, &ibsrq));
		s->srq = (struct soft_srq *)ibsrq;
		attr.srq = ibsrq;
	}
	OK(soft_qp_create(stream_device.dev, stream_device.pd, &attr, &qp));
	s->qp = (struct soft_qp *)qp;
	OK(soft_mw_alloc(stream_device.pd, IBV_MW_TYPE_2, &mw));
	s->window = container_of(mw, struct soft_mw, mw);
}

/* Leaves the connection as soft/cm does when both streams carry FPDUs. */
static void make_connection(struct stream *s, const struct stream_options *options, int fd)
{
	struct dapl_conn *conn = cm_conn_new(stream_device.dev);

	demand(conn, "memory");
	conn->fd = fd;
	conn->state = SOFT_OPEN;
	conn->owner = s;
	conn->stream.peer_is_dapl = options->peer_is_dapl;
	conn->stream.crc = options->crc;
	conn->stream.reads_in = conn->stream.reads_out = STREAM_READS;
	conn->cm->rev = 2;
	conn->stream.mulpdu = 1024;
	conn->stream.sink_key = STREAM_SINK;
	conn->stream.tx.cursor.msn_send = conn->stream.tx.cursor.msn_read = 1;
	conn->stream.tx.cursor.msn_atomic = conn->stream.tx.cursor.msn_dapl = 1;
	conn->stream.rx.msn_send = conn->stream.rx.msn_read = conn->stream.rx.msn_atomic = conn->stream.rx.msn_dapl = 1;
	conn->stream.rx.part_need = 4;
	conn->stream.tx.open = true;
	soft_progress_lock(stream_device.dev);
	conn->qp = s->qp;
	s->qp->conn = conn;
	s->qp->state = s->qp->qp.state = IBV_QPS_RTS;
	LIST_INSERT_HEAD(&stream_device.dev->cm.conns, conn, link);
	soft_progress_unlock(stream_device.dev);
	s->conn = conn;
}

void stream_open(struct stream *s, const struct stream_options *options)
{
	int fd[2], least = 1;

	memset(s, 0, sizeof *s);
	OK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd));
	if (options->narrow)
		OK(setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &least, sizeof least));
	make_queues(s, options->srq);
	make_connection(s, options, fd[0]);
	s->peer = fd[1];
	s->alive = true;
}

static void drain(struct stream *s)
{
	ssize_t n;

	do {
		if (s->out_size - s->out_length < 4096) {
			s->out_size = 2 * s->out_size + 8192;
			s->out = realloc(s->out, s->out_size);
			demand(s->out, "memory");
		}
		n = recv(s->peer, s->out + s->out_length, s->out_size - s->out_length,
			 MSG_DONTWAIT);
		if (n > 0)
			s->out_length += n;
	} while (n > 0);
}

/* Does what progress does for a socket that is readable, or writable again. */
static void serve(struct stream *s)
{
	bool blocked, came;

	do {
		soft_progress_lock(stream_device.dev);
		dapl_mutex_lock(&s->qp->lock);
		s->conn->stream.tx.blocked = false;
		if (s->alive)
			s->alive = soft_tcp_receive(s->conn, &came);
		if (s->alive) {
			s->conn->stream.tx.ack_now = true;
			soft_conn_send(s->conn);
		}
		blocked = s->alive && s->conn->stream.tx.blocked;
		dapl_mutex_unlock(&s->qp->lock);
		soft_progress_unlock(stream_device.dev);
		drain(s);
	} while (blocked);
}

void stream_put(struct stream *s, const void *bytes, size_t length, size_t cut)
{
	const char *p = bytes;
	size_t part, most = cut ? cut : 65536;
	ssize_t n;

	for (; length && s->alive; p += n, length -= n) {
		part = length < most ? length : most;
		n = send(s->peer, p, part, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return;		/* the device does not read: backpressure */
		serve(s);
	}
	if (s->alive)
		serve(s);
}

void stream_end(struct stream *s)
{
	shutdown(s->peer, SHUT_WR);
	if (s->alive && !s->conn->stream.rx.paused)
		serve(s);
	if (!s->alive)
		return;
	soft_progress_lock(stream_device.dev);	/* what a progress thread does at a hang-up */
	dapl_mutex_lock(&s->qp->lock);
	soft_stream_ended(s->qp, s->conn, false);
	dapl_mutex_unlock(&s->qp->lock);
	soft_progress_unlock(stream_device.dev);
	s->alive = false;
}

void stream_close(struct stream *s)
{
	if (s->alive)
		stream_end(s);
	close(s->peer);
	soft_cm_release(s->conn);
	OK(soft_qp_destroy(&s->qp->qp));
	if (s->srq)
		OK(soft_srq_destroy(&s->srq->srq));
	OK(soft_mw_dealloc(&s->window->mw));
	free(s->out);
}

/* --- frames ------------------------------------------------------------------------ */

size_t stream_frame(const struct stream *s, uint8_t *fpdu, const uint8_t *ulpdu, uint16_t length)
{
	size_t body = WIRE_FPDU_LENGTH + length, pad = -body & 3;

	wire_put16(fpdu, length);
	memcpy(fpdu + WIRE_FPDU_LENGTH, ulpdu, length);
	memset(fpdu + body, 0, pad + WIRE_CRC);
	body += pad;
	if (s->conn->stream.crc)
		wire_crc_put(fpdu + body, wire_crc(WIRE_CRC_START, fpdu, body));
	return body + WIRE_CRC;
}

const uint8_t *stream_next(const struct stream *s, size_t *at, int *length)
{
	const uint8_t *p = s->out + *at;
	size_t left = s->out_length - *at, body;
	uint8_t crc[WIRE_CRC] = { 0 };

	*length = 0;
	if (left < WIRE_FPDU_LENGTH)
		return NULL;
	body = (WIRE_FPDU_LENGTH + wire_get16(p) + 3) & ~(size_t)3;
	if (left < body + WIRE_CRC)
		return NULL;
	if (s->conn->stream.crc)
		wire_crc_put(crc, wire_crc(WIRE_CRC_START, p, body));
	*length = memcmp(crc, p + body, WIRE_CRC) ? -1 : wire_get16(p);
	*at += body + WIRE_CRC;
	return *length < 0 ? NULL : p + WIRE_FPDU_LENGTH;
}

/* --- requests ---------------------------------------------------------------------- */

bool stream_receive(struct stream *s, uint64_t id, uint32_t offset, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)stream_device.memory->local + offset, length,
		stream_device.local->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;

	if (s->srq ? soft_srq_post(&s->srq->srq, &wr, &bad)
		   : soft_qp_post_recv(&s->qp->qp, &wr, &bad))
		return false;
	s->posted += !s->srq;
	return true;
}

static bool post(struct stream *s, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags |= IBV_SEND_SIGNALED;
	if (soft_qp_post_send(&s->qp->qp, wr, &bad))
		return false;
	s->posted++;
	drain(s);
	return true;
}

bool stream_request(struct stream *s, uint64_t id, enum ibv_wr_opcode op, uint32_t offset,
		    uint32_t length, uint32_t rkey, uint64_t remote)
{
	struct ibv_sge sge = { (uintptr_t)stream_device.memory->local + offset, length,
		stream_device.local->lkey };
	struct ibv_send_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1, .opcode = op };

	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD || op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = rkey;
	}
	return post(s, &wr);
}

bool stream_bind(struct stream *s, uint64_t id, uint32_t offset, uint32_t length)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_BIND_MW };

	wr.bind_mw.mw = &s->window->mw;
	wr.bind_mw.rkey = ibv_inc_rkey(s->window->mw.rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info){
		.mr = stream_device.open, .addr = offset, .length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_ZERO_BASED,
	};
	return post(s, &wr);
}

unsigned stream_poll(struct stream *s, struct ibv_wc *wc, unsigned max)
{
	int n = soft_cq_poll(stream_device.cq, max, wc);

	demand(n >= 0, "poll");
	for (int i = 0; i < n; i++)
		s->posted -= !s->srq || !(wc[i].opcode & IBV_WC_RECV);
	return n;
}
