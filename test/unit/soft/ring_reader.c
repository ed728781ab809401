/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_reader.c - see ring_reader.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "test/unit/soft/ring_reader.h"

struct ring_message ring_read(struct ring_rx *rx)
{
	struct ring_message message;

	assert_true(ring_ready(rx));
	assert_true(ring_get(rx, &message));
	ring_done(rx, &message);
	return message;
}
