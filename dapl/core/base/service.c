/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.c - the one background thread (service.h). One epoll set holds the watched descriptors, and an
 * eventfd that makes the loop look at its tasks and timers.
 *
 * The loop's owner handles events and tasks: the service thread, or a blocked thread (loop_owner.h). Timers are always
 * the service thread's. One thread at a time runs callbacks: it is in a round.
 *
 * A callback runs without the lock. `running` points to its watch, timer or task, so that a thread that
 * stops a watch or drains a timer can wait for it. An event of epoll names a slot and the slot's
 * generation. So an event that was fetched before its watch was stopped is recognised and dropped. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/fork.h"
#include "dapl/core/base/loop_owner.h"
#include "dapl/core/base/service.h"

enum { EVENTS = 16 };			/* that one look fetches */

static struct dapl_mutex users_lock = DAPL_MUTEX_INIT(RANK_SERVICE_USERS);	/* start and stop */
static int users;						/* guarded by users_lock */

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_SERVICE);	/* guards what follows */
static struct dapl_cond idle;	/* a callback returned */
static pthread_t thread;
static bool started, stopping;
static bool alone;			/* a callback closed the last IA: the thread ends, unjoined, when the
					 * callback returns, unless an IA is opened before */
static struct loop_owner owner;
static bool in_round;
static bool fetching;			/* the service thread is in epoll_wait. A blocked thread waits for its end
					 * before it becomes the owner: of two threads in there each would take
					 * wake-ups from the other */
static struct dapl_cond owner_changed;	/* the service thread waits for it while a blocked thread is the owner */
static bool loop_blocked;		/* the owner waits for the epoll set or is about to, and was not
					 * woken */
static int epfd = -1, wake_fd = -1;
static struct slot {
	struct dapl_watch *watch;
	uint32_t generation;
} *slots;
static uint32_t slot_count;
static struct dapl_timer *timers;	/* by due time */
static struct dapl_task *tasks, **tasks_end = &tasks;
static uint64_t tasks_queued, tasks_done, callbacks_done;
static const void *running;		/* the watch, timer or task whose callback runs */

/* Atomic: the thread that is in a round, which alone stores its own number here. 0: none. Not a variable of each
 * thread: the dynamic linker ends a process that has no memory for the first use of those. */
static pthread_t round_thread;

bool dapl_service_here(void)
{
	return __atomic_load_n(&round_thread, __ATOMIC_RELAXED) == pthread_self();
}

static bool is_service_thread(void)
{
	return started && pthread_equal(pthread_self(), thread);
}

/* Called with `lock` held. A loop that is awake needs no wake-up: it looks at tasks, timers and `stopping`
 * before it waits. The eventfd is watched edge-triggered, so it is never read. */
