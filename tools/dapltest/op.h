/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* op.h - the size and layout of the buffer of an operation, in the transaction and the performance test. */
#ifndef DAPLTEST_OP_H
#define DAPLTEST_OP_H
#include "channel.h"
#include "wire.h"

enum { OP_ALIGNMENT = 256 };	/* of segments, in bytes */

static inline size_t op_total(const struct op *op)
{
	return (size_t)op->size * op->segments;
}

static inline struct layout op_layout(const struct op *op)
{
	return (struct layout){ (DAT_COUNT)op->segments, op->size,
				((size_t)op->size + OP_ALIGNMENT - 1) / OP_ALIGNMENT * OP_ALIGNMENT };
}

#endif
