/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.c - the software device at one end and the kernel's Soft-iWARP at the other: data, in
 * both roles, with CRC and without; and what one end refuses ends the connection at both.
 * In the test machine, over the link that soft-siw makes. No TESTS: it needs that. */
#include "link.h"
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20 };

static bool soft_connects;		/* else it serves */

/* --- private data ------------------------------------------------------------------- */

static int room_for_pdata(const struct end *e)
{
	DAT_PROVIDER_ATTR attr;

	OK(dat_ia_query(e->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE, &attr));
	return attr.max_private_data_size;
}

static void expect_pdata(const void *p, int length, int expected, int seed)
{
	if (length != expected)
		fail("%d bytes of private data, expected %d", length, expected);
	for (int i = 0; i < length; i++)
		if (((const unsigned char *)p)[i] != ((i + seed) & 255))
			fail("byte %d of private data is wrong", i);
}

static void *make_pdata(int length, int seed)
{
	unsigned char *p = malloc(length);

	for (int i = 0; i < length; i++)
		p[i] = i + seed;
	return p;
}

/* As accept_one, with all the private data that there is room for; `at` is how much of it
 * the client sent, and then how much it gets. */
static void accept_with_pdata(struct end *e)
{
	int room = room_for_pdata(e);
	void *pdata = make_pdata(room, 7);
	DAT_CR_HANDLE cr;
	DAT_PSP_HANDLE psp;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	OK(dat_psp_create(e->ia, PORT, e->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	__atomic_store_n(&server->ready, true, __ATOMIC_RELEASE);
	OK(await(e->cr, DAT_CONNECTION_REQUEST_EVENT, DEATH, &event));
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	expect_pdata(param.private_data, param.private_data_size, server->at, 3);
	server->at = room;
	OK(dat_cr_accept(cr, e->ep, room, pdata));
	OK(await(e->conn, DAT_CONNECTION_EVENT_ESTABLISHED, DEATH, NULL));
	free(pdata);
}

static void see_it_disconnected(struct end *e)
{
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
}

static void (*accept_how)(struct end *) = accept_one;

static pid_t start_server(void (*job)(struct end *))
{
	struct end e;
	pid_t pid;

	make_server();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		soft_connects ? open_siw(&e) : open_soft(&e);
		accept_how(&e);
		job(&e);
		close_end(&e);
		exit(0);
	}
	await_server(pid);
	return pid;
}

static void start_client(struct end *e)
{
	soft_connects ? open_soft(e) : open_siw(e);
	OK(connect_to(e, soft_connects ? SIW : SOFT, DEATH, DAT_CONNECTION_EVENT_ESTABLISHED));
}

/* siw does not distinguish the two kinds of end. */
static void see_it_end(struct end *e, bool soft)
{
	DAT_EVENT event;
	DAT_COUNT n;

	OK(dat_evd_wait(e->conn, DEATH, 1, &event, &n));
	if (event.event_number != DAT_CONNECTION_EVENT_BROKEN &&
	    (soft || event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED))
		fail("event 0x%x at the end", event.event_number);
}

static void served_to_the_end(struct end *e)
{
	see_it_end(e, !soft_connects);
	if (done(e->recv, NULL) == DAT_DTO_SUCCESS)
		fail("a receive succeeded");
}

static void exchange_and_end(const char *crc)
{
	struct end e;
	pid_t pid;

	setenv("DAPL_SOFT_CRC", crc, 1);
	pid = start_server(echo);
	start_client(&e);
	exchange(&e, ROUNDS);
	OK(dat_ep_disconnect(e.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(await(e.conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
	expect_good_end(pid);
	close_end(&e);
}

static void private_data_of_the_largest_size_arrive(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	const DAT_CONNECTION_EVENT_DATA *data;
	DAT_EVENT event;
	struct end e;
	void *pdata;
	pid_t pid;
	int room;

	accept_how = accept_with_pdata;
	pid = start_server(see_it_disconnected);
	soft_connects ? open_soft(&e) : open_siw(&e);
	room = room_for_pdata(&e);
	pdata = make_pdata(room + 1, 3);
	inet_pton(AF_INET, soft_connects ? SIW : SOFT, &to.sin_addr);
	if (DAT_GET_TYPE(dat_ep_connect(e.ep, (DAT_IA_ADDRESS_PTR)&to, PORT, DEATH, room + 1, pdata,
					DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) !=
	    DAT_INVALID_PARAMETER)
		fail("more private data than there is room for was taken");
	server->at = room;
	OK(dat_ep_connect(e.ep, (DAT_IA_ADDRESS_PTR)&to, PORT, DEATH, room, pdata,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(e.conn, DAT_CONNECTION_EVENT_ESTABLISHED, DEATH, &event));
	data = &event.event_data.connect_event_data;
	expect_pdata(data->private_data, data->private_data_size, server->at, 7);
	OK(dat_ep_disconnect(e.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(await(e.conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
	expect_good_end(pid);
	close_end(&e);
	free(pdata);
}

static void data_both_ways(void) { exchange_and_end("0"); }
static void data_both_ways_with_crc(void) { exchange_and_end("1"); }

static bool runs(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

/* On iWARP a write completes once TCP has taken it, so the write may succeed. The read must not. */
static void refused(void (*post)(struct end *), bool must_fail)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct end e;
	pid_t pid;

	/* test/life/diagnosis checks the lines about connections that break */
	setenv("DAPL_DBG_TYPE", "1", 1);
	pid = start_server(served_to_the_end);
	start_client(&e);
	/* to the acceptor siw reports a connection that ended at once only as a failure */
	while (!__atomic_load_n(&server->connected, __ATOMIC_ACQUIRE) && runs(pid))
		usleep(1000);
	post(&e);
	status = done(e.request, NULL);
	if (must_fail && status == DAT_DTO_SUCCESS)
		fail("it succeeded");
	see_it_end(&e, soft_connects);
	expect_good_end(pid);
	close_end(&e);
}

static void post_bad_write(struct end *e)
{
	server->remote ^= 0x5a5a00;
	post_rdma(e, 0, 0, 100, false);
}

static void post_long_write(struct end *e)
{
	post_rdma(e, 0, BLOCKS - 1, BLOCK + 1, false);
}

static void post_bad_read(struct end *e)
{
	server->remote ^= 0x5a5a00;
	post_rdma(e, 0, 0, 100, true);
}

static void post_long_read(struct end *e)
{
	post_rdma(e, 0, BLOCKS - 1, BLOCK + 1, true);
}

static void post_long_send(struct end *e)
{
	post_send(e, 0, BLOCK + 1);
}

static void a_write_to_a_wrong_context_is_refused(void) { refused(post_bad_write, false); }
static void a_write_beyond_the_end(void) { refused(post_long_write, false); }
static void a_read_from_a_wrong_context_is_refused(void) { refused(post_bad_read, true); }
static void a_read_beyond_the_end(void) { refused(post_long_read, true); }
static void a_message_longer_than_its_receive(void) { refused(post_long_send, false); }

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(private_data_of_the_largest_size_arrive),
		CASE(data_both_ways),
		CASE(data_both_ways_with_crc),
		CASE(a_write_to_a_wrong_context_is_refused),
		CASE(a_write_beyond_the_end),
		CASE(a_read_from_a_wrong_context_is_refused),
		CASE(a_read_beyond_the_end),
		CASE(a_message_longer_than_its_receive),
	};

	if (argc < 2 || (strcmp(argv[1], "calls") && strcmp(argv[1], "serves"))) {
		fprintf(stderr, "usage: siw calls|serves [CASE...]\n");
		return 2;
	}
	soft_connects = !strcmp(argv[1], "calls");
	return life_main(argc - 1, argv + 1, cases, sizeof cases / sizeof cases[0]);
}