static void wake(void)
{
	uint64_t one = 1;

	if (!loop_blocked)
		return;
	loop_blocked = false;
	while (write(wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

/* Called with `lock` held. */
static void take_back(void)
{
	owner.blocked_thread = false;
	dapl_cond_broadcast(&owner_changed);
}

/* --- the loop; `lock` is held on entry and exit of each step --------------------- */

static void begin_round(void)
{
	in_round = true;
	__atomic_store_n(&round_thread, pthread_self(), __ATOMIC_RELAXED);
}

static void end_round(void)
{
	in_round = false;
	__atomic_store_n(&round_thread, 0, __ATOMIC_RELAXED);
	dapl_cond_broadcast(&idle);
}

static void returned(void)
{
	running = NULL;
	callbacks_done++;
	dapl_cond_broadcast(&idle);
}

/* A blocked thread stops when it is no longer the owner: the next task may run code of the consumer. */
static void run_tasks(bool is_service)
{
	struct dapl_task *task;

	while ((task = tasks) && (is_service || owner.blocked_thread)) {
		void (*run)(struct dapl_task *) = task->run;

		tasks = task->next;
		if (!tasks)
			tasks_end = &tasks;
		task->queued = false;
		running = task;
		dapl_mutex_unlock(&lock);
		run(task);	/* may free it */
		dapl_mutex_lock(&lock);
		tasks_done++;
		returned();
	}
}

static void unlink_timer(struct dapl_timer *timer)
{
	*timer->prev = timer->next;
	if (timer->next)
		timer->next->prev = timer->prev;
	timer->due_ns = 0;
}

static void run_timers(void)
{
	while (timers && timers->due_ns <= clock_now_ns()) {
		struct dapl_timer *timer = timers;
		void (*fire)(struct dapl_timer *) = timer->fire;

		unlink_timer(timer);
		running = timer;
		dapl_mutex_unlock(&lock);
		fire(timer);
		dapl_mutex_lock(&lock);
		returned();
	}
}

static void run_watch(uint64_t key)
{
	uint32_t slot = (uint32_t)key, generation = key >> 32;
	struct dapl_watch *watch;

	if (slot >= slot_count || slots[slot].generation != generation ||
	    !(watch = slots[slot].watch))
		return;
	running = watch;
	dapl_mutex_unlock(&lock);
	watch->ready(watch);
	dapl_mutex_lock(&lock);
	returned();
}

static int sleep_ms(void)
{
	uint64_t now, due;

	if (tasks)
		return 0;
	if (!timers)
		return -1;
	now = clock_now_ns();
	due = timers->due_ns;
	if (due <= now)
		return 0;
	due = (due - now + 999999) / 1000000;
	return due > 60000 ? 60000 : (int)due;
}

static void close_fds(void)
{
	if (epfd >= 0)
		close(epfd);
	if (wake_fd >= 0)
		close(wake_fd);
	epfd = wake_fd = -1;
}

/* Called with `lock` held, when the thread has left the loop. */
static void end(void)
{
	started = false;
	close_fds();
	free(slots);
	slots = NULL;
	slot_count = 0;
}

/* Waits for events for `ms` milliseconds; 0: looks. Returns their number. */
static int fetch(struct epoll_event *events, int ms)
{
	int n;

	loop_blocked = ms != 0;
	dapl_mutex_unlock(&lock);
	n = epoll_wait(epfd, events, EVENTS, ms);
	dapl_mutex_lock(&lock);
	loop_blocked = false;
	return n;
}

static int fetch_on_service_thread(struct epoll_event *events)
{
	int n;

	fetching = true;
	n = fetch(events, sleep_ms());
	fetching = false;
	dapl_cond_broadcast(&idle);
	return n;
}

/* Returns true if there was an event or a task. */
static bool handle(const struct epoll_event *events, int n, bool is_service)
{
	uint64_t before = callbacks_done;

	for (int i = 0; i < n; i++)
		if (events[i].data.u64 != UINT64_MAX)
			run_watch(events[i].data.u64);
	run_tasks(is_service);
	return callbacks_done != before;
}

/* A blocked thread is the owner. Returns when it is no more, when it is time to check that, or when a timer may be
 * due. */
static void wait_for_ownership(void)
{
	uint64_t now = clock_now_ns(), until = owner.lease_ns;

	if (timers && timers->due_ns < until)
		until = timers->due_ns;
	if (until > now)
		dapl_cond_wait_for(&owner_changed, &lock, until - now);
	loop_owner_check(&owner, clock_now_ns());
}

static void *loop(void *arg)
{
	struct epoll_event events[EVENTS];

	(void)arg;
	pthread_setname_np(pthread_self(), "dapl");
	dapl_mutex_lock(&lock);
	while (!stopping || tasks) {
		int n = 0;

		while (in_round)
			dapl_cond_wait(&idle, &lock);
		if (owner.blocked_thread)
			wait_for_ownership();
		else
			n = fetch_on_service_thread(events);
		if (in_round)
			continue;	/* a blocked thread is the owner, and n is 0 */
		begin_round();
		if (n || !owner.blocked_thread)
			handle(events, n, true);
		run_timers();
		end_round();
	}
	if (alone) {
		alone = false;
		pthread_detach(pthread_self());
		end();
	}
	dapl_mutex_unlock(&lock);
	return NULL;
}

/* --- start and stop ---------------------------------------------------------------- */

/* A child has no service thread and must not touch the descriptors that the parent watches: it forgets all
 * watches, and its next first user starts anew. */
static void forget_in_child(void)
{
	dapl_mutex_init(&users_lock, RANK_SERVICE_USERS);
	dapl_mutex_init(&lock, RANK_SERVICE);
	idle = (struct dapl_cond){ 0 };
	users = 0;
	started = stopping = alone = loop_blocked = false;
	owner = (struct loop_owner){ 0 };
	owner_changed = (struct dapl_cond){ 0 };
	in_round = fetching = false;
	round_thread = 0;
	close_fds();
	timers = NULL;
	tasks = NULL;
	tasks_end = &tasks;
	tasks_queued = tasks_done = callbacks_done = 0;
	running = NULL;
	free(slots);
	slots = NULL;
	slot_count = 0;
}

/* A thread that was about to end by itself goes on. Returns whether there is one. */
static bool continue_alone(void)
{
	bool continued;

	dapl_mutex_lock(&lock);
	continued = alone;
	if (alone)
		alone = stopping = false;
	dapl_mutex_unlock(&lock);
	return continued;
}

static int start(void)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = UINT64_MAX };
	sigset_t all, old;
	int err;

	if (continue_alone())
		return 0;
	epfd = epoll_create1(EPOLL_CLOEXEC);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (epfd < 0 || wake_fd < 0 || epoll_ctl(epfd, EPOLL_CTL_ADD, wake_fd, &event)) {
		err = errno;
		close_fds();
		return err;
	}
	stopping = false;
	owner = (struct loop_owner){ 0 };
	sigfillset(&all);	/* signals are for the program's threads */
	pthread_sigmask(SIG_BLOCK, &all, &old);
	dapl_mutex_lock(&lock);
	err = pthread_create(&thread, NULL, loop, NULL);
	started = !err;
	dapl_mutex_unlock(&lock);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		close_fds();
	return err;
}

static void watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_SERVICE, .child = forget_in_child };

	dapl_fork_register(&part);
}

