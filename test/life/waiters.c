/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiters.c - a thread that blocks in dat_evd_wait or dat_cno_wait drives the progress of the device itself:
 * events for it do not wake the service thread. The peer of data is another process; that of connections is
 * the same. */
#include "life.h"
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MESSAGES = 60, PAUSE_US = 3000, LENGTH = 8, AHEAD = 4 };

/* One process's part of the connection. */
struct part {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn, dto;
	DAT_CNO_HANDLE cno;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_LMR_CONTEXT lmr;
	char memory[LENGTH];
};

static void open_part(struct part *p, bool for_cno)
{
	DAT_REGION_DESCRIPTION region = { .for_va = p->memory };
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rmr;

	p->async = DAT_HANDLE_NULL;
	p->cno = DAT_HANDLE_NULL;
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &p->async, &p->ia));
	if (for_cno)
		OK(dat_cno_create(p->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &p->cno));
	OK(dat_pz_create(p->ia, &p->pz));
	OK(dat_evd_create(p->ia, 2 * MESSAGES, p->cno, DAT_EVD_DTO_FLAG, &p->dto));
	OK(dat_evd_create(p->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG,
			  &p->conn));
	OK(dat_lmr_create(p->ia, DAT_MEM_TYPE_VIRTUAL, region, LENGTH, p->pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &p->lmr, &rmr, NULL, NULL));
	OK(dat_ep_create(p->ia, p->pz, p->dto, p->dto, p->conn, NULL, &p->ep));
}

static void post(struct part *p, bool receive)
{
	DAT_LMR_TRIPLET all = { .lmr_context = p->lmr, .segment_length = LENGTH,
		.virtual_address = (uintptr_t)p->memory };
	DAT_DTO_COOKIE cookie = { .as_64 = receive };

	OK((receive ? dat_ep_post_recv : dat_ep_post_send)(p->ep, 1, &all, cookie,
							   DAT_COMPLETION_DEFAULT_FLAG));
}

