/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lost_channel.c - the device's completion channel can no longer be read, as after its removal. A thread
 * that waits for an EVD, in whatever way, gets an error and does not loop without end. faults.c makes every
 * other call fail. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"
#include "runs.h"
#include "test/life/life.h"

static struct session *open_session(void)
{
	struct session *s = malloc(sizeof *s);

	life_entry(LIFE_IA, provider_path(), "lo 0");
	OK(session_open(s, MOMENT));
	EXPECT(session_exchange(s, 1));
	return s;
}

/* Posts a request that the device takes. All later operations of the device fail. */
static void send_the_last(struct session *s)
{
	DAT_LMR_TRIPLET in = { .lmr_context = s->b.local, .segment_length = 64,
			       .virtual_address = (uintptr_t)s->b.memory };
	DAT_LMR_TRIPLET out = { .lmr_context = s->a.local, .segment_length = 64,
				.virtual_address = (uintptr_t)s->a.memory };
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };

	OK(dat_ep_post_recv(s->b.ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	fault_arm(FAULT_DEVICE, 2, true);
	OK(dat_ep_post_send(s->a.ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

/* The error is reported once, on the IA's asynchronous EVD. The EVD itself can still be polled. */
static void expect_told(struct session *s)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *error;
	DAT_EVENT event;

	OK(await(s->async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, MOMENT, &event));
	error = &event.event_data.asynch_error_event_data;
	EXPECT(error->dat_handle == s->b.recv && error->reason == DAT_EVD_OTHER_ERROR);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(s->async, &event)) == DAT_QUEUE_EMPTY);
}

static void expect_polled(struct session *s)
{
	DAT_EVENT event;

	OK(await(s->b.recv, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
	EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == 5);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(s->b.recv, &event)) == DAT_QUEUE_EMPTY);
}

static void finish(struct session *s)
{
	fault_disarm();
	OK(session_close(s));
	free(s);
}

/* The process uses no processor time while nothing happens: no thread loops. */
static void expect_rest(void)
{
	struct timespec before, after;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	usleep(300000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	EXPECT((after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec < 150e6);
}

/* --- dat_evd_wait -------------------------------------------------------------------------- */

struct waiter {
	pthread_t thread;
	pid_t tid;
	DAT_EVD_HANDLE evd, found;
	DAT_CNO_HANDLE cno;
	DAT_RETURN ret;
	DAT_EVENT event;
	DAT_COUNT more;
};

static void *wait_for_event(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->ret = dat_evd_wait(w->evd, DAT_TIMEOUT_INFINITE, 2, &w->event, &w->more);
	return NULL;
}

/* Returns whether a thread of this process sleeps, perhaps for a moment only: call it several times. */
static bool thread_is_asleep(pid_t tid)
{
	char path[64], text[300] = "";
	const char *state;
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "re");
	if (!file)
		return false;
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
	state = strrchr(text, ')');	/* the state is a letter behind the name, which is in parentheses */
	return state && state[1] && state[2] == 'S';
}

/* Returns when the thread was asleep five times in a row: it may sleep for a moment before it sleeps in the
 * wait. */
static void start_waiter(struct waiter *w, void *(*wait)(void *))
{
	EXPECT(!pthread_create(&w->thread, NULL, wait, w));
	for (int looks = 0; looks < 5;) {
		pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);

		usleep(20000);
		looks = tid && thread_is_asleep(tid) ? looks + 1 : 0;
	}
}

/* The thread waits for two events and gets one, so it would sleep again. */
static void a_wait_without_limit_ends(void)
{
	struct session *s = open_session();
	struct waiter w = { .evd = s->b.recv };

	start_waiter(&w, wait_for_event);
	send_the_last(s);
	EXPECT(!pthread_join(w.thread, NULL));
	EXPECT(DAT_GET_TYPE(w.ret) == DAT_INTERNAL_ERROR && w.more == 1);
	expect_told(s);
	finish(s);
}

/* A wait returns the event that is there. The next wait, which could not be woken, fails. */
static void a_later_wait_gives_what_there_is(void)
{
	struct session *s = open_session();
	struct waiter w = { .evd = s->b.recv };
	DAT_EVENT event;
	DAT_COUNT more;

	start_waiter(&w, wait_for_event);
	send_the_last(s);
	EXPECT(!pthread_join(w.thread, NULL));
	OK(dat_evd_wait(s->b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == 5);
	EXPECT(DAT_GET_TYPE(dat_evd_wait(s->b.recv, DAT_TIMEOUT_INFINITE, 1, &event, &more)) ==
	       DAT_INTERNAL_ERROR);
	EXPECT(DAT_GET_TYPE(dat_evd_wait(s->b.recv, 0, 1, &event, &more)) == DAT_TIMEOUT_EXPIRED);
	finish(s);
}

/* --- CNOs ----------------------------------------------------------------------------------- */

static void *wait_for_trigger(void *arg)
{
	struct waiter *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	w->ret = dat_cno_wait(w->cno, DAT_TIMEOUT_INFINITE, &w->found);
	return NULL;
}

static void waiter_of_a_cno_gets_the_error(void)
{
	static const DAT_OS_WAIT_PROXY_AGENT none;
	struct session *s = open_session();
	struct waiter w = { .evd = s->b.recv };
	DAT_EVD_HANDLE evd;

	OK(dat_cno_create(s->ia, none, &w.cno));
	OK(dat_evd_modify_cno(s->b.recv, w.cno));
	start_waiter(&w, wait_for_trigger);
	send_the_last(s);
	EXPECT(!pthread_join(w.thread, NULL));
	EXPECT(DAT_GET_TYPE(w.ret) == DAT_INTERNAL_ERROR && w.found == s->b.recv);
	expect_told(s);
	expect_polled(s);
	EXPECT(DAT_GET_TYPE(dat_cno_wait(w.cno, 10000, &evd)) == DAT_QUEUE_EMPTY);
	finish(s);
}

/* The service thread reads the channel here. */
static void a_descriptor_becomes_readable(void)
{
	struct session *s = open_session();
	struct pollfd fd = { .events = POLLIN };
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE evd;

	OK(dat_cno_fd_create(s->ia, &fd.fd, &cno));
	OK(dat_evd_modify_cno(s->b.recv, cno));
	send_the_last(s);
	EXPECT(poll(&fd, 1, MOMENT / 1000) == 1);
	EXPECT(DAT_GET_TYPE(dat_cno_wait(cno, 0, &evd)) == DAT_INTERNAL_ERROR && evd == s->b.recv);
	expect_told(s);
	expect_polled(s);
	EXPECT(!poll(&fd, 1, 10));
	expect_rest();
	finish(s);
}

static const struct life_case cases[] = {
	CASE(a_wait_without_limit_ends),
	CASE(a_later_wait_gives_what_there_is),
	CASE(waiter_of_a_cno_gets_the_error),
	CASE(a_descriptor_becomes_readable),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
