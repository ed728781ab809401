/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapter.c - see adapter.h. */
#include "adapter.h"
#include "../call.h"
#include "../cli.h"
#include "../ia_choice.h"
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
	/* events taken before signals and the time are checked, even if more events are queued */
	BURST = 64,
	/* completions of a receive and four requests, and as many flushed when the connection ends */
	EVENTS_OF_PEER = 10,
};

static int open_signals(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fail("signalfd: %m");
	return fd;
}

static void find_attributes(struct adapter *a)
{
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR ia;
	const struct sockaddr *own;

	good(dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider),
	     "dat_ia_query");
	own = (const struct sockaddr *)ia.ia_address_ptr;
	memcpy(&a->address, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
	a->read_sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	if (provider.rdma_write_for_rdma_read_req)
		a->read_sink |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
}

static DAT_EVD_HANDLE create_evd(struct adapter *a, DAT_COUNT length, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	good_call(dat_evd_create(a->ia, length, a->cno, flags, &evd), "dat_evd_create");
	return evd;
}

void adapter_open(struct adapter *a, const char *name, DAT_COUNT peers)
{
	*a = (struct adapter){ .name = ia_choose("-D", name), .signal_fd = open_signals() };
	open_ia(a->name, &a->async, &a->ia);
	find_attributes(a);
	good_call(dat_pz_create(a->ia, &a->pz), "dat_pz_create");
	good_call(dat_cno_fd_create(a->ia, &a->cno_fd, &a->cno), "dat_cno_fd_create");
	a->cr = create_evd(a, peers, DAT_EVD_CR_FLAG);
	a->conn = create_evd(a, peers * 2, DAT_EVD_CONNECTION_FLAG);
	a->dto = create_evd(a, peers * EVENTS_OF_PEER, DAT_EVD_DTO_FLAG);
}

void adapter_close(struct adapter *a)
{
	good(dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	close(a->signal_fd);
}

static bool take_event(struct adapter *a, DAT_EVENT *event)
{
	const DAT_EVD_HANDLE evds[] = { a->dto, a->conn, a->cr };

	for (size_t i = 0; i < sizeof evds / sizeof *evds; i++) {
		DAT_RETURN rc = dat_evd_dequeue(evds[i], event);

		if (rc == DAT_SUCCESS)
			return true;
		if (DAT_GET_TYPE(rc) != DAT_QUEUE_EMPTY)
			good(rc, "dat_evd_dequeue");
	}
	return false;
}

/* Milliseconds for poll(), rounded up. */
static int time_left(double until)
{
	double left = (until - now()) * 1000 + 1;

	if (!until)
		return -1;
	return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

enum arrival adapter_next(struct adapter *a, double until, DAT_EVENT *event)
{
	struct pollfd fds[] = { { .fd = a->cno_fd, .events = POLLIN },
				{ .fd = a->signal_fd, .events = POLLIN } };
	DAT_EVD_HANDLE triggered;

	for (;;) {
		bool busy = a->burst == BURST;

		if (!busy && take_event(a, event)) {
			a->burst++;
			return ARRIVED_EVENT;
		}
		a->burst = 0;
		if (until && now() >= until)
			return ARRIVED_LATE;
		if (poll(fds, 2, busy ? 0 : time_left(until)) < 0 && errno != EINTR)
			fail("poll: %m");
		if (fds[1].revents)
			return ARRIVED_SIGNAL;
		/* reset the descriptor; the EVDs are read after it */
		while (fds[0].revents && dat_cno_trigger(a->cno, &triggered) == DAT_SUCCESS &&
		       triggered)
			;
	}
}
