/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno_wait.c - dat_cno_wait: how a signal ends it, and how it polls before it blocks. */
#include "test/unit/core/core_cno.h"
#include <poll.h>
#include <sys/epoll.h>
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/unit.h"

static int set_up(void **state)
{
	int err = open_evd(state);

	if (!err)
		create_cno(NULL);
	return err;
}

/* --- a signal ------------------------------------------------------------------------------- */

static int signals;	/* that come in the next calls that sleep */
static unsigned blocks;	/* calls that may sleep */

EXTEND(epoll_wait, dapl_mutex_wait, write)
/* By hand: glibc's declaration says that poll() only writes. */
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
__attribute__((visibility("default"))) int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

/* Then another thread has the CNO's mutex. */
static bool signal_comes(void)
{
	if (!signals)
		return false;
	signals--;
	cno->mutex.state = MUTEX_HELD;
	errno = EINTR;
	return true;
}

int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int ms)
{
	blocks += ms != 0;
	return cno && fd == cno->epfd && signal_comes() ? -1 : __real_epoll_wait(fd, events, max, ms);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	blocks += ms != 0;
	return cno && fds[0].fd == cno->epfd && signal_comes() ? -1 : __real_poll(fds, n, ms);
}

/* The thread that had the mutex has released it before this one slept: the futex call fails. */
void __wrap_dapl_mutex_wait(struct dapl_mutex *mutex, uint32_t found)
{
	if (!cno || mutex != &cno->mutex)
		__real_dapl_mutex_wait(mutex, found);
	else
		errno = EAGAIN;
}

static void fail_awake(void) { errno = EAGAIN; }

static int watched_fd;

static int watch(void) { return watched_fd; }

static void check_signal_ends_the_wait(void)
{
	DAT_EVD_HANDLE handle;

	signals = 1;
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, 10000, &handle)), DAT_INTERRUPTED_CALL);
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, 0, &handle)), DAT_QUEUE_EMPTY);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, close_cno)

/* Whatever the calls behind the sleep leave in errno. */
CASE(signal_ends_a_wait)
{
	int fds[2];

	check_signal_ends_the_wait();
	assert_int_equal(pipe(fds), 0);
	watched_fd = fds[0];
	core_device.sleep = watch;
	check_signal_ends_the_wait();
	core_device.awake = fail_awake;
	check_signal_ends_the_wait();
	close(fds[0]);
	close(fds[1]);
}

static unsigned works;

static bool trigger_at_third(void)
{
	if (++works == 3)
		dapl_evd_notify(evd);
	return true;
}

CASE(blocked_wait_works_for_the_device)
{
	DAT_EVD_HANDLE handle;
	int fds[2];

	set_cno(cno);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "", 1), 1);
	watched_fd = fds[0];
	core_device.sleep = watch;
	core_device.work = trigger_at_third;
	works = 0;
	assert_int_equal(dapl_cno_wait((DAT_CNO_HANDLE)cno, DAT_TIMEOUT_INFINITE, &handle), DAT_SUCCESS);
	assert_ptr_equal(handle, evd);
	assert_int_equal(works, 3);
	set_cno(NULL);
	close(fds[0]);
	close(fds[1]);
}

static unsigned wakeups;	/* of the CNO's waiters */

ssize_t __wrap_write(int fd, const void *buffer, size_t length)
{
	wakeups += cno && fd == cno->wake_fd;
	return __real_write(fd, buffer, length);
}

/* The channel is readable, since it is lost: that is a trigger. */
CASE(trigger_that_the_waiter_makes_wakes_no_thread)
{
	DAT_EVD_HANDLE handle;
	uint64_t one = 1;

	set_cno(cno);
	core_device.channel_error = EIO;
	assert_int_equal(write(evd->channel->fd, &one, sizeof one), sizeof one);
	wakeups = 0;
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, DAT_TIMEOUT_INFINITE, &handle)),
			 DAT_INTERNAL_ERROR);
	assert_ptr_equal(handle, evd);
	assert_int_equal(wakeups, 0);
	assert_int_equal(cno->sleepers, 0);
	set_cno(NULL);
}

/* --- polling before blocking ---------------------------------------------------------------- */

enum { LATE = 40, MOMENT = 1000 };	/* polls: more than a wait makes without wait_spin.h; us */

static struct dapl_ep *ep;
static unsigned polls;

