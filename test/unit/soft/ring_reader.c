/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_reader.c - see ring_reader.h. */
#include "test/unit/soft/ring_reader.h"
#include "test/unit/unit.h"

struct soft_message ring_read(struct ring_rx *rx)
{
	struct soft_message message;

	assert_true(ring_ready(rx));
	assert_true(ring_get(rx, &message));
	ring_done(rx, &message);
	return message;
}
