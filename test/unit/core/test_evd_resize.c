/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_evd_resize.c - dat_evd_resize keeps what is queued, and lets other threads work meanwhile. */
#include "dapl/core/event/evd_notify.h"
#include "dapl/core/event/event.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd_resize.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static int watch_error;		/* of the service thread; 0: it watches what it is given */

EXTEND(dapl_watch_start)
int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	return watch_error ? watch_error : __real_dapl_watch_start(watch, fd, ready);
}

UNIT_FIXTURE(set_up)
{
	watch_error = 0;
	core_endpoint_open(8, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, 256);
}

static void put_software_event(uintptr_t n)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	event.event_data.software_event_data.pointer = (DAT_PVOID)n;
	assert_int_equal(dapl_evd_post_se((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
}

static void complete_send(uint64_t cookie)
{
	core_complete(evd, &(struct ibv_wc){ .status = IBV_WC_SUCCESS, .opcode = IBV_WC_SEND,
		.wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, 0, cookie) });
}

static DAT_RETURN resize(int qlen) { return dapl_evd_resize((DAT_EVD_HANDLE)evd, qlen); }

static void expect_software_event(uintptr_t n)
{
	DAT_EVENT event;

	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_SOFTWARE_EVENT);
	assert_int_equal((uintptr_t)event.event_data.software_event_data.pointer, n);
}

static void expect_send(uint64_t cookie)
{
	DAT_EVENT event;

	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(event.event_data.dto_completion_event_data.user_cookie.as_64, cookie);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, core_endpoint_close)

/* The thread that runs inside the device's resize. */
static void *work(void *arg)
{
	put_software_event(2);
	expect_software_event(1);
	expect_software_event(2);
	expect_send(3);
	return NULL;
}

static int work_meanwhile(struct ibv_cq *cq, int cqe)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	return 0;
}

/* With a lock of the EVD held here the thread would never end. */
CASE(other_threads_post_and_dequeue_while_the_device_resizes)
{
	put_software_event(1);
	complete_send(3);
	core_device.resize_cq = work_meanwhile;
	assert_int_equal(resize(500), DAT_SUCCESS);
	assert_int_equal(evd->cq->cqe, 500 + DAPL_CQ_SPARE);
}

/* A write that fails behind a delayed acknowledgement takes two entries of the device's CQ. */
CASE(delayed_acknowledgements_take_twice_the_entries)
{
	evd->obj.ia->attr.delayed_ack = true;
	assert_int_equal(dapl_evd_cq_entries(evd->obj.ia, 100), 200 + DAPL_CQ_SPARE);
	assert_int_equal(dapl_evd_cq_entries(evd->obj.ia, 450), 900 + DAPL_CQ_SPARE);
	assert_int_equal(dapl_evd_cq_entries(evd->obj.ia, 600), evd->obj.ia->attr.limits.max_cqe);
	evd->obj.ia->attr.delayed_ack = false;
	assert_int_equal(dapl_evd_cq_entries(evd->obj.ia, 100), 100 + DAPL_CQ_SPARE);
}

static int refuse(struct ibv_cq *cq, int cqe) { return ENOMEM; }

CASE(a_refusal_by_the_device_changes_nothing)
{
	struct ibv_wc *wc = evd->wc;

	put_software_event(1);
	core_device.resize_cq = refuse;
	assert_int_equal(DAT_GET_TYPE(resize(500)), DAT_INSUFFICIENT_RESOURCES);
	assert_int_equal(evd->qlen, 8);
	assert_int_equal(evd->evq.size, 8);
	assert_ptr_equal(evd->wc, wc);
	expect_software_event(1);
}

static int cannot_resize(struct ibv_cq *cq, int cqe) { return EOPNOTSUPP; }

/* The service thread must empty a CQ that cannot grow. */
CASE(evd_that_nothing_would_empty_keeps_its_length)
{
	core_device.resize_cq = cannot_resize;
	watch_error = ENOMEM;
	assert_int_equal(resize(500), NO_RESOURCE(MEMORY));
	assert_int_equal(evd->qlen, 8);
	assert_int_equal(evd->evq.size, 8);
}

CASE(the_ring_ends_where_it_was_told)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	assert_int_equal(resize(9), DAT_SUCCESS);	/* 16 slots */
	for (unsigned i = 0; i < 9; i++)
		put_software_event(i);
	assert_int_equal(DAT_GET_TYPE(dapl_evd_post_se((DAT_EVD_HANDLE)evd, &event)),
			 DAT_QUEUE_FULL);
}

UNIT_MAIN(NULL, NULL)