static int set_up_ep(void **state)
{
	int err = set_up(state);

	ep = core_ep_new(ia, evd, 4);
	set_cno(cno);
	blocks = 0;
	return err;
}

static int close_ep(void **state)
{
	DAT_EVENT event;

	core_device.polling = NULL;
	while (dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event) == DAT_SUCCESS)
		;
	set_cno(NULL);
	core_ep_free(ep);
	return close_cno(state);
}

static void complete(void)
{
	const struct ibv_wc wc = { .wr_id = (uintptr_t)core_post(ep, DAT_DTO_SEND, 0, 0) };

	core_complete(evd, &wc);
}

static void complete_late(struct ibv_cq *cq)
{
	if (++polls == LATE)
		complete();
}

static DAT_RETURN wait_cno(DAT_TIMEOUT timeout)
{
	DAT_EVD_HANDLE handle;
	DAT_RETURN ret = dapl_cno_wait((DAT_CNO_HANDLE)cno, timeout, &handle);

	assert_ptr_equal(handle, ret == DAT_SUCCESS ? evd : NULL);
	return DAT_GET_TYPE(ret);
}

static DAT_RETURN wait_for_late_completion(void)
{
	polls = 0;
	core_device.polling = complete_late;
	return wait_cno(MOMENT);
}

#define POLLS(name) UNIT_TEST_WITH(name, set_up_ep, close_ep)

POLLS(completion_that_comes_soon_is_taken_without_blocking)
{
	evd->armed = false;
	assert_int_equal(wait_for_late_completion(), DAT_SUCCESS);
	assert_in_range(polls, LATE, LATE + 2);
	assert_int_equal(blocks, 0);
	assert_false(evd->armed);
	assert_false(cno->raised);
	assert_int_equal(wait_cno(0), DAT_QUEUE_EMPTY);		/* it triggers once, though it is queued */
}

POLLS(wait_that_does_not_look_arms_and_blocks)
{
	cno->spin.left = 1;
	evd->armed = false;
	assert_int_equal(wait_for_late_completion(), DAT_QUEUE_EMPTY);
	assert_in_range(polls, 1, LATE - 1);
	assert_true(blocks > 0);
	assert_true(evd->armed);
	assert_int_equal(cno->spin.left, 0);
}

POLLS(wait_learns_what_its_look_found)
{
	assert_int_equal(wait_cno(MOMENT), DAT_QUEUE_EMPTY);
	assert_int_equal(cno->spin.skips, 1);
	assert_int_equal(cno->spin.left, 1);
	cno->spin.left = 0;
	assert_int_equal(wait_for_late_completion(), DAT_SUCCESS);
	assert_int_equal(cno->spin.skips, 0);
}

POLLS(one_of_several_waiters_does_not_look)
{
	cno->waiters = 1;	/* another */
	assert_int_equal(wait_for_late_completion(), DAT_QUEUE_EMPTY);
	assert_in_range(polls, 1, LATE - 1);
	cno->waiters = 0;
}

POLLS(wait_of_no_time_polls_once_and_does_not_arm)
{
	evd->armed = false;
	assert_int_equal(wait_cno(0), DAT_QUEUE_EMPTY);
	complete();
	assert_int_equal(wait_cno(0), DAT_SUCCESS);
	assert_int_equal(blocks, 0);
	assert_false(evd->armed);
}

POLLS(completions_that_a_dequeue_left_trigger)
{
	DAT_EVENT event;

	complete();
	complete();
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(wait_cno(0), DAT_SUCCESS);
	assert_int_equal(wait_cno(0), DAT_QUEUE_EMPTY);
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	complete();
	assert_int_equal(dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event), DAT_SUCCESS);
	assert_int_equal(wait_cno(0), DAT_QUEUE_EMPTY);
}

/* What comes there is no answer of a peer that takes microseconds. */
CASE(wait_for_other_events_blocks_at_once)
{
	struct dapl_evd *other = core_evd_new(ia, 4, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVD_HANDLE handle;

	assert_int_equal(dapl_evd_modify_cno((DAT_EVD_HANDLE)other, (DAT_CNO_HANDLE)cno), DAT_SUCCESS);
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, MOMENT, &handle)), DAT_QUEUE_EMPTY);
	assert_int_equal(cno->spin.skips, 0);
	assert_int_equal(dapl_evd_modify_cno((DAT_EVD_HANDLE)other, DAT_HANDLE_NULL), DAT_SUCCESS);
	core_evd_free(other);
}

UNIT_MAIN(NULL, NULL)
