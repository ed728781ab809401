/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_ep_free.c - the end of an endpoint: in which states it can be freed and reset, what is done to its connection,
 * and that nothing it was made from stays in use (ep_free.c). Resets beside posts are in test_ep_reset.c. */
#include <sched.h>
#include "dapl/core/conn/conn_step.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/ep/ep.h"
#include "dapl/core/ep/ep_qp.h"
#include "dapl/core/ep/post_slow.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/unit.h"

enum { NEVER = 1000 * 1000000 };	/* us; longer than any test */

static struct dapl_ep *ep;
static char connection;			/* its address is one */
static char steps[16];			/* what the device was told, a letter each */
static unsigned step_count;
static bool waits;			/* atomic */

#define EP ((DAT_EP_HANDLE)ep)

static void step(char what)
{
	assert_true(step_count < sizeof steps - 1);
	steps[step_count++] = what;
	steps[step_count] = '\0';
}

static void note_error(struct ibv_qp *qp)
{
	assert_ptr_equal(qp->qp_context, ep);
	step('E');
}

static void note_disconnect(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, &connection);
	step('D');
}

/* The device holds a reference of the endpoint until it has released the connection. */
static void note_release(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, &connection);
	step('R');
	dapl_object_put(&ep->obj);
}

static void note_destroy(struct ibv_qp *qp)
{
	assert_true(dapl_mutex_try(&ep->lock));	/* destroying waits for callbacks that take it */
	dapl_mutex_unlock(&ep->lock);
	step('Q');
}

UNIT_FIXTURE(set_up)
{
	assert_int_equal(core_objects_open(state), 0);
	core_device.error_qp = note_error;
	core_device.disconnect = note_disconnect;
	core_device.release = note_release;
	core_device.destroy_qp = note_destroy;
	step_count = 0;
	steps[0] = '\0';
	ep = core_objects_ep(NULL, NULL);
}

/* The case has freed the endpoint; core_objects_close finds what is still in use. */
static int tear_down(void **state)
{
	assert_int_equal(dapl_ep_free(EP), BAD_HANDLE(EP));
	assert_int_equal(ep->obj.calls, 0);
	assert_int_equal(ep->obj.refs, 0);
	assert_int_equal(core_device.qps, 0);
	assert_false(dapl_in_use(&core_pz->obj));
	return core_objects_close(state);
}

static void connect_it(DAT_EP_STATE to)
{
	ep->state = to;
	ep->conn = (struct dapl_conn *)&connection;
	dapl_object_get(&ep->obj);
}

/* --- free ------------------------------------------------------------------------------ */

UNIT_CASE(free_gives_everything_back)
{
	assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
	assert_string_equal(steps, "Q");	/* there is no connection to end */
	assert_int_equal(core_ia->counters[DCNT_IA_EP_FREE], 1);
	assert_int_equal(dapl_object_count(core_ia, DAPL_EP), 0);
	assert_int_equal(core_ia->ending, 0);
	assert_int_equal(core_dto_evd->feeds.all, 0);
	assert_int_equal(core_conn_evd->pins, 0);
}

UNIT_CASE(free_ends_the_connection_before_the_qp)
{
	static const DAT_EP_STATE connected[] = { DAT_EP_STATE_CONNECTED, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
		DAT_EP_STATE_COMPLETION_PENDING, DAT_EP_STATE_DISCONNECT_PENDING };
	DAT_EVENT event;

	for (size_t i = 0; i < sizeof connected / sizeof *connected; i++) {
		if (i)
			ep = core_objects_ep(NULL, NULL);
		step_count = 0;
		connect_it(connected[i]);
		assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
		assert_string_equal(steps, "EDRQ");
		assert_int_equal(core_next_event(core_conn_evd, &event), 0);	/* its consumer knows */
	}
}

/* The device has not released the connection: its upcalls still come, and find no live endpoint. */
UNIT_CASE(upcall_after_the_free_does_nothing)
{
	bool happened;
	DAT_EVENT event;

	ep->state = DAT_EP_STATE_CONNECTED;
	dapl_object_get(&ep->obj);
	assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
	dapl_mutex_lock(&ep->lock);
	happened = dapl_ep_make_step(ep, EP_BROKEN, NULL);
	dapl_mutex_unlock(&ep->lock);
	assert_false(happened);
	assert_int_equal(core_next_event(core_conn_evd, &event), 0);
	assert_int_equal(ep->obj.refs, 1);
	dapl_object_put(&ep->obj);
}

static void fire(struct dapl_timer *timer) { abort(); }

UNIT_CASE(timer_of_the_endpoint_ends)
{
	ep->state = DAT_EP_STATE_ACTIVE_CONNECTION_PENDING;
	dapl_mutex_lock(&ep->lock);
	dapl_ep_arm(ep, NEVER, fire);
	dapl_mutex_unlock(&ep->lock);
	assert_int_equal(ep->obj.refs, 2);
	assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);	/* tear_down: no reference is left */
}

