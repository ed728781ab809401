/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream.h - a connection of the software device in memory: a real device with a real
 * QP and a socket pair instead of TCP, after the MPA exchange. It changes in the calls below only, so
 * the same bytes, cut in the same places, have the same effect each time. For unit tests and fuzz
 * targets, which link device_harness.c or have the upcalls themselves. */
#ifndef TEST_UNIT_SOFT_STREAM_H
#define TEST_UNIT_SOFT_STREAM_H
#include "dapl/core/device.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/window.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/wire/wire.h"

/* Two protection domains' worth of memory, offsets from 0 (IBV_ACCESS_ZERO_BASED). */
enum { STREAM_REGION = 4096, STREAM_GUARD = 64, STREAM_LOCAL = 32768,
	STREAM_READS = 4, STREAM_WRS = 64, STREAM_SINK = 0x600 };

struct stream_memory {
	char before[STREAM_GUARD];
	char open[STREAM_REGION];	/* peers may do everything with it */
	char between[STREAM_GUARD];
	char constant[STREAM_REGION];	/* peers may read it */
	char after[STREAM_GUARD];
	char local[STREAM_LOCAL];	/* of receives and requests */
};

/* Opened once a process. */
struct stream_device {
	struct dapl_device *dev;
	struct ibv_pd *pd, *other_pd;
	struct ibv_cq *cq;
	struct stream_memory *memory;
	struct ibv_mr *open, *constant, *local, *foreign;	/* foreign: of other_pd */
};
extern struct stream_device stream_device;
void stream_device_open(void);
void stream_device_close(void);

struct stream {
	struct soft_qp *qp;
	struct soft_srq *srq;
	struct soft_mw *window;		/* type 2 */
	struct dapl_conn *conn;
	int peer;			/* the socket's other end */
	bool alive;			/* the device still receives */
	unsigned posted;		/* requests and receives of the QP, to be completed */
	uint8_t *out;			/* what the device sent, from the start */
	size_t out_length, out_size;
};

struct stream_options {
	bool peer_is_dapl, crc, srq;
	bool narrow;			/* the socket takes little at a time */
};

void stream_open(struct stream *s, const struct stream_options *options);
/* The peer closes, and all objects are destroyed. The service thread frees the connection soon after:
 * a caller that wants its upcalls calls dapl_service_flush() before. */
void stream_close(struct stream *s);
/* The device gets these bytes, at most `cut` at a time (0: all at once). */
void stream_put(struct stream *s, const void *bytes, size_t length, size_t cut);
/* The peer's FIN. */
void stream_end(struct stream *s);
/* Frames ULPDUs as the connection has them: pad, and CRC or zeros. Returns the length. */
size_t stream_frame(const struct stream *s, uint8_t *fpdu, const uint8_t *ulpdu, uint16_t length);
/* The next FPDU the device sent, from *at on: its ULPDU. NULL: no whole one, or, with
 * *length -1, a wrong one. */
const uint8_t *stream_next(const struct stream *s, size_t *at, int *length);

/* Offsets into memory->local. False: the queue is full. */
bool stream_receive(struct stream *s, uint64_t id, uint32_t offset, uint32_t length);
bool stream_request(struct stream *s, uint64_t id, enum ibv_wr_opcode op, uint32_t offset,
		    uint32_t length, uint32_t rkey, uint64_t remote);
bool stream_bind(struct stream *s, uint64_t id, uint32_t offset, uint32_t length);
/* Completions, up to max; keeps count of what is outstanding. */
unsigned stream_poll(struct stream *s, struct ibv_wc *wc, unsigned max);

/* From now on the CQ notifies of a completion that is solicited, once; whether it has. */
static inline void arm_solicited(void) { ((struct soft_cq *)stream_device.cq)->armed = SOFT_ARMED_SOLICITED; }
static inline bool was_solicited(void) { return !((struct soft_cq *)stream_device.cq)->armed; }

#endif
