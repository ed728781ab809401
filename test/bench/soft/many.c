/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* many.c - rows of many connections, and of many pairs of processes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include "many.h"
#include "plain.h"
#include "rounds.h"
#include "side.h"
#include "two.h"

enum {
	AT_ONCE = 32,	/* connections that are made at once */
	BATCH = 256,	/* connections between two looks at the clock */
};

/* --- DAT: connections, in one process ------------------------------------------------------------ */

static DAT_EP_HANDLE *eps;

static void want_files(void)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void create(DAT_EP_HANDLE *new)
{
	good(dat_ep_create(ia, pz, evd, evd, conn_evd, NULL, new), "dat_ep_create");
}

static long resident(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

/* Handles events until both ends of n connections have seen `number`. */
static void both_ends(DAT_EVENT_NUMBER number, int n)
{
	static int accepted;
	int seen = 0;

	accepted = 0;
	while (seen < 2 * n) {
		DAT_EVENT event;
		DAT_COUNT more;

		good(dat_evd_wait(conn_evd, 20000000, 1, &event, &more), "dat_evd_wait");
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
			good(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					   eps[n + accepted++], 0, NULL), "dat_cr_accept");
		else if (event.event_number == number)
			seen++;
		else
			fail("connection", "not the event that was expected");
	}
}

static void up(int n)
{
	for (int i = 0; i < n; i++)
		connect_ep(eps[i]);
	both_ends(DAT_CONNECTION_EVENT_ESTABLISHED, n);
}

static void down(int n)
{
	for (int i = 0; i < n; i++)
		good(dat_ep_disconnect(eps[i], DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
	both_ends(DAT_CONNECTION_EVENT_DISCONNECTED, n);
	for (int i = 0; i < 2 * n; i++)
		good(dat_ep_reset(eps[i]), "dat_ep_reset");
}

static void up_and_down(int n)
{
	up(n);
	down(n);
}

/* Connections a second of one batch. */
static double speed(void (*connect)(int at_once), int at_once)
{
	double begin = now();

	for (int i = 0; i < BATCH / at_once; i++)
		connect(at_once);
	return BATCH / at_once * at_once / (now() - begin);
}

/* DAT, and the kernel's TCP alone in turn with it: the limit. */
static void connection_rate(int at_once)
{
	double dat[STREAMS], tcp[STREAMS], begin = now();
	int batches = 0;
	char what[80];

	for (; batches < STREAMS && now() - begin < ROW_S; batches++) {
		dat[batches] = speed(up_and_down, at_once);
		tcp[batches] = speed(tcp_connections, at_once);
	}
	snprintf(what, sizeof what, "connect and disconnect, %d at once", at_once);
	report(what, median(dat, batches), "/s");
	snprintf(what, sizeof what, "TCP alone: connect, accept, close, %d at once", at_once);
	report(what, median(tcp, batches), "/s");
}

int connections(const char *name, int n)
{
	DAT_PSP_HANDLE psp;
	double took;
	char what[80];
	long before;

	if (n < AT_ONCE)
		n = AT_ONCE;
	shared = calloc(1, sizeof *shared);
	alarm(GIVE_UP_S);
	want_files();
	open_ia(name, 4 * n + 64);
	listen_any(&psp);
	eps = calloc(2 * n, sizeof *eps);
	for (int i = 0; i < 2 * n; i++)
		create(&eps[i]);
	connection_rate(1);
	connection_rate(AT_ONCE);
	before = resident();
	took = now();
	up(n);
	took = now() - took;
	snprintf(what, sizeof what, "%d endpoints connected to as many", n);
	report(what, took, "s");
	report("resident memory of a connected endpoint", (resident() - before) / (2.0 * n) / 1024,
	       "KiB");
	good(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	return 0;
}

/* --- DAT: many connections between two processes --------------------------------------------- */

static unsigned eps_used;

static void turn_round(uint64_t n)
{
	ep = eps[n % eps_used];
	send_round(n);
}

/* The other end may ask for the next connection before this one is told here. */
static void accept_all(int n)
{
	for (int taken = 0, is_up = 0; is_up < n;) {
		DAT_EVENT event;
		DAT_COUNT more;

		good(dat_evd_wait(conn_evd, 20000000, 1, &event, &more), "dat_evd_wait");
		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
			good(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					   eps[taken++], 0, NULL), "dat_cr_accept");
		else if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			is_up++;
		else
			fail("connection", "not the event that was expected");
	}
}

/* Side 0 connects its endpoints, one after the other, to those of side 1. */
static void connect_to_other(int n)
{
	eps = calloc(n, sizeof *eps);
	for (int i = 0; i < n; i++) {
		create(&eps[i]);
		ep = eps[i];
		post_receive();
		post_receive();
	}
	together();
	if (me)
		accept_all(n);
	for (int i = 0; !me && i < n; i++) {
		connect_ep(eps[i]);
		wait_for(DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	together();
}

static void in_turn(const char *what, unsigned n, int rounds)
{
	finish();
	eps_used = n;
	ping_pong(what, turn_round, rounds);
	finish();
}

int endpoints(const char *name, int n)
{
	pid_t child = split();
	DAT_PSP_HANDLE psp;
	char what[80];

	n = n < 1 ? 1 : n;
	want_files();
	open_ia(name, 4 * n + 64);
	register_memory();
	if (me)
		listen_any(&psp);
	together();
	connect_to_other(n);
	size = SMALL;
	snprintf(what, sizeof what, "send 8 B over one of %d endpoints", n);
	in_turn(what, 1, ROUNDS);
	snprintf(what, sizeof what, "send 8 B over all %d in turn", n);
	in_turn(what, n, ROUNDS);
	good(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	return join(child);
}

/* --- DAT: many pairs of processes ------------------------------------------------------------ */

/* Round trips a second, of this pair, in shared->target[0]. */
static void pair_of_many(const char *name)
{
	DAT_PSP_HANDLE psp;
	uint64_t n = 0;
	double begin;

	open_ia(name, 64);
	register_memory();
	if (me)
		listen_any(&psp);
	together();
	connect_to_other(1);
	size = SMALL;
	begin = now();
	if (!me)
		__atomic_store_n(&shared->last, UINT64_MAX, __ATOMIC_RELEASE);
	together();
	while (n != __atomic_load_n(&shared->last, __ATOMIC_ACQUIRE)) {
		if (!me && !(n % 16) && now() - begin > 2)
			__atomic_store_n(&shared->last, n + 1, __ATOMIC_RELEASE);
		send_round(++n);
	}
	finish();
	if (!me)
		shared->target[0] = n / (now() - begin);
	good(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	exit(0);
}

int processes(const char *name, int n)
{
	struct shared *all = share(n = n < 1 ? 1 : n);
	int status, failed = 0;
	double sum = 0;
	char what[80];

	for (int i = 0; i < 2 * n; i++) {
		shared = &all[i / 2];
		me = i % 2;
		switch (fork()) {
		case -1:
			fail("fork", strerror(errno));
			break;
		case 0:
			alarm(GIVE_UP_S);
			settle_on_processor();
			pair_of_many(name);
		}
	}
	while (wait(&status) > 0)
		failed |= status;
	for (int i = 0; i < n; i++)
		sum += all[i].target[0];
	me = 0;
	snprintf(what, sizeof what, "round trips of %d pairs of processes", n);
	report(what, sum / 1e6, "million/s");
	return failed != 0;
}
