/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - the formats of iWARP: MPA, DDP and RDMAP headers, CRC32C. Encodes and decodes
 * bytes in buffers; does no I/O, keeps no state and uses no object of the device. All
 * fields but the CRC are big-endian.
 *
 * The private part (only between two devices of this library, which recognise each other
 * by the WIRE_DAPL bits of the MPA frames) is described in doc/design/soft-wire.md. */
#ifndef SOFT_WIRE_WIRE_H
#define SOFT_WIRE_WIRE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "common/rdmap.h"

static inline void wire_put16(uint8_t *p, uint16_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static inline void wire_put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	v = __builtin_bswap32(v);
#endif
	memcpy(p, &v, 4);
}

static inline void wire_put64(uint8_t *p, uint64_t v)
{
	wire_put32(p, v >> 32);
	wire_put32(p + 4, v);
}

static inline uint16_t wire_get16(const uint8_t *p)
{
	return p[0] << 8 | p[1];
}

static inline uint32_t wire_get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t wire_get64(const uint8_t *p)
{
	return (uint64_t)wire_get32(p) << 32 | wire_get32(p + 4);
}

/* --- MPA connection frames -------------------------------------------------- */

enum {
	WIRE_MPA_HEADER = 20,
	WIRE_MPA_ENHANCED = 4,
	WIRE_MPA_MAX = WIRE_MPA_HEADER + 512,
	WIRE_PDATA_MAX = 252,		/* bytes of private data that every peer accepts */

	/* flags, byte 16 */
	WIRE_MPA_MARKERS = 0x80, WIRE_MPA_CRC = 0x40, WIRE_MPA_REJECT = 0x20,
	WIRE_MPA_S = 0x10,
	/* reserved bits, used between peers of this implementation */
	WIRE_DAPL_REQUEST = 0x01,	/* Request: the sender is this implementation */
	WIRE_DAPL_REPLY = 0x02,		/* Reply to a Request with WIRE_DAPL_REQUEST */
	WIRE_DAPL_UD = 0x04,		/* Request: asks for a datagram association */
	WIRE_DAPL_REFUSED = 0x04,	/* Reply with R: rejected by the device, not by the consumer */
	WIRE_ORD_NONE = 0x3fff,		/* IRD or ORD that is not negotiated */
};

struct wire_mpa {
	bool reply;
	uint8_t flags, revision;
	uint16_t length;		/* PD_Length: what follows the header */
	/* enhanced data (flag S) */
	bool p2p, p2p_send, p2p_write, p2p_read;	/* A, B, C, D */
	uint16_t ird, ord;
};

void wire_mpa_put(uint8_t header[WIRE_MPA_HEADER], const struct wire_mpa *mpa);
/* Returns false if the key is not that of a Request (`reply`: of a Reply). */
bool wire_mpa_get(const uint8_t header[WIRE_MPA_HEADER], bool reply, struct wire_mpa *mpa);
void wire_enhanced_put(uint8_t data[WIRE_MPA_ENHANCED], const struct wire_mpa *mpa);
void wire_enhanced_get(const uint8_t data[WIRE_MPA_ENHANCED], struct wire_mpa *mpa);

/* The trailer of a Reply between peers of this implementation, between enhanced and private data. */
struct wire_trailer {
	uint8_t version;
	uint16_t features;		/* none yet: 0, and not looked at */
	uint32_t max_ulpdu;		/* bytes; the largest that the sender of the trailer makes. This
					 * version takes any size, and does not evaluate it */
	uint32_t qpn, qkey;		/* UD */
	uint16_t udp_port;
	uint8_t token[16];		/* names the socket for shared memory; 0: none */
};
enum { WIRE_TRAILER = 36, WIRE_TRAILER_VERSION = 1 };
void wire_trailer_put(uint8_t data[WIRE_TRAILER], const struct wire_trailer *trailer);
bool wire_trailer_get(const uint8_t data[WIRE_TRAILER], struct wire_trailer *trailer);

/* --- FPDU, DDP, RDMAP -------------------------------------------------------- */

enum wire_op {
	WIRE_WRITE = RDMAP_WRITE, WIRE_READ_REQUEST = RDMAP_READ_REQUEST, WIRE_READ_RESPONSE = RDMAP_READ_RESPONSE,
	WIRE_SEND = RDMAP_SEND, WIRE_SEND_INV = RDMAP_SEND_INV, WIRE_SEND_SE = RDMAP_SEND_SE,
	WIRE_SEND_SE_INV = RDMAP_SEND_SE_INV, WIRE_TERMINATE = RDMAP_TERMINATE, WIRE_IMMEDIATE = RDMAP_IMMEDIATE,
	WIRE_IMMEDIATE_SE = RDMAP_IMMEDIATE_SE, WIRE_ATOMIC_REQUEST = RDMAP_ATOMIC_REQUEST,
	WIRE_ATOMIC_RESPONSE = RDMAP_ATOMIC_RESPONSE,
	/* only between peers of this implementation */
	WIRE_SEND_IMM = 12, WIRE_SEND_SE_IMM = 13,	/* immediate in the DDP word */
	WIRE_ACK = 14, WIRE_CLOSE = 15,
};

