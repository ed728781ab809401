/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_test.c - see stream_test.h. */
#include "test/unit/soft/stream_test.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/rnic.h"
#include "test/unit/unit.h"

struct stream s;

int stream_test_open_device(void **state)
{
	stream_device_open();
	return 0;
}

int stream_test_close_device(void **state)
{
	dapl_service_flush();
	stream_device_close();
	return 0;
}

int stream_test_open(void **state)
{
	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	return 0;
}

int stream_test_close(void **state)
{
	struct ibv_wc wc[STREAM_WRS];

	stream_close(&s);
	stream_poll(&s, wc, STREAM_WRS);
	return 0;
}

int stream_test_open_blocked(void **state)
{
	stream_test_open(state);
	s.conn->stream.tx.blocked = true;
	return 0;
}

void stream_test_lock(void)
{
	soft_progress_lock(stream_device.dev);
	dapl_mutex_lock(&s.qp->lock);
}

void stream_test_unlock(void)
{
	dapl_mutex_unlock(&s.qp->lock);
	soft_progress_unlock(stream_device.dev);
}

struct ibv_sge stream_test_sge(uint32_t offset, uint32_t length)
{
	return (struct ibv_sge){ (uintptr_t)stream_device.memory->local + offset, length, stream_device.local->lkey };
}

void expect_completion(uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	assert_int_equal(stream_poll(&s, &wc, 1), 1);
	assert_int_equal(wc.wr_id, id);
	assert_int_equal(wc.status, status);
}

void expect_no_completion(void)
{
	struct ibv_wc wc;

	assert_int_equal(stream_poll(&s, &wc, 1), 0);
}
