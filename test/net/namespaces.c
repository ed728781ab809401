/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* namespaces.c - the software device between two network namespaces with a link that loses
 * and reorders packets, or goes down: data arrive whole, and a peer that cannot be reached
 * any more is noticed, one that merely stands still is not taken for it. Two processes. */
#include "test/life/life.h"
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PORT = 7000, BLOCK = 65536, BLOCKS = 4, MEMORY = BLOCK * BLOCKS,
	ROUNDS = 150,
	DEATH = 60000000,	/* us: until the end of a peer is noticed, at most */
};

struct end {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, cr, recv, request, conn;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT local;
	DAT_RMR_CONTEXT remote;
	char *memory;
};

static struct {		/* shared by the two processes */
	bool ready;	/* atomic: the server listens */
	DAT_RMR_CONTEXT remote;
	DAT_VADDR at;
} *server;

/* --- one end ------------------------------------------------------------------------------ */

static void open_end(struct end *e, const char *netdev)
{
	DAT_REGION_DESCRIPTION region;
	char params[32];

	memset(e, 0, sizeof *e);
	snprintf(params, sizeof params, "%s 0", netdev);
	life_entry("net", "libdaplsoft.so.2", params);
	e->memory = aligned_alloc(4096, MEMORY);
	memset(e->memory, 0, MEMORY);
	region.for_va = e->memory;
	OK(dat_ia_open((DAT_NAME_PTR)"net", 8, &e->async, &e->ia));
	OK(dat_pz_create(e->ia, &e->pz));
	OK(dat_evd_create(e->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &e->cr));
	OK(dat_evd_create(e->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &e->recv));
	OK(dat_evd_create(e->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &e->request));
	OK(dat_evd_create(e->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &e->conn));
	OK(dat_lmr_create(e->ia, DAT_MEM_TYPE_VIRTUAL, region, MEMORY, e->pz,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &e->lmr, &e->local, &e->remote,
			  NULL, NULL));
	OK(dat_ep_create(e->ia, e->pz, e->recv, e->request, e->conn, NULL, &e->ep));
}

static void close_end(struct end *e)
{
	OK(dat_ia_close(e->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(e->memory);
}

static DAT_LMR_TRIPLET block(const struct end *e, int number, unsigned length)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = e->local, .segment_length = length,
		.virtual_address = (uintptr_t)e->memory + number * BLOCK };
}

