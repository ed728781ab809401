/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* loop.c - see loop.h. */
#include "tools/sock/loop.h"
#include <sys/epoll.h>
#include <time.h>

enum { EVENTS = 64 };

static int epoll = -1;
static bool ended, anew, soon;
static uint64_t now;

static uint64_t read_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

bool loop_open(void)
{
	epoll = epoll_create1(EPOLL_CLOEXEC);
	now = read_clock();
	return epoll >= 0;
}

static bool control(int op, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = { events, { .ptr = watch } };

	return !epoll_ctl(epoll, op, watch->fd, &event);
}

bool loop_add(struct loop_watch *watch)
{
	return control(EPOLL_CTL_ADD, watch, EPOLLIN);
}

void loop_pause(struct loop_watch *watch, bool paused)
{
	/* Events of EPOLLHUP cannot be switched off otherwise. */
	control(paused ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, watch, EPOLLIN);
}

void loop_remove(struct loop_watch *watch)
{
	control(EPOLL_CTL_DEL, watch, 0);
}

void loop_soon(void)
{
	soon = true;
}

void loop_start_anew(void)
{
	anew = true;
}

uint64_t loop_now_ms(void)
{
	return now;
}

void loop_run(bool (*tick)(void))
{
	while (!ended) {
		struct epoll_event events[EVENTS];
		bool waits = tick();
		int n = epoll_wait(epoll, events, EVENTS, soon ? 0 : waits ? LOOP_TICK_MS : -1);

		now = read_clock();
		anew = soon = false;
		for (int i = 0; i < n && !anew; i++) {
			struct loop_watch *watch = events[i].data.ptr;

			watch->ready(watch);
		}
	}
}

void loop_end(void)
{
	ended = true;
}
