/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno.c - which thread watches the completion channel of an EVD that has a CNO: the waiter, or the
 * service thread for an agent; how a signal ends a wait; and when a wait looks before it blocks. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_device.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;
static struct dapl_cno *cno;

static void agent(DAT_PVOID context, DAT_EVD_HANDLE handle)
{
	(void)context, (void)handle;
}

static void make(bool with_agent)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { NULL, with_agent ? agent : NULL };
	DAT_CNO_HANDLE handle;

	assert_int_equal(dapl_cno_create((DAT_IA_HANDLE)ia, proxy, &handle), DAT_SUCCESS);
	cno = (struct dapl_cno *)handle;
}

static int set_up(void **state)
{
	(void)state;
	core_device = (struct core_device){ .polling = NULL };
	if (dapl_service_get())
		return -1;
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(dapl_cno_free((DAT_CNO_HANDLE)cno), DAT_SUCCESS);
	cno = NULL;
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
	return 0;
}

static DAT_RETURN modify(struct dapl_cno *to)
{
	return dapl_evd_modify_cno((DAT_EVD_HANDLE)evd, (DAT_CNO_HANDLE)to);
}

static void waiter_watches_the_channel_itself(void **state)
{
	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_false(evd->watched);
	assert_ptr_equal(evd->cno, cno);
	assert_true(dapl_in_use(&cno->obj));
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_false(dapl_in_use(&cno->obj));
}

static void service_thread_watches_for_an_agent_only(void **state)
{
	(void)state;
	make(true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(modify(cno), DAT_SUCCESS);
		assert_true(evd->watched);
		assert_int_equal(modify(NULL), DAT_SUCCESS);
		assert_false(evd->watched);
		assert_null(evd->cno);
	}
}

/* There may be no waiter from now on. */
static void agent_that_is_set_later_takes_over_the_channels(void **state)
{
	struct dapl_evd *other = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	DAT_OS_WAIT_PROXY_AGENT late = { NULL, agent };

	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_false(evd->watched);
	assert_int_equal(dapl_cno_modify_agent((DAT_CNO_HANDLE)cno, late), DAT_SUCCESS);
	assert_true(evd->watched);
	assert_false(other->watched);	/* it has another CNO, or none */
	assert_int_equal(evd->obj.calls + other->obj.calls, 0);
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_false(evd->watched);
	core_evd_free(other);
}

/* Its CQ must be emptied by the service thread, CNO or not. */
static void channel_of_a_spilling_evd_stays_watched(void **state)
{
	(void)state;
	make(true);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	evd->spill = true;
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_true(evd->watched);
	evd->spill = false;
}

static void cno_that_is_in_use_cannot_be_freed(void **state)
{
	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_int_equal(DAT_GET_TYPE(dapl_cno_free((DAT_CNO_HANDLE)cno)), DAT_INVALID_STATE);
	assert_int_equal(modify(NULL), DAT_SUCCESS);
}

/* --- a signal ------------------------------------------------------------------------------- */

static int signals;	/* that come in the next calls that sleep */

int __real_epoll_wait(int fd, struct epoll_event *events, int max, int ms);
int __real_poll(struct pollfd *fds, nfds_t n, int ms);
void __real_dapl_mutex_wait(struct dapl_mutex *mutex, uint32_t found);
__attribute__((visibility("default"))) int __wrap_epoll_wait(int fd, struct epoll_event *events, int max, int ms);
__attribute__((visibility("default"))) int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);
void __wrap_dapl_mutex_wait(struct dapl_mutex *mutex, uint32_t found);

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

/* Whatever the calls behind the sleep leave in errno. */
static void signal_ends_a_wait(void **state)
{
	int fds[2];

	(void)state;
	make(false);
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

static void attach_to_watched_device(int fds[2])
{
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_int_equal(pipe(fds), 0);
	watched_fd = fds[0];
	core_device.sleep = watch;
	core_device.work = trigger_late;
}

static void detach_from_device(int fds[2])
{
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	close(fds[0]);
	close(fds[1]);
}

static void wait_works_for_the_device_before_it_blocks(void **state)
{
	int fds[2];

	(void)state;
	attach_to_watched_device(fds);
	assert_int_equal(wait_without_wakeup(3), DAT_SUCCESS);
	assert_int_equal(works, 3);
	detach_from_device(fds);
}

/* wait_spin.h: how many. Those that find something go on looking. */
static void waits_that_find_nothing_are_followed_by_some_that_block(void **state)
{
	int fds[2];

	(void)state;
	attach_to_watched_device(fds);
	assert_int_equal(wait_without_wakeup(0), DAT_QUEUE_EMPTY);
	assert_true(works > 0);
	assert_int_equal(wait_without_wakeup(1), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(wait_without_wakeup(1), DAT_SUCCESS);
	detach_from_device(fds);
}

static void one_of_several_waiters_does_not_look(void **state)
{
	int fds[2];

	(void)state;
	attach_to_watched_device(fds);
	cno->waiters = 1;	/* another */
	assert_int_equal(wait_without_wakeup(1), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	cno->waiters = 0;
	detach_from_device(fds);
}

static void wait_of_no_time_does_not_look(void **state)
{
	DAT_EVD_HANDLE handle;
	int fds[2];

	(void)state;
	attach_to_watched_device(fds);
	works = 0;
	assert_int_equal(DAT_GET_TYPE(dapl_cno_wait((DAT_CNO_HANDLE)cno, 0, &handle)), DAT_QUEUE_EMPTY);
	assert_int_equal(works, 0);
	detach_from_device(fds);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(waiter_watches_the_channel_itself),
		CASE(service_thread_watches_for_an_agent_only),
		CASE(agent_that_is_set_later_takes_over_the_channels),
		CASE(channel_of_a_spilling_evd_stays_watched),
		CASE(cno_that_is_in_use_cannot_be_freed),
		CASE(signal_ends_a_wait),
		CASE(wait_works_for_the_device_before_it_blocks),
		CASE(waits_that_find_nothing_are_followed_by_some_that_block),
		CASE(one_of_several_waiters_does_not_look),
		CASE(wait_of_no_time_does_not_look),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
