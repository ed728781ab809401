/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* siw.c - the software device at one end and the kernel's Soft-iWARP at the other: data, in
 * both roles, with CRC and without; and what one end refuses ends the connection at both.
 * In the test machine, where soft-siw has made the link: siw on vsiw0 here, vsoft0 in the
 * network namespace "soft". No TESTS: it needs that. */
#include "ends.h"
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIW "10.96.0.1"
#define SOFT "10.96.0.2"
enum { ROUNDS = 20 };

static bool soft_calls;		/* else it serves */

static void open_soft(struct end *e)
{
	int ns = open("/run/netns/soft", O_RDONLY | O_CLOEXEC);

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		skip("no network namespace \"soft\" here: see soft-siw");
	close(ns);
	open_end(e, "libdaplsoft.so.2", "vsoft0");
}

static void open_siw(struct end *e)
{
	open_end(e, "libdaplofa.so.2", "vsiw0");
}

static pid_t start_server(void (*job)(struct end *))
{
	struct end e;
	pid_t pid;

	make_server();
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		soft_calls ? open_siw(&e) : open_soft(&e);
		accept_one(&e);
		job(&e);
		close_end(&e);
		exit(0);
	}
	while (!__atomic_load_n(&server->ready, __ATOMIC_ACQUIRE)) {
		if (waitpid(pid, NULL, WNOHANG))
			fail("the server ended");
		usleep(1000);
	}
	return pid;
}

static void start_client(struct end *e)
{
	soft_calls ? open_soft(e) : open_siw(e);
	OK(connect_to(e, soft_calls ? SIW : SOFT, DEATH, DAT_CONNECTION_EVENT_ESTABLISHED));
}

/* siw does not tell one kind of end from the other. */
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
	see_it_end(e, !soft_calls);
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

static void data_both_ways(void) { exchange_and_end("0"); }
static void data_both_ways_with_crc(void) { exchange_and_end("1"); }

static bool runs(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

/* iWARP has a write done when TCP has it, so that one may succeed; a read may not. */
static void refused(void (*post)(struct end *), bool must_fail)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct end e;
	pid_t pid = start_server(served_to_the_end);

	start_client(&e);
	/* siw tells an acceptor nothing of a connection that ended at once but that it failed */
	while (!__atomic_load_n(&server->connected, __ATOMIC_ACQUIRE) && runs(pid))
		usleep(1000);
	post(&e);
	status = done(e.request, NULL);
	if (must_fail && status == DAT_DTO_SUCCESS)
		fail("it succeeded");
	see_it_end(&e, soft_calls);
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

static void a_write_to_a_wrong_context(void) { refused(post_bad_write, false); }
static void a_write_beyond_the_end(void) { refused(post_long_write, false); }
static void a_read_from_a_wrong_context(void) { refused(post_bad_read, true); }
static void a_read_beyond_the_end(void) { refused(post_long_read, true); }
static void a_message_longer_than_its_receive(void) { refused(post_long_send, false); }

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(data_both_ways),
		CASE(data_both_ways_with_crc),
		CASE(a_write_to_a_wrong_context),
		CASE(a_write_beyond_the_end),
		CASE(a_read_from_a_wrong_context),
		CASE(a_read_beyond_the_end),
		CASE(a_message_longer_than_its_receive),
	};

	if (argc < 2 || (strcmp(argv[1], "calls") && strcmp(argv[1], "serves"))) {
		fprintf(stderr, "usage: siw calls|serves [CASE...]\n");
		return 2;
	}
	soft_calls = !strcmp(argv[1], "calls");
	return life_main(argc - 1, argv + 1, cases, sizeof cases / sizeof cases[0]);
}