int dapl_service_get(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int err = 0;

	pthread_once(&once, watch_forks);	/* before users_lock is taken */
	dapl_mutex_lock(&users_lock);
	if (!users)
		err = start();
	if (!err)
		users++;
	dapl_mutex_unlock(&users_lock);
	if (err)
		log_report(REPORT_NO_MEMORY, LOG_FIELDS(.err = err),
			   "cannot start the service thread: %s%s", strerror(err), err != EAGAIN ? "" :
			   " (no memory for its stack, or too many threads: ulimit -v, ulimit -u)");
	return err;
}

static void stop(void)
{
	bool own = is_service_thread();

	dapl_mutex_lock(&lock);
	stopping = true;
	alone = own;
	wake();
	take_back();
	dapl_mutex_unlock(&lock);
	if (own)
		return;
	pthread_join(thread, NULL);
	dapl_mutex_lock(&lock);
	end();
	dapl_mutex_unlock(&lock);
}

void dapl_service_put(void)
{
	dapl_mutex_lock(&users_lock);
	if (users > 0 && !--users)
		stop();
	dapl_mutex_unlock(&users_lock);
}

void dapl_service_abandon(void)
{
	struct timespec until;
	bool joinable;

	dapl_mutex_lock(&users_lock);
	users = 0;
	dapl_mutex_lock(&lock);
	stopping = true;
	joinable = started && !alone && !is_service_thread();
	if (started)
		wake();
	take_back();
	dapl_mutex_unlock(&lock);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (joinable)
		pthread_timedjoin_np(thread, NULL, &until);
	dapl_mutex_lock(&lock);
	started = false;
	dapl_cond_broadcast(&idle);
	dapl_mutex_unlock(&lock);
	dapl_mutex_unlock(&users_lock);
}

/* --- watches --------------------------------------------------------------------------- */

static int free_slot(uint32_t *slot)
{
	struct slot *more;

	for (uint32_t i = 0; i < slot_count; i++)
		if (!slots[i].watch) {
			*slot = i;
			return 0;
		}
	more = realloc(slots, (slot_count * 2 + 16) * sizeof *slots);
	if (!more)
		return ENOMEM;
	*slot = slot_count;
	memset(more + slot_count, 0, (slot_count + 16) * sizeof *more);
	slots = more;
	slot_count = slot_count * 2 + 16;
	return 0;
}

int dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	struct epoll_event event = { .events = EPOLLIN };
	uint32_t slot;
	int err;

	dapl_mutex_lock(&lock);
	err = free_slot(&slot);
	if (!err) {
		watch->fd = fd;
		watch->ready = ready;
		watch->slot = slot;
		event.data.u64 = (uint64_t)slots[slot].generation << 32 | slot;
		if (epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &event))
			err = errno;
		else
			slots[slot].watch = watch;
	}
	dapl_mutex_unlock(&lock);
	return err;
}

/* `lock` held. */
static void wait_returned(const void *what)
{
	assert_held(&lock);
	while (running == what && !dapl_service_here())
		dapl_cond_wait(&idle, &lock);
}

void dapl_watch_stop(struct dapl_watch *watch)
{
	dapl_mutex_lock(&lock);
	if (watch->slot < slot_count && slots[watch->slot].watch == watch) {
		epoll_ctl(epfd, EPOLL_CTL_DEL, watch->fd, NULL);
		slots[watch->slot].watch = NULL;
		slots[watch->slot].generation++;
		wait_returned(watch);
	}
	dapl_mutex_unlock(&lock);
}

/* --- timers ------------------------------------------------------------------------------ */

