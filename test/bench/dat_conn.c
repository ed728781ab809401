/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_conn.c - connections a second, through the public DAT API.
 *
 *   dat_conn server IA PORT AT-ONCE ROUNDS
 *   dat_conn client IA PORT AT-ONCE ROUNDS ADDR
 *
 * A round is BATCH connections one after the other on one endpoint, then AT-ONCE
 * endpoints together: connect, wait for all, disconnect, wait for all, renew. The
 * client prints the medians of both, in connections a second. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <dat/udat.h>

enum { BATCH = 20, MAX = 256, WAIT = 20 * 1000 * 1000 };

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, evd, dto_evd;
static DAT_PZ_HANDLE pz;
static DAT_EP_HANDLE eps[MAX];

static void fail(const char *what, const char *why, const char *more)
{
	fprintf(stderr, "dat_conn: %s: %s %s\n", what, why, more);
	exit(1);
}

static void good(DAT_RETURN rc, const char *what)
{
	const char *major = "?", *minor = "?";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail(what, major, minor);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void create(DAT_EP_HANDLE *ep)
{
	good(dat_ep_create(ia, pz, dto_evd, dto_evd, evd, NULL, ep), "dat_ep_create");
}

/* Not dat_ep_reset: the stock library corrupts its heap when it's reset often. */
static void renew(DAT_EP_HANDLE *ep)
{
	good(dat_ep_free(*ep), "dat_ep_free");
	create(ep);
}

static void setup(const char *name, int n)
{
	good(dat_ia_open((char *)name, 8, &async_evd, &ia), "dat_ia_open");
	good(dat_pz_create(ia, &pz), "dat_pz_create");
	good(dat_evd_create(ia, 4 * MAX, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			    &evd), "dat_evd_create");
	good(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto_evd), "dat_evd_create");
	for (int i = 0; i < n; i++)
		create(&eps[i]);
}

static DAT_EVENT next_event(void)
{
	DAT_EVENT e;
	DAT_COUNT more;

	good(dat_evd_wait(evd, WAIT, 1, &e, &more), "dat_evd_wait");
	return e;
}

/* --- the server: an endpoint of the pool for each request, back when disconnected --- */

static void serve(int port, int n, int total)
{
	DAT_PSP_HANDLE psp;
	int idle = n;

	good(dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
	puts("ready");
	fflush(stdout);
	while (total) {
		DAT_EVENT e = next_event();
		DAT_EP_HANDLE ep = e.event_data.connect_event_data.ep_handle;

		switch (e.event_number) {
		case DAT_CONNECTION_REQUEST_EVENT:
			if (!idle)
				fail("server", "no endpoint is idle", "");
			good(dat_cr_accept(e.event_data.cr_arrival_event_data.cr_handle, eps[--idle], 0, NULL),
			     "dat_cr_accept");
			break;
		case DAT_CONNECTION_EVENT_ESTABLISHED:
			break;
		case DAT_CONNECTION_EVENT_DISCONNECTED:
			renew(&ep);
			eps[idle++] = ep;
			total--;
			break;
		default:
			fprintf(stderr, "dat_conn: server: event 0x%x\n", e.event_number);
			exit(1);
		}
	}
}

/* --- the client -------------------------------------------------------------- */

static void expect(DAT_EVENT_NUMBER number, int n)
{
	while (n--) {
		DAT_EVENT e = next_event();

		if (e.event_number != number) {
			fprintf(stderr, "dat_conn: client: event 0x%x, expected 0x%x\n", e.event_number,
				number);
			exit(1);
		}
	}
}

/* Seconds to connect, disconnect and renew n endpoints together. */
static double round_of(int n, struct sockaddr_in *to, int port)
{
	double start = now();

	for (int i = 0; i < n; i++)
		good(dat_ep_connect(eps[i], (DAT_IA_ADDRESS_PTR)to, port, WAIT, 0, NULL,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), "dat_ep_connect");
	expect(DAT_CONNECTION_EVENT_ESTABLISHED, n);
	for (int i = 0; i < n; i++)
		good(dat_ep_disconnect(eps[i], DAT_CLOSE_ABRUPT_FLAG), "dat_ep_disconnect");
	expect(DAT_CONNECTION_EVENT_DISCONNECTED, n);
	for (int i = 0; i < n; i++)
		renew(&eps[i]);
	return now() - start;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v, int n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

static void measure(const char *addr, int port, int n, int rounds)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	double *one = calloc(rounds, sizeof *one), *many = calloc(rounds, sizeof *many);

	inet_pton(AF_INET, addr, &to.sin_addr);
	for (int r = 0; r < rounds; r++) {
		double took = 0;

		for (int i = 0; i < BATCH; i++)
			took += round_of(1, &to, port);
		one[r] = BATCH / took;
		many[r] = n / round_of(n, &to, port);
	}
	printf("%.1f %.1f\n", median(one, rounds), median(many, rounds));
	free(one);
	free(many);
}

int main(int argc, char **argv)
{
	int client = argc == 7, port, n, rounds;

	if (argc != 6 && argc != 7)
		fail("usage", "see the first comment", "");
	port = atoi(argv[3]), n = atoi(argv[4]), rounds = atoi(argv[5]);
	if (n < 1 || n > MAX / 2 || rounds < 1)
		fail("usage", "AT-ONCE is 1 to 128, ROUNDS at least 1", "");
	/* The server's endpoints come back a little later than the client asks again. */
	setup(argv[2], client ? n : 2 * n);
	if (client)
		measure(argv[6], port, n, rounds);
	else
		serve(port, 2 * n, rounds * (BATCH + n));
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return 0;
}
