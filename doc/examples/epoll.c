/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoll.c - DAT events in a program that lives in an epoll loop: the server waits for
 * connection requests, messages and a timer with one epoll_wait(). Shows a CNO with a file
 * descriptor, dat_cno_trigger(), and draining. See side.h for the arguments.
 *
 *	cc -D_GNU_SOURCE -o epoll epoll.c side.c -ldat2 */
#include "side.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MESSAGES = 5, SIZE = 64, TICK_MS = 100, LAST_TICK = 100 };

static char buffers[MESSAGES][SIZE];

static void post_receives(const struct side *side, const struct memory *memory)
{
	for (int i = 0; i < MESSAGES; i++) {
		DAT_LMR_TRIPLET into = segment(memory, (size_t)i * SIZE, SIZE);

		CHECK(dat_ep_post_recv(side->ep, 1, &into,
				       (DAT_DTO_COOKIE){ .as_64 = (DAT_UINT64)i },
				       DAT_COMPLETION_DEFAULT_FLAG));
	}
}

static bool handle(struct side *side, const DAT_EVENT *event)
{
	switch (event->event_number) {
	case DAT_CONNECTION_REQUEST_EVENT:
		CHECK(dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, side->ep, 0,
				    NULL));
		return true;
	case DAT_CONNECTION_EVENT_ESTABLISHED: puts("connected"); return true;
	case DAT_DTO_COMPLETION_EVENT:
		if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
			printf("received \"%s\"\n",
			       buffers[event->event_data.dto_completion_event_data.user_cookie
					       .as_64]);
		return true;
	case DAT_CONNECTION_EVENT_DISCONNECTED: puts("disconnected"); return false;
	default: fprintf(stderr, "found event 0x%x\n", event->event_number); exit(1);
	}
}

/* Reading an EVD until it is empty lets its next event trigger the CNO again. */
static bool drain(struct side *side, DAT_CNO_HANDLE cno)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	while (dat_cno_trigger(cno, &evd) == DAT_SUCCESS && evd != DAT_HANDLE_NULL)
		while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS)
			if (!handle(side, &event))
				return false;
	return true;
}

static int new_epoll(int cno_fd, int timer)
{
	struct epoll_event on_cno = { .events = EPOLLIN, .data.fd = cno_fd };
	struct epoll_event on_timer = { .events = EPOLLIN, .data.fd = timer };
	struct itimerspec tick = { .it_interval.tv_nsec = TICK_MS * 1000000L,
				   .it_value.tv_nsec = TICK_MS * 1000000L };
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || timerfd_settime(timer, 0, &tick, NULL) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, cno_fd, &on_cno) ||
	    epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &on_timer)) {
		perror("epoll");
		exit(1);
	}
	return epoll;
}

static void serve(struct side *side, const struct memory *memory)
{
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), epoll;
	unsigned long long ticks = 0, expired;
	DAT_CNO_HANDLE cno;
	DAT_FD cno_fd;

	CHECK(dat_cno_fd_create(side->ia, &cno_fd, &cno));
	CHECK(dat_evd_modify_cno(side->requests_of_peers, cno));
	CHECK(dat_evd_modify_cno(side->connection, cno));
	CHECK(dat_evd_modify_cno(side->receives, cno));
	epoll = new_epoll(cno_fd, timer);
	post_receives(side, memory);
	side_listen(side, side->requests_of_peers);
	for (bool more = true; more && ticks < LAST_TICK;) {
		struct epoll_event ready;

		if (epoll_wait(epoll, &ready, 1, -1) != 1)
			continue;
		if (ready.data.fd == cno_fd)
			more = drain(side, cno);
		else if (read(timer, &expired, sizeof expired) == sizeof expired)
			ticks += expired;
	}
	close(epoll);
	close(timer);
	if (ticks >= LAST_TICK)
		exit(1);
}

static void send_messages(struct side *side, const struct memory *memory)
{
	side_connect(side, NULL, NULL, 0);
	for (int i = 0; i < MESSAGES; i++) {
		DAT_LMR_TRIPLET from = segment(memory, (size_t)i * SIZE, SIZE);

		snprintf(buffers[i], SIZE, "message %d", i);
		CHECK(dat_ep_post_send(side->ep, 1, &from, (DAT_DTO_COOKIE){ 0 },
				       DAT_COMPLETION_DEFAULT_FLAG));
		wait_for_completion(side->requests);
		usleep(20000);
	}
	side_close(side);
}

int main(int argc, char **argv)
{
	struct memory memory;
	struct side side;

	side_open(&side, argc, argv);
	memory = register_memory(&side, buffers, sizeof buffers);
	if (side.address) {
		send_messages(&side, &memory);
		return 0;
	}
	serve(&side, &memory);
	CHECK(dat_ia_close(side.ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
