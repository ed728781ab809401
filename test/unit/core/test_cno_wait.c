/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno_wait.c - dat_cno_wait: how a signal ends it, and when it looks before it blocks. */
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

EXTEND(epoll_wait, dapl_mutex_wait)
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
	return cno && fd == cno->epfd && signal_comes() ? -1 : __real_epoll_wait(fd, events, max, ms);
}

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
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

static void fail_awake(void)
{
	errno = EAGAIN;
}

static int watched_fd;

static int watch(void)
{
	return watched_fd;
}

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

/* --- looking before blocking ---------------------------------------------------------------- */

enum { MOMENT = 1000 };	/* us; longer than a wait looks */

static unsigned works, late;	/* calls of work(); the one that triggers the CNO, if any */

static bool trigger_late(void)
{
	if (++works == late)
		dapl_evd_notify(evd);
	return true;
}

/* The device's descriptor is never readable. */
static DAT_RETURN wait_without_wakeup(unsigned trigger)
{
	DAT_EVD_HANDLE handle;

	works = 0;
	late = trigger;
	return DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, MOMENT, &handle));
}

static void watch_device(int fds[2])
{
	set_cno(cno);
	assert_int_equal(pipe(fds), 0);
	watched_fd = fds[0];
	core_device.sleep = watch;
	core_device.work = trigger_late;
}

static void stop_watching(int fds[2])
{
	set_cno(NULL);
	close(fds[0]);
	close(fds[1]);
}

CASE(wait_works_for_the_device_before_it_blocks)
{
	int fds[2];

	watch_device(fds);
	assert_int_equal(wait_without_wakeup(3), DAT_SUCCESS);
	assert_int_equal(works, 3);
	stop_watching(fds);
}

/* wait_spin.h: how many. Those that find something go on looking. */
CASE(waits_that_find_nothing_are_followed_by_some_that_block)
{
	int fds[2];

	watch_device(fds);
	assert_int_equal(wait_without_wakeup(0), DAT_QUEUE_EMPTY);
	assert_true(works > 0);
	assert_int_equal(wait_without_wakeup(1), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_without_wakeup(1), DAT_SUCCESS);
	stop_watching(fds);
}

CASE(one_of_several_waiters_does_not_look)
{
	int fds[2];

	watch_device(fds);
	cno->waiters = 1;	/* another */
	assert_int_equal(wait_without_wakeup(1), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	cno->waiters = 0;
	stop_watching(fds);
}

CASE(wait_of_no_time_does_not_look)
{
	DAT_EVD_HANDLE handle;
	int fds[2];

	watch_device(fds);
	works = 0;
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, 0, &handle)), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	stop_watching(fds);
}

UNIT_MAIN(NULL, NULL)