/* The peer sends with pauses, so that the other process sleeps before each message. */
static void send_all(int from)
{
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;
	DAT_EVENT event;
	struct part p;

	EXPECT(read(from, &qual, sizeof qual) == sizeof qual);
	open_part(&p, false);
	OK(dat_ia_query(p.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	OK(dat_ep_connect(p.ep, attr.ia_address_ptr, qual, MOMENT, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	OK(await(p.conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT, &event));
	for (int i = 0; i < MESSAGES; i++) {
		usleep(PAUSE_US);
		post(&p, false);
		OK(await(p.dto, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
	}
	OK(await(p.conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, &event));
	OK(dat_ia_close(p.ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Returns how often the provider's threads went to sleep. */
static long sleeps_of_provider(void)
{
	DIR *dir = opendir("/proc/self/task");
	char path[300], line[200];
	struct dirent *entry;
	long n, sum = 0;

	EXPECT(dir);
	while ((entry = readdir(dir))) {
		bool provider = false;
		FILE *f;

		snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
		if (entry->d_name[0] == '.' || !(f = fopen(path, "r")))
			continue;
		while (fgets(line, sizeof line, f)) {
			provider |= !strcmp(line, "Name:\tdapl\n");
			if (provider && sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
		}
		fclose(f);
	}
	closedir(dir);
	return sum;
}

static void wait_for_event(struct part *p, DAT_EVENT *event)
{
	DAT_EVD_HANDLE evd;

	if (p->cno == DAT_HANDLE_NULL) {
		OK(await(p->dto, DAT_DTO_COMPLETION_EVENT, MOMENT, event));
		return;
	}
	while (dat_evd_dequeue(p->dto, event) != DAT_SUCCESS)
		OK(dat_cno_wait(p->cno, MOMENT, &evd));
}

static void accept_peer(struct part *p)
{
	DAT_EVENT event;

	OK(await(p->conn, DAT_CONNECTION_REQUEST_EVENT, MOMENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, p->ep, 0, NULL));
	OK(await(p->conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT, &event));
}

/* Forks the peer, which ends with this process. */
static pid_t start_peer(int *tell)
{
	int ends[2];
	pid_t pid;

	EXPECT(!pipe(ends));
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[1]);
		send_all(ends[0]);
		exit(0);
	}
	close(ends[0]);
	*tell = ends[1];
	return pid;
}

static void provider_sleeps_through(bool cno)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	int tell, status;
	DAT_EVENT event;
	struct part p;
	long sleeps;
	pid_t peer;

	peer = start_peer(&tell);
	open_part(&p, cno);
	OK(dat_psp_create_any(p.ia, &qual, p.conn, DAT_PSP_CONSUMER_FLAG, &psp));
	for (int i = 0; i < AHEAD; i++)
		post(&p, true);
	EXPECT(write(tell, &qual, sizeof qual) == sizeof qual);
	accept_peer(&p);
	sleeps = sleeps_of_provider();
	for (int i = 0; i < MESSAGES; i++) {
		wait_for_event(&p, &event);
		post(&p, true);
	}
	sleeps = sleeps_of_provider() - sleeps;
	OK(dat_ep_disconnect(p.ep, DAT_CLOSE_ABRUPT_FLAG));
	EXPECT(waitpid(peer, &status, 0) == peer && !status);
	OK(dat_ia_close(p.ia, DAT_CLOSE_ABRUPT_FLAG));
	if (sleeps > MESSAGES / 2)
		fail("the provider's thread woke up %ld times for %d messages", sleeps, MESSAGES);
}

/* --- connections ---------------------------------------------------------------------------------- */

enum { CONNECTIONS = 400, TRIES = 5, THREADS = 4, CONNECTIONS_OF_THREAD = 60 };

/* Two endpoints that connect to each other. The events of both come to one EVD. */
struct pair {
	DAT_EVD_HANDLE conn, dto;
	DAT_CNO_HANDLE cno;		/* of `conn`, or none */
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EP_HANDLE ep[2];
	unsigned seed;
};

static DAT_IA_HANDLE ia;
static DAT_PZ_HANDLE pz;
static DAT_IA_ATTR ia_attr;

static void open_ia(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_pz_create(ia, &pz));
	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &ia_attr, 0, NULL));
}

static void open_pair(struct pair *p, bool for_cno)
{
	p->cno = DAT_HANDLE_NULL;
	if (for_cno)
		OK(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &p->cno));
	OK(dat_evd_create(ia, 8, p->cno, DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, &p->conn));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &p->dto));
	OK(dat_psp_create_any(ia, &p->qual, p->conn, DAT_PSP_CONSUMER_FLAG, &p->psp));
	for (int i = 0; i < 2; i++)
		OK(dat_ep_create(ia, pz, p->dto, p->dto, p->conn, NULL, &p->ep[i]));
}

static DAT_EVENT next_event(struct pair *p)
{
	DAT_EVD_HANDLE evd;
	DAT_COUNT more;
	DAT_EVENT event;

	if (p->cno == DAT_HANDLE_NULL) {
		OK(dat_evd_wait(p->conn, MOMENT, 1, &event, &more));
		return event;
	}
	while (dat_evd_dequeue(p->conn, &event) != DAT_SUCCESS)
		OK(dat_cno_wait(p->cno, MOMENT, &evd));
	return event;
}

static void both_get(struct pair *p, DAT_EVENT_NUMBER number)
{
	for (int ends = 0; ends < 2;) {
		DAT_EVENT event = next_event(p);

		if (event.event_number == DAT_CONNECTION_REQUEST_EVENT)
			OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, p->ep[1], 0, NULL));
		else if (event.event_number == number)
			ends++;
		else
			fail("event 0x%x, not 0x%x", event.event_number, number);
	}
}

