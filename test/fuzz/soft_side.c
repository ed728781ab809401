/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft_side.c - our side of a connection whose peer is a fuzzer (soft_side.h). */
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/cm/cm.h"
#include "dapl/soft/cm/conn.h"
#include "test/fuzz/soft_side.h"
#include <stdio.h>
#include <stdlib.h>

enum { SIDE_LONG_SEND = 240 };

void side_demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

/* --- upcalls ----------------------------------------------------------------------- */

static void expect_no_handshake(const struct upcall *up)
{
	side_demand(up->kind != REQUEST && up->kind != ESTABLISHED && up->kind != FAILED,
		    "an upcall of a handshake, which there was not");
}

void side_open(void)
{
	upcall_observer = expect_no_handshake;
	stream_device_open();
}

/* --- names and acts ---------------------------------------------------------------- */

void side_name(const struct stream *s, uint8_t *stag)
{
	const struct stream_device *d = &stream_device;
	const uint32_t names[] = {
		d->open->rkey, d->constant->rkey, d->local->rkey, d->foreign->rkey,
		s->window->mw.rkey,
	};
	uint32_t n = wire_get32(stag) - 0x5701;

	if (n < sizeof names / sizeof names[0])
		wire_put32(stag, names[n]);
}

void side_name_body(const struct stream *s, uint8_t op, uint8_t *body, uint32_t length)
{
	if (op == WIRE_READ_REQUEST && length >= 20)
		side_name(s, body + 16);
	if (op == WIRE_ATOMIC_REQUEST && length >= 12)
		side_name(s, body + 8);
}

void side_act(struct stream *s, const uint8_t *p, uint32_t length)
{
	uint32_t size = length > 1 ? p[1] * 16 : 100, key = stream_device.open->rkey;

	if (length && p[0] >= SIDE_LONG_SEND) {
		stream_request(s, 10, IBV_WR_SEND, 0, STREAM_LOCAL, 0, 0);	/* a rendezvous in shared memory */
		return;
	}
	switch (length ? p[0] % 12 : 0) {
	case 0:
		stream_receive(s, 1, 0, size);
		break;
	case 1:
		stream_request(s, 2, IBV_WR_RDMA_READ, 8192, size, key, 0);
		break;
	case 2:
		stream_request(s, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, 8192, 8, key, 0);
		break;
	case 3:
		stream_request(s, 4, IBV_WR_SEND, 16384, size, 0, 0);
		break;
	case 4:
		stream_request(s, 5, IBV_WR_RDMA_WRITE, 16384, size, key, 0);
		break;
	case 5:
		stream_request(s, 6, IBV_WR_RDMA_WRITE_WITH_IMM, 16384, size, key, 0);
		break;
	case 6:
		stream_bind(s, 7, 0, STREAM_REGION);
		break;
	case 7:
		stream_request(s, 8, IBV_WR_SEND_WITH_IMM, 16384, size, 0, 0);
		break;
	case 8:		/* the source is not registered for it */
		stream_request(s, 9, IBV_WR_RDMA_READ, 8192, STREAM_LOCAL, key, 0);
		break;
	case 9:
		soft_cm_disconnect(s->conn);
		break;
	case 10:
		soft_qp_error(&s->qp->qp);
		break;
	case 11:
		soft_progress_lock(stream_device.dev);
		cm_detach(s->qp);
		soft_progress_unlock(stream_device.dev);
		break;
	}
}

/* --- what must hold ---------------------------------------------------------------- */

static bool untouched(const char *p, size_t n)
{
	static char pristine[STREAM_REGION];

	if (!pristine[0])
		memset(pristine, 0xa5, sizeof pristine);
	return !memcmp(p, pristine, n);
}

static void check_memory(void)
{
	const struct stream_memory *m = stream_device.memory;

	side_demand(untouched(m->before, STREAM_GUARD) && untouched(m->between, STREAM_GUARD) &&
	       untouched(m->after, STREAM_GUARD), "the peer wrote beside a region");
	side_demand(untouched(m->constant, STREAM_REGION), "the peer wrote what it may only read");
}

static void check_completions(struct stream *s)
{
	struct ibv_wc wc[16];
	unsigned before;

	while (s->posted) {
		before = s->posted;
		side_demand(stream_poll(s, wc, 16) && s->posted < before,
		       "something posted did not complete");
	}
	side_demand(s->srq || !stream_poll(s, wc, 16), "something completed twice");
}

void side_check(struct stream *s)
{
	struct ibv_wc wc[16];

	check_memory();
	if (s->srq)
		while (stream_poll(s, wc, 16))
			;
	else
		check_completions(s);
}