enum wire_queue {
	WIRE_QN_SEND = DDP_QUEUE_SEND, WIRE_QN_READ = DDP_QUEUE_READ, WIRE_QN_TERMINATE = DDP_QUEUE_TERMINATE,
	WIRE_QN_ATOMIC = DDP_QUEUE_ATOMIC_RESPONSE,
	WIRE_QN_DAPL = 4,
};

enum {
	WIRE_FPDU_LENGTH = 2, WIRE_CRC = 4,
	WIRE_CONTROL_END = 4,		/* end of the control fields of DDP and RDMAP in an FPDU, which tell
					 * the length of its header */
	WIRE_TAGGED = DDP_TAGGED_HEADER, WIRE_UNTAGGED = DDP_UNTAGGED_HEADER,
	WIRE_READ_REQUEST_LENGTH = RDMAP_READ_REQUEST_BODY, WIRE_ATOMIC_REQUEST_LENGTH = RDMAP_ATOMIC_REQUEST_BODY,
	WIRE_ATOMIC_RESPONSE_LENGTH = RDMAP_ATOMIC_RESPONSE_BODY, WIRE_IMMEDIATE_LENGTH = RDMAP_IMMEDIATE_BODY,
	WIRE_ACK_LENGTH = 16,
	WIRE_TERMINATE_LENGTH = 4,	/* bytes that each Terminate has */
	WIRE_TERMINATE_EXTRA = 16,	/* bytes behind them between peers of this implementation; others
					 * send headers of the message that failed */
	WIRE_BODY_MAX = 64,		/* the longest body of a message that carries no payload: a Terminate
					 * with headers has up to 52 bytes */
	WIRE_HEAD_MAX = WIRE_FPDU_LENGTH + WIRE_UNTAGGED,
	WIRE_ULPDU_MAX = 65532,
	WIRE_ATOMIC_FETCH_ADD = 0, WIRE_ATOMIC_CMP_SWAP = 2,
};

struct wire_segment {
	bool tagged, last;
	uint8_t op;
	uint32_t stag;			/* tagged; untagged: the word (STag to invalidate) */
	uint64_t to;			/* tagged */
	uint32_t qn, msn, mo;		/* untagged */
};

/* Encodes the DDP header. Returns its length. */
unsigned wire_segment_put(uint8_t *p, const struct wire_segment *segment);

/* Layer, type and code of a Terminate: one number. */
#define WIRE_TERM(layer, type, code) ((layer) << 12 | (type) << 8 | (code))
enum wire_term {
	WIRE_TERM_NONE = -1,		/* no error; never sent */
	WIRE_TERM_LOCAL = WIRE_TERM(0, 0, 0),
	WIRE_TERM_STAG = WIRE_TERM(0, 1, 0), WIRE_TERM_BOUNDS = WIRE_TERM(0, 1, 1),
	WIRE_TERM_ACCESS = WIRE_TERM(0, 1, 2), WIRE_TERM_STREAM = WIRE_TERM(0, 1, 3),
	WIRE_TERM_WRAP = WIRE_TERM(0, 1, 4), WIRE_TERM_INVALIDATE = WIRE_TERM(0, 1, 9),
	WIRE_TERM_RDMAP_VERSION = WIRE_TERM(0, 2, 5), WIRE_TERM_OPCODE = WIRE_TERM(0, 2, 6),
	WIRE_TERM_CATASTROPHIC = WIRE_TERM(0, 2, 7),
	WIRE_TERM_UNSPECIFIED = WIRE_TERM(0, 2, 0xff),
	WIRE_TERM_DDP_STAG = WIRE_TERM(1, 1, 0), WIRE_TERM_DDP_BOUNDS = WIRE_TERM(1, 1, 1),
	WIRE_TERM_DDP_STREAM = WIRE_TERM(1, 1, 2), WIRE_TERM_DDP_WRAP = WIRE_TERM(1, 1, 3),
	WIRE_TERM_TAGGED_VERSION = WIRE_TERM(1, 1, 4),
	WIRE_TERM_QN = WIRE_TERM(1, 2, 1), WIRE_TERM_NO_BUFFER = WIRE_TERM(1, 2, 2),
	WIRE_TERM_MSN = WIRE_TERM(1, 2, 3), WIRE_TERM_MO = WIRE_TERM(1, 2, 4),
	WIRE_TERM_TOO_LONG = WIRE_TERM(1, 2, 5),
	WIRE_TERM_UNTAGGED_VERSION = WIRE_TERM(1, 2, 6),
	WIRE_TERM_CRC = WIRE_TERM(2, 0, 2), WIRE_TERM_LENGTH = WIRE_TERM(2, 0, 3),
	WIRE_TERM_IRD = WIRE_TERM(2, 0, 6),
};

/* The beginning of a Terminate, of fixed length. Decoding also understands peers that send the header
 * with its bit fields swapped (siw does, up to Linux 6.1 at least). */
void wire_terminate_put(uint8_t p[WIRE_TERMINATE_LENGTH], unsigned term);
unsigned wire_terminate_get(const uint8_t p[WIRE_TERMINATE_LENGTH], bool peer_swaps);

/* CRC32C, continued: start with WIRE_CRC_START, finish with wire_crc_put. */
#define WIRE_CRC_START 0xffffffffu
uint32_t wire_crc(uint32_t crc, const void *data, size_t length);
void wire_crc_put(uint8_t p[4], uint32_t crc);

#endif