static void connect_and_disconnect(struct pair *p)
{
	OK(dat_ep_connect(p->ep[0], ia_attr.ia_address_ptr, p->qual, MOMENT, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	both_get(p, DAT_CONNECTION_EVENT_ESTABLISHED);
	OK(dat_ep_disconnect(p->ep[0], DAT_CLOSE_ABRUPT_FLAG));
	both_get(p, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (int i = 0; i < 2; i++)
		OK(dat_ep_reset(p->ep[i]));
}

/* A connection makes five events. The provider's thread handles those of the first connections. */
static void provider_sleeps_while_connecting(bool cno)
{
	struct pair pair;
	long sleeps = LONG_MAX;

	open_ia();
	open_pair(&pair, cno);
	/* A thread that has no processor does not wait often enough to be taken for one that drives the device. */
	for (int tries = 0; tries < TRIES && sleeps > CONNECTIONS; tries++) {
		sleeps = sleeps_of_provider();
		for (int i = 0; i < CONNECTIONS; i++)
			connect_and_disconnect(&pair);
		sleeps = sleeps_of_provider() - sleeps;
	}
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	if (sleeps > CONNECTIONS)
		fail("the provider's thread woke up %ld times for %d connections", sleeps, CONNECTIONS);
}

static void expect_timeout(struct pair *p, DAT_TIMEOUT timeout)
{
	double until = life_now() + timeout / 1e6;
	DAT_EVD_HANDLE evd;
	DAT_COUNT more;
	DAT_EVENT event;
	DAT_RETURN ret;

	if (p->cno != DAT_HANDLE_NULL) {
		ret = dat_cno_wait(p->cno, timeout, &evd);
		EXPECT(DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY || ret == DAT_SUCCESS);	/* a trigger of events
								 * that were dequeued */
		return;
	}
	EXPECT(DAT_GET_TYPE(dat_evd_wait(p->conn, timeout, 1, &event, &more)) == DAT_TIMEOUT_EXPIRED);
	EXPECT(life_now() >= until);
}

/* Its waits own the service loop, give it to others, and end without an event, in turn. */
static void *connect_often(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < CONNECTIONS_OF_THREAD; i++) {
		connect_and_disconnect(p);
		if (i % 16 == 15)
			usleep(rand_r(&p->seed) % 5000);
		if (i % 16 == 7)
			expect_timeout(p, rand_r(&p->seed) % 5000);
	}
	return NULL;
}

static void threads_get_their_events(void)
{
	pthread_t threads[THREADS];
	struct pair pairs[THREADS];

	open_ia();
	for (int i = 0; i < THREADS; i++) {
		open_pair(&pairs[i], i % 2);
		pairs[i].seed = i;
	}
	for (int i = 0; i < THREADS; i++)
		EXPECT(!pthread_create(&threads[i], NULL, connect_often, &pairs[i]));
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The thread that owns the loop forks, and so does the child: each has a loop of its own. */
static void connect_in_child(const void *none)
{
	struct pair pair;

	(void)none;
	open_ia();
	open_pair(&pair, false);
	for (int i = 0; i < CONNECTIONS / 4; i++)
		connect_and_disconnect(&pair);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void after_fork(void)
{
	DAT_IA_HANDLE parents;
	struct child_result result;
	struct pair pair;

	open_ia();
	parents = ia;
	open_pair(&pair, false);
	for (int i = 0; i < CONNECTIONS / 4; i++)
		connect_and_disconnect(&pair);
	result = run(connect_in_child, NULL);
	expect_quiet(&result, 0);
	for (int i = 0; i < CONNECTIONS / 4; i++)
		connect_and_disconnect(&pair);
	OK(dat_ia_close(parents, DAT_CLOSE_ABRUPT_FLAG));
}

/* The owner of the loop is in a wait when the process ends. */
static void *wait_for_ever(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < CONNECTIONS / 4; i++)
		connect_and_disconnect(p);
	expect_timeout(p, MOMENT);
	return NULL;
}

static void end_with_a_waiter(const void *none)
{
	static struct pair pair;
	pthread_t thread;

	(void)none;
	end_without_leak_check();
	open_ia();
	open_pair(&pair, false);
	EXPECT(!pthread_create(&thread, NULL, wait_for_ever, &pair));
	usleep(10000);
	exit(0);
}

static void process_ends_with_a_waiter(void)
{
	struct child_result result = run(end_with_a_waiter, NULL);

	expect_quiet(&result, 0);
}

static void connections_in_dat_evd_wait(void) { provider_sleeps_while_connecting(false); }
static void connections_in_dat_cno_wait(void) { provider_sleeps_while_connecting(true); }

static void in_dat_evd_wait(void) { provider_sleeps_through(false); }
static void in_dat_cno_wait(void) { provider_sleeps_through(true); }

static const struct life_case cases[] = {
	CASE(in_dat_evd_wait),
	CASE(in_dat_cno_wait),
	CASE(connections_in_dat_evd_wait),
	CASE(connections_in_dat_cno_wait),
	CASE(threads_get_their_events),
	CASE(after_fork),
	CASE(process_ends_with_a_waiter),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
