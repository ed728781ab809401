/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_reset.c - dat_ep_reset of an endpoint that was connected, and receives that other threads post
 * meanwhile. */
#include <sched.h>
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/calls.h"
#include "dapl/core/ep/recv_repost.h"
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

static pthread_t thread;
static DAT_RETURN posted;
static bool ended;			/* atomic */
static int in_device, reset_error;	/* receives that the device has */

static int count_receive(struct ibv_recv_wr *wr)
{
	in_device++;
	return 0;
}

static void *post(void *arg)
{
	const DAT_LMR_TRIPLET segment = { .segment_length = 64 };

	posted = dapl_receive_any(arg, 1, &segment, (DAT_DTO_COOKIE){ .as_64 = 5 }, DAT_COMPLETION_DEFAULT_FLAG);
	__atomic_store_n(&ended, true, __ATOMIC_RELEASE);
	return NULL;
}

/* The device has emptied the QP, and before it returns, another thread begins to post a receive: until it
 * waits for the reset, or has posted. */
static int post_meanwhile(struct ibv_qp *qp)
{
	in_device = 0;
	if (pthread_create(&thread, NULL, post, ep))
		abort();
	while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE) && __atomic_load_n(&ep->obj.calls, __ATOMIC_SEQ_CST) < 2)
		sched_yield();
	return reset_error;
}

static void *try_lock(void *arg)
{
	bool *is_free = arg;

	*is_free = dapl_mutex_try(&ep->lock);
	if (*is_free)
		dapl_mutex_unlock(&ep->lock);
	return NULL;
}

static bool lock_was_free;

static int look_at_the_lock(struct ibv_qp *qp)
{
	if (pthread_create(&thread, NULL, try_lock, &lock_was_free))
		abort();
	pthread_join(thread, NULL);
	return reset_error;
}

UNIT_FIXTURE(set_up)
{
	core_endpoint_open(64, DAT_EVD_DTO_FLAG, 4);
	core_device.post_recv = count_receive;
	core_device.reset_qp = post_meanwhile;
	ep->qp = core_qp();
	ep->max_recv_iov = 3;
	ep->attr.max_recv_dtos = ep->attr.max_request_dtos = 4;
	ep->state = DAT_EP_STATE_DISCONNECTED;
	ended = false;
	in_device = reset_error = 0;
	core_post(ep, DAT_DTO_RECEIVE, 0, 1);
}

static int tear_down(void **state)
{
	struct dapl_saved_recv *list;

	dapl_post_lock(&ep->rq.lock);
	list = dapl_saved_recv_detach(ep);
	dapl_post_unlock(&ep->rq.lock);
	dapl_saved_recv_free(list);
	return core_endpoint_close(state);
}

/* The device and the endpoint agree on what is posted. */
UNIT_CASE(receive_posted_meanwhile_comes_after_the_reset)
{
	assert_int_equal(dapl_ep_reset((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	pthread_join(thread, NULL);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(posted, DAT_SUCCESS);
	assert_int_equal(in_device, 1);
	assert_int_equal(dapl_queue_count(&ep->rq), 1);
	assert_int_equal(ep->rq.ring[0].cookie.as_64, 5);
	assert_non_null(ep->saved_recvs);	/* dat_ep_modify may need it */
}

/* The endpoint stays as it was, with its QP. */
UNIT_CASE(reset_that_the_device_refuses_changes_nothing)
{
	reset_error = ENOMEM;
	assert_int_not_equal(dapl_ep_reset((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	pthread_join(thread, NULL);
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECTED);
	assert_ptr_equal(ep->qp, core_qp());
	assert_int_equal(posted, DAT_SUCCESS);
	assert_int_equal(dapl_queue_count(&ep->rq), 2);
}

/* The device may wait for its peer. */
UNIT_CASE(lock_is_free_while_the_device_resets)
{
	core_device.reset_qp = look_at_the_lock;
	lock_was_free = false;
	assert_int_equal(dapl_ep_reset((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_true(lock_was_free);
}

UNIT_MAIN(NULL, NULL)
