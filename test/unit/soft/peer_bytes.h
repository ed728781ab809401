/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer_bytes.h - the bytes that a peer sends into a stream of stream.h, composed message by message
 * (peer_bytes.c). */
#ifndef TEST_SOFT_PEER_BYTES_H
#define TEST_SOFT_PEER_BYTES_H
#include "test/unit/soft/stream.h"

extern uint8_t peer_bytes[65536];
extern size_t peer_length;		/* of what is composed; a test sets it to 0 */

/* Headers. */
struct wire_segment send_of(uint8_t op, uint32_t msn, uint32_t mo, bool last);
struct wire_segment write_to(uint32_t stag, uint64_t to, bool last);
struct wire_segment control(uint8_t op, uint32_t qn, uint32_t msn);
/* Append an FPDU: of any message, a read or an atomic that asks for memory, a part of the answer to a read. */
void add(const struct stream *s, struct wire_segment seg, const void *body, size_t n);
void add_read(const struct stream *s, uint32_t msn, uint32_t stag, uint64_t from, uint32_t size);
void add_atomic(const struct stream *s, uint32_t msn, uint32_t code, uint32_t stag, uint64_t to);
void add_response(const struct stream *s, uint32_t offset, uint32_t size, bool last);

#endif