static void post_receive(struct end *e, int number)
{
	DAT_LMR_TRIPLET at = block(e, number, BLOCK);
	DAT_DTO_COOKIE cookie = { .as_64 = number };

	OK(dat_ep_post_recv(e->ep, 1, &at, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_send(struct end *e, int number, unsigned length)
{
	DAT_LMR_TRIPLET at = block(e, number, length);
	DAT_DTO_COOKIE cookie = { .as_64 = number };

	OK(dat_ep_post_send(e->ep, 1, &at, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void post_rdma(struct end *e, int from, int to, unsigned length, bool read)
{
	DAT_LMR_TRIPLET here = block(e, from, length);
	DAT_RMR_TRIPLET there = { .rmr_context = server->remote, .segment_length = length,
		.virtual_address = server->at + to * BLOCK };
	DAT_DTO_COOKIE cookie = { .as_64 = from };

	if (read)
		OK(dat_ep_post_rdma_read(e->ep, 1, &here, cookie, &there,
					 DAT_COMPLETION_DEFAULT_FLAG));
	else
		OK(dat_ep_post_rdma_write(e->ep, 1, &here, cookie, &there,
					  DAT_COMPLETION_DEFAULT_FLAG));
}

static DAT_DTO_COMPLETION_STATUS done(DAT_EVD_HANDLE evd, unsigned *length)
{
	DAT_EVENT event;

	OK(await(evd, DAT_DTO_COMPLETION_EVENT, DEATH, &event));
	if (length)
		*length = event.event_data.dto_completion_event_data.transfered_length;
	return event.event_data.dto_completion_event_data.status;
}

static void fill(char *p, unsigned length, unsigned seed)
{
	for (unsigned i = 0; i < length; i++)
		p[i] = (char)((i + seed) * 2654435761u >> 24);
}

static void expect_filled(const char *p, unsigned length, unsigned seed)
{
	char *good = malloc(length + 1);

	fill(good, length, seed);
	for (unsigned i = 0; i < length; i++)
		if (p[i] != good[i])
			fail("byte %u of %u is wrong, seed %u", i, length, seed);
	free(good);
}

static unsigned length_of(unsigned round)
{
	return 1 + round * 7919u % (BLOCK - 1);
}

/* --- the two processes ------------------------------------------------------------------------ */

static bool try_quietly(const char *command)
{
	char line[300];

	snprintf(line, sizeof line, "{ %s; } >/dev/null 2>&1", command);
	return system(line) == 0;
}

static void must(const char *command)
{
	if (!try_quietly(command))
		fail("%s", command);
}

static void accept_one(struct end *e)
{
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create(e->ia, PORT, e->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	server->remote = e->remote;
	server->at = (uintptr_t)e->memory;
	post_receive(e, 0);
	__atomic_store_n(&server->ready, true, __ATOMIC_RELEASE);
	OK(await(e->cr, DAT_CONNECTION_REQUEST_EVENT, DEATH, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e->ep, 0, NULL));
	OK(await(e->conn, DAT_CONNECTION_EVENT_ESTABLISHED, DEATH, NULL));
}

/* Sends back what comes, checked, to the end of the connection. */
static void echo(struct end *e)
{
	unsigned length;

	for (unsigned round = 0; done(e->recv, &length) == DAT_DTO_SUCCESS; round++) {
		if (length != length_of(round))
			fail("message %u has %u bytes, expected %u", round, length,
			     length_of(round));
		expect_filled(e->memory, length, round);
		memmove(e->memory + BLOCK, e->memory, length);
		post_receive(e, 0);
		post_send(e, 1, length);
		if (done(e->request, NULL) != DAT_DTO_SUCCESS)
			fail("the echo of message %u did not arrive", round);
	}
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
}

static void see_it_break(struct end *e)
{
	OK(await(e->conn, DAT_CONNECTION_EVENT_BROKEN, DEATH, NULL));
	if (done(e->recv, NULL) != DAT_DTO_ERR_FLUSHED)
		fail("the receive of a broken connection is not flushed");
}

static void see_the_end(struct end *e)
{
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
}

static void never(struct end *e)
{
	(void)e;
	pause();
}

/* The server, in a namespace of its own behind a link. Returns its process. */
static pid_t start_server(void (*job)(struct end *))
{
	static const char *const ours[] = {
		"ip link set lo up", "ip addr add 10.95.0.1/24 dev net0", "ip link set net0 up",
	};
	int apart[2];
	struct end e;
	char c, line[100];
	pid_t pid;

	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had: needs root");
	server = mmap(NULL, sizeof *server, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pipe(apart))
		fail("pipe");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(apart[1], "", 1) != 1)
			fail("unshare");
		while (!try_quietly("ip link set net1 up"))	/* until it has been put here */
			usleep(1000);
		must("ip link set lo up && ip addr add 10.95.0.2/24 dev net1");
		open_end(&e, "net1");
		if (job != never)
			accept_one(&e);
		else
			__atomic_store_n(&server->ready, true, __ATOMIC_RELEASE);
		job(&e);
		close_end(&e);
		exit(0);
	}
	if (read(apart[0], &c, 1) != 1)
		fail("the server ended");
	snprintf(line, sizeof line, "ip link add net0 type veth peer name net1 netns %d", (int)pid);
	if (!try_quietly(line))
		skip("no veth in this kernel");
	for (int i = 0; i < 3; i++)
		must(ours[i]);
	while (!__atomic_load_n(&server->ready, __ATOMIC_ACQUIRE)) {
		if (waitpid(pid, NULL, WNOHANG))
			fail("the server ended");
		usleep(1000);
	}
	return pid;
}

static void in_servers_namespace(pid_t pid, const char *command)
{
	char line[200];

	snprintf(line, sizeof line, "nsenter -t %d -n %s", (int)pid, command);
	must(line);
}

static void expect_good_end(pid_t pid)
{
	int status;

	waitpid(pid, &status, 0);
	if (status)
		fail("the server ended with status 0x%x", status);
}

static DAT_RETURN connect_to_server(struct end *e, DAT_TIMEOUT timeout, DAT_EVENT_NUMBER expected)
{
	struct sockaddr_in to = { .sin_family = AF_INET };

	inet_pton(AF_INET, "10.95.0.2", &to.sin_addr);
	OK(dat_ep_connect(e->ep, (DAT_IA_ADDRESS_PTR)&to, PORT, timeout, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	return await(e->conn, expected, DEATH, NULL);
}

static void connected(struct end *e)
{
	OK(connect_to_server(e, DEATH, DAT_CONNECTION_EVENT_ESTABLISHED));
}

/* --- cases ------------------------------------------------------------------------------------- */

/* Messages and back, checked at both ends; writes, and reads of what was written. */
static void exchange(struct end *e)
{
	unsigned length;

	for (unsigned round = 0; round < ROUNDS; round++) {
		post_receive(e, 1);
		fill(e->memory, length_of(round), round);
		post_send(e, 0, length_of(round));
		if (done(e->request, NULL) != DAT_DTO_SUCCESS ||
		    done(e->recv, &length) != DAT_DTO_SUCCESS || length != length_of(round))
			fail("message %u", round);
		expect_filled(e->memory + BLOCK, length, round);
		fill(e->memory + 2 * BLOCK, length, ~round);
		post_rdma(e, 2, 2, length, false);
		post_rdma(e, 3, 2, length, true);
		if (done(e->request, NULL) != DAT_DTO_SUCCESS ||
		    done(e->request, NULL) != DAT_DTO_SUCCESS)
			fail("write or read %u", round);
		expect_filled(e->memory + 3 * BLOCK, length, ~round);
	}
}

static void exchange_over(const char *netem)
{
	char line[200];
	struct end e;
	pid_t pid = start_server(echo);

	if (netem) {
		snprintf(line, sizeof line, "tc qdisc add dev net0 root netem %s", netem);
		if (!try_quietly(line))
			skip("no tc, or no netem in this kernel");
		snprintf(line, sizeof line, "tc qdisc add dev net1 root netem %s", netem);
		in_servers_namespace(pid, line);
	}
	open_end(&e, "net0");
	connected(&e);
	exchange(&e);
	OK(dat_ep_disconnect(e.ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(await(e.conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
	expect_good_end(pid);
	close_end(&e);
}

static void data_arrive_whole(void) { exchange_over(NULL); }
static void data_survive_loss_and_reordering(void)
{
	exchange_over("delay 1ms loss 1% reorder 5% 50%");
}
static void data_survive_duplicates(void) { exchange_over("delay 1ms duplicate 5%"); }

/* DAPL_ACK_TIMER and DAPL_ACK_RETRY say how long: 4.096 us * 2^16 * (7 + 1) = 2.1 s. */
static void be_impatient(void)
{
	setenv("DAPL_ACK_TIMER", "16", 1);
	setenv("DAPL_ACK_RETRY", "7", 1);
}

static void a_link_that_fails_under_way_breaks_the_connection(void)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct end e;
	pid_t pid;

	be_impatient();
	pid = start_server(see_it_break);
	open_end(&e, "net0");
	connected(&e);
	in_servers_namespace(pid, "ip link set net1 down");
	post_rdma(&e, 0, 0, BLOCK, false);
	status = done(e.request, NULL);
	if (status == DAT_DTO_SUCCESS)
		fail("a write over a dead link succeeded");
	OK(await(e.conn, DAT_CONNECTION_EVENT_BROKEN, DEATH, NULL));
	expect_good_end(pid);
	close_end(&e);
}

static void a_link_that_fails_between_idle_peers_breaks_the_connection(void)
{
	struct end e;
	pid_t pid;

	be_impatient();
	pid = start_server(see_it_break);
	open_end(&e, "net0");
	connected(&e);
	post_receive(&e, 0);
	in_servers_namespace(pid, "ip link set net1 down");
	see_it_break(&e);
	expect_good_end(pid);
	close_end(&e);
}

/* More than the sockets hold is under way to a peer that is stopped, for longer than the
 * limit: its kernel still answers, so it lives. */
static void a_peer_that_stands_still_is_not_lost(void)
{
	enum { WRITES = 8 };
	struct end e;
	pid_t pid;

	be_impatient();
	pid = start_server(see_the_end);
	open_end(&e, "net0");
	connected(&e);
	kill(pid, SIGSTOP);
	for (int i = 0; i < WRITES; i++)
		post_rdma(&e, 0, 0, MEMORY, false);
	usleep(7000000);
	kill(pid, SIGCONT);
	for (int i = 0; i < WRITES; i++)
		if (done(e.request, NULL) != DAT_DTO_SUCCESS)
			fail("write %d to a peer that was stopped for a while", i);
	OK(dat_ep_disconnect(e.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_good_end(pid);
	close_end(&e);
}

static void connecting_over_a_dead_link_times_out(void)
{
	struct end e;
	pid_t pid = start_server(never);

	open_end(&e, "net0");
	in_servers_namespace(pid, "ip link set net1 down");
	OK(connect_to_server(&e, 1000000, DAT_CONNECTION_EVENT_TIMED_OUT));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close_end(&e);
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(data_arrive_whole),
		CASE(data_survive_loss_and_reordering),
		CASE(data_survive_duplicates),
		CASE(a_link_that_fails_under_way_breaks_the_connection),
		CASE(a_link_that_fails_between_idle_peers_breaks_the_connection),
		CASE(a_peer_that_stands_still_is_not_lost),
		CASE(connecting_over_a_dead_link_times_out),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