/* `lock` held. The first timer is new. */
static void wake_for_timer(void)
{
	if (!owner.blocked_thread)
		wake();
	else if (timers->due_ns < owner.lease_ns)
		dapl_cond_broadcast(&owner_changed);
}

void dapl_timer_start(struct dapl_timer *timer, uint64_t delay_us,
		      void (*fire)(struct dapl_timer *))
{
	struct dapl_timer **p = &timers;

	dapl_mutex_lock(&lock);
	if (timer->due_ns)
		unlink_timer(timer);
	timer->fire = fire;
	timer->due_ns = clock_now_ns() + delay_us * 1000;
	while (*p && (*p)->due_ns <= timer->due_ns)
		p = &(*p)->next;
	timer->next = *p;
	timer->prev = p;
	if (*p)
		(*p)->prev = &timer->next;
	*p = timer;
	if (timers == timer && !is_service_thread())
		wake_for_timer();
	dapl_mutex_unlock(&lock);
}

bool dapl_timer_stop(struct dapl_timer *timer)
{
	bool stopped;

	dapl_mutex_lock(&lock);
	stopped = timer->due_ns != 0;
	if (stopped)
		unlink_timer(timer);
	dapl_mutex_unlock(&lock);
	return stopped;
}

void dapl_timer_drain(struct dapl_timer *timer)
{
	dapl_mutex_lock(&lock);
	do {	/* the callback may have started the timer again */
		if (timer->due_ns)
			unlink_timer(timer);
		wait_returned(timer);
	} while (timer->due_ns);
	dapl_mutex_unlock(&lock);
}

/* --- tasks --------------------------------------------------------------------------------- */

void dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *))
{
	dapl_mutex_lock(&lock);
	if (!task->queued) {
		task->run = run;
		task->queued = true;
		task->next = NULL;
		*tasks_end = task;
		tasks_end = &task->next;
		tasks_queued++;
		if (task->runs_consumer) {
			owner.fixed = true;
			take_back();
		}
		if (started)
			wake();
	}
	dapl_mutex_unlock(&lock);
}

void dapl_service_flush(void)
{
	uint64_t goal, returned;

	if (!started || dapl_service_here())
		return;
	assert_no_lock_held();
	dapl_mutex_lock(&lock);
	take_back();
	goal = tasks_queued;
	returned = callbacks_done + (running != NULL);	/* the next callback may already run when this
							 * thread looks */
	while (started && (tasks_done < goal || callbacks_done < returned))
		dapl_cond_wait(&idle, &lock);
	dapl_mutex_unlock(&lock);
}

/* --- blocked threads ----------------------------------------------------------------------- */

/* `lock` held. The service thread is not in epoll_wait afterwards. Returns false if the caller is not the owner:
 * another thread may have taken the loop back. */
static bool take_over(void)
{
	wake();
	while (owner.blocked_thread && fetching)
		dapl_cond_wait(&idle, &lock);
	owner.watched = owner.blocked_thread;
	return owner.blocked_thread;
}

/* `lock` held. The caller is about to watch the epoll set. */
static void watch_loop(void)
{
	loop_blocked = true;
	if (tasks)
		wake();
}

int dapl_service_block(void)
{
	int fd = -1;

	dapl_mutex_lock(&lock);
	if (loop_owner_block(&owner, clock_now_ns()) && take_over()) {
		watch_loop();
		fd = epfd;
	}
	dapl_mutex_unlock(&lock);
	return fd;
}

bool dapl_service_work(void)
{
	struct epoll_event events[EVENTS];
	bool owns;

	dapl_mutex_lock(&lock);
	while (owner.blocked_thread && in_round)
		dapl_cond_wait(&idle, &lock);
	if (owner.blocked_thread) {
		begin_round();
		owner.rounds += handle(events, fetch(events, 0), false);
		end_round();
	}
	owns = owner.blocked_thread;
	if (owns)
		watch_loop();
	else
		owner.watched = false;
	dapl_mutex_unlock(&lock);
	return owns;
}

void dapl_service_awake(bool watched)
{
	dapl_mutex_lock(&lock);
	if (watched && owner.blocked_thread)
		loop_blocked = false;
	loop_owner_awake(&owner, watched);
	if (!owner.blocked_thread)
		dapl_cond_broadcast(&owner_changed);
	dapl_mutex_unlock(&lock);
}

void dapl_service_woke(void)
{
	if (!is_service_thread())
		return;
	dapl_mutex_lock(&lock);
	loop_owner_woke(&owner, clock_now_ns());
	dapl_mutex_unlock(&lock);
}
