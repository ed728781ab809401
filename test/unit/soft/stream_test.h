/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_test.h - setups and teardowns of cmocka for a program whose tests have one stream each
 * (stream_test.c). */
#ifndef TEST_UNIT_SOFT_STREAM_TEST_H
#define TEST_UNIT_SOFT_STREAM_TEST_H
#include "test/unit/soft/stream.h"
#include "test/unit/unit.h"

extern struct stream s;		/* of a peer of this implementation */

/* Of the group: the device. */
int stream_test_open_device(void **state);
int stream_test_close_device(void **state);
/* Of a test: the stream. */
int stream_test_open(void **state);
int stream_test_close(void **state);
/* Opens the stream with a full socket: requests wait in the send queue. */
int stream_test_open_blocked(void **state);

/* Hold the locks with which the device calls the functions of a stream. */
void stream_test_lock(void);
void stream_test_unlock(void);
/* A segment of memory->local. */
struct ibv_sge stream_test_sge(uint32_t offset, uint32_t length);
/* The next completion is this one. */
void expect_completion(uint64_t id, enum ibv_wc_status status);
void expect_no_completion(void);

#endif