UNIT_CASE(completions_of_a_freed_endpoint_are_gone)
{
	struct dapl_dto *receive = core_post(ep, DAT_DTO_RECEIVE, 0, 1);
	DAT_EVENT event;

	core_complete(core_dto_evd, &(struct ibv_wc){ .wr_id = (uintptr_t)receive, .qp_num = ep->qpn });
	ep->terminal = DAT_CONNECTION_EVENT_BROKEN;	/* it waits for the completion to be dequeued */
	ep->deferred = true;
	assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
	assert_int_equal(core_next_event(core_dto_evd, &event), 0);
	assert_int_equal(core_next_event(core_conn_evd, &event), 0);
}

/* --- calls of other threads ------------------------------------------------------------ */

/* A thread waits for calls to end, or looks again at a lock. */
EXTEND(sched_yield)
int __wrap_sched_yield(void)
{
	__atomic_store_n(&waits, true, __ATOMIC_RELEASE);
	return __real_sched_yield();
}

static void *free_it(void *result)
{
	DAT_RETURN ret = dapl_ep_free(EP);

	__atomic_store_n((DAT_RETURN *)result, ret, __ATOMIC_RELEASE);
	return NULL;
}

static void *reset_it(void *result)
{
	*(DAT_RETURN *)result = dapl_ep_reset(EP);
	return NULL;
}

static void wait_for_calls(int n)
{
	while (__atomic_load_n(&ep->obj.calls, __ATOMIC_SEQ_CST) < (uint32_t)n)
		usleep(1000);		/* the alarm ends it */
}

UNIT_CASE(free_waits_for_calls_of_other_threads)
{
	const DAT_RETURN not_yet = DAT_QUEUE_EMPTY;
	DAT_RETURN ret = not_yet, again;
	pthread_t thread;

	assert_non_null(dapl_ep_enter((DAT_HANDLE)ep));
	waits = false;
	assert_int_equal(pthread_create(&thread, NULL, free_it, &ret), 0);
	while (dapl_ep_is_live(ep) || (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE) &&
				       __atomic_load_n(&ret, __ATOMIC_ACQUIRE) == not_yet))
		usleep(1000);		/* the alarm ends it */
	again = dapl_ep_free(EP);	/* the handle is no good any more */
	assert_int_equal(core_device.qps, 1);
	assert_true(dapl_in_use(&core_pz->obj));
	dapl_object_leave(&ep->obj);
	pthread_join(thread, NULL);
	assert_int_equal(ret, DAT_SUCCESS);
	assert_int_equal(again, BAD_HANDLE(EP));
}

UNIT_CASE(one_of_two_frees_succeeds)
{
	DAT_RETURN first = DAT_QUEUE_EMPTY, second = DAT_QUEUE_EMPTY;
	pthread_t threads[2];

	dapl_mutex_lock(&ep->lock);
	assert_int_equal(pthread_create(&threads[0], NULL, free_it, &first), 0);
	assert_int_equal(pthread_create(&threads[1], NULL, free_it, &second), 0);
	wait_for_calls(2);
	dapl_mutex_unlock(&ep->lock);
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	assert_true(first == DAT_SUCCESS || second == DAT_SUCCESS);
	assert_int_equal(first == DAT_SUCCESS ? second : first, BAD_HANDLE(EP));
	assert_int_equal(core_ia->counters[DCNT_IA_EP_FREE], 1);
}

UNIT_CASE(reset_of_an_endpoint_that_is_freed_meanwhile_is_refused)
{
	DAT_RETURN ret = DAT_SUCCESS;
	pthread_t thread;

	ep->state = DAT_EP_STATE_DISCONNECTED;
	dapl_mutex_lock(&ep->lock);
	assert_int_equal(pthread_create(&thread, NULL, reset_it, &ret), 0);
	wait_for_calls(1);
	assert_true(dapl_object_kill(&ep->obj));
	dapl_mutex_unlock(&ep->lock);
	pthread_join(thread, NULL);
	assert_int_equal(ret, BAD_HANDLE(EP));
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECTED);
	dapl_ep_destroy(ep);
}

UNIT_CASE(reset_of_a_disconnected_endpoint_forgets_the_connection)
{
	DAT_EVENT event;

	ep->state = DAT_EP_STATE_DISCONNECTED;
	ep->local.ss_family = ep->remote.ss_family = AF_INET;
	ep->pdata_len = 3;
	ep->srq_polled = 2;
	core_post(ep, DAT_DTO_RECEIVE, 0, 1);
	core_post(ep, DAT_DTO_SEND, 0, 2);
	ep->terminal = DAT_CONNECTION_EVENT_DISCONNECTED;	/* it waits for completions, which vanish */
	ep->deferred = true;
	assert_int_equal(dapl_ep_reset(EP), DAT_SUCCESS);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(core_next_event(core_conn_evd, &event), DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep);
	assert_int_equal(core_next_event(core_conn_evd, &event), 0);
	assert_false(ep->deferred);
	assert_int_equal(dapl_queue_count(&ep->rq) + dapl_queue_count(&ep->sq), 0);
	assert_int_equal(ep->local.ss_family + ep->remote.ss_family, AF_UNSPEC);
	assert_int_equal(ep->pdata_len, 0);
	assert_int_equal(ep->srq_polled, 0);
	assert_non_null(ep->qp);	/* receives can be posted */
	assert_false(ep->changing);
	assert_int_equal(dapl_ep_free(EP), DAT_SUCCESS);
}

UNIT_MAIN(NULL, NULL)
