/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* stream_test.c - see stream_test.h. */
#include "test/unit/soft/stream_test.h"
#include "dapl/core/base/service.h"

struct stream s;

int stream_test_open_device(void **state)
{
	(void)state;
	stream_device_open();
	return 0;
}

int stream_test_close_device(void **state)
{
	(void)state;
	dapl_service_flush();
	stream_device_close();
	return 0;
}

int stream_test_open(void **state)
{
	(void)state;
	stream_open(&s, &(struct stream_options){ .peer_is_dapl = true });
	return 0;
}

int stream_test_close(void **state)
{
	struct ibv_wc wc[STREAM_WRS];

	(void)state;
	stream_close(&s);
	stream_poll(&s, wc, STREAM_WRS);
	return 0;
}
