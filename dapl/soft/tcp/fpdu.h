/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fpdu.h - frames FPDUs. */
#ifndef SOFT_TCP_FPDU_H
#define SOFT_TCP_FPDU_H
#include <stdbool.h>
#include <stdint.h>

struct soft_batch;
struct iovec;
struct wire_segment;

/* Appends one FPDU to a batch that has room for it. */
void fpdu_put(struct soft_batch *b, bool crc_on, const struct wire_segment *seg, const void *body,
	      uint32_t body_length, const struct iovec *payload, int pieces, uint32_t length);

#endif
