/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* namespaces.c - the software device in two processes, between two network namespaces. Their link loses and
 * reorders packets, or goes down. Data arrive whole. A peer that cannot be reached is detected, by each
 * connection in its own time; a peer that is merely stopped is not. */
#include "ends.h"
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 80 };
#define ADDRESS "10.95.0.2"

/* --- the two processes ------------------------------------------------------------- */

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

/* Forks the server, in a namespace of its own behind a link. Returns its process. */
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
	make_server();
	if (pipe(apart))
		fail("pipe");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (unshare(CLONE_NEWNET) || write(apart[1], "", 1) != 1)
			fail("unshare");
		while (!try_quietly("ip link set net1 up"))	/* until it has been put here */
			usleep(1000);
		must("ip link set lo up && ip addr add " ADDRESS "/24 dev net1");
		open_end(&e, "libdaplsoft.so.2", "net1");
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
	await_server(pid);
	return pid;
}

static void in_servers_namespace(pid_t pid, const char *command)
{
	char line[300];

	snprintf(line, sizeof line, "nsenter -t %d -n %s", (int)pid, command);
	must(line);
}

static void connected(struct end *e)
{
	OK(connect_to(e, ADDRESS, DEATH, DAT_CONNECTION_EVENT_ESTABLISHED));
}

/* --- cases ------------------------------------------------------------------------- */

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
	open_end(&e, "libdaplsoft.so.2", "net0");
	connected(&e);
	exchange(&e, ROUNDS);
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

/* Connections break here. test/life/diagnosis checks the lines that say so. */
static void expect_failures(void)
{
	setenv("DAPL_DBG_TYPE", "1", 1);
}

/* The time that DAPL_ACK_TIMER and DAPL_ACK_RETRY give: 4.096 us * 2^16 * (7 + 1) = 2.1 s. */
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

	expect_failures();
	be_impatient();
	pid = start_server(see_it_break);
	open_end(&e, "libdaplsoft.so.2", "net0");
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

	expect_failures();
	be_impatient();
	pid = start_server(see_it_break);
	open_end(&e, "libdaplsoft.so.2", "net0");
	connected(&e);
	post_receive(&e, 0);
	in_servers_namespace(pid, "ip link set net1 down");
	see_it_break(&e);
	expect_good_end(pid);
	close_end(&e);
}

/* --- two connections, each with limits of its own ------------------------------------------------ */

static DAT_EP_HANDLE another_ep(struct end *e)
{
	DAT_EP_HANDLE ep;

	OK(dat_ep_create(e->ia, e->pz, e->recv, e->request, e->conn, NULL, &ep));
	return ep;
}

static void accept_another(struct end *e)
{
	DAT_EVENT event;

	OK(await(e->cr, DAT_CONNECTION_REQUEST_EVENT, DEATH, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, another_ep(e), 0, NULL));
	pause();
}

/* "16", "3": 4.096 us * 2^16 * (3 + 1). */
static void set_patience(DAT_EP_HANDLE ep, const char *ack_timeout, const char *ack_retry)
{
	DAT_NAMED_ATTR attrs[] = { { "ack_timeout", ack_timeout }, { "ack_retry", ack_retry } };
	DAT_EP_PARAM param = { .ep_attr = { .ep_provider_specific_count = 2,
		.ep_provider_specific = attrs } };

	OK(dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
			 DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, &param));
}

/* Packets are dropped in both directions, without an error. */
static void silence(pid_t pid)
{
	char line[300];

	snprintf(line, sizeof line, "nsenter -t %d -n nft 'add table ip quiet; "
		 "add chain ip quiet in { type filter hook input priority 0; policy drop; }; "
		 "add chain ip quiet out { type filter hook output priority 0; policy drop; }'", (int)pid);
	if (try_quietly(line))
		return;
	if (try_quietly("tc qdisc add dev net0 root netem loss 100%"))
		in_servers_namespace(pid, "tc qdisc add dev net1 root netem loss 100%");
	else
		in_servers_namespace(pid, "ip link set net1 down");
}

static DAT_EP_HANDLE broken_next(struct end *e)
{
	DAT_EVENT event;

	OK(await(e->conn, DAT_CONNECTION_EVENT_BROKEN, DEATH, &event));
	return event.event_data.connect_event_data.ep_handle;
}

static DAT_EP_HANDLE failed_next(struct end *e)
{
	DAT_EVENT event;

	OK(await(e->request, DAT_DTO_COMPLETION_EVENT, DEATH, &event));
	EXPECT(event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS);
	return event.event_data.dto_completion_event_data.ep_handle;
}

static DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;

	OK(dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}

/* Makes two connections to a server, which then becomes unreachable. Both use the same EVDs, so their events
 * come in the order in which the connections end. */
static pid_t connect_two(struct end *one, struct end *two, const char *const patience[2][2])
{
	pid_t pid;

	expect_failures();
	pid = start_server(accept_another);
	open_end(one, "libdaplsoft.so.2", "net0");
	*two = *one;
	two->ep = another_ep(one);
	set_patience(one->ep, patience[0][0], patience[0][1]);
	set_patience(two->ep, patience[1][0], patience[1][1]);
	connected(one);
	connected(two);
	silence(pid);
	return pid;
}

/* The first is broken, the second is not yet. Its time is many times as long, so that the order holds on a
 * machine that stops for some seconds. */
static void end_both(struct end *one, const struct end *two, pid_t pid)
{
	EXPECT(state_of(one->ep) == DAT_EP_STATE_DISCONNECTED);
	EXPECT(state_of(two->ep) == DAT_EP_STATE_CONNECTED);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close_end(one);
}

/* 1.1 s and 69 s. With the same limits the newer connection would end first. */
static void the_shorter_ack_timeout_breaks_first(void)
{
	static const char *const patience[2][2] = { { "16", "3" }, { "22", "3" } };
	struct end one, two;
	pid_t pid = connect_two(&one, &two, patience);

	post_rdma(&two, 0, 0, BLOCK, false);
	post_rdma(&one, 0, 0, BLOCK, false);
	EXPECT(failed_next(&one) == one.ep);
	EXPECT(broken_next(&one) == one.ep);
	end_both(&one, &two, pid);
}

/* 4.3 s and 34 s. Nothing is sent. */
static void fewer_retries_break_an_idle_connection_first(void)
{
	static const char *const patience[2][2] = { { "20", "0" }, { "20", "7" } };
	struct end one, two;
	pid_t pid = connect_two(&one, &two, patience);

	EXPECT(broken_next(&one) == one.ep);
	end_both(&one, &two, pid);
}

/* --- standing still --------------------------------------------------------------------------- */

/* A peer is stopped for longer than the limit, while more data than the sockets hold is in progress to it.
 * Its kernel still answers, so the connection stays. */
static void a_peer_that_stands_still_is_not_lost(void)
{
	enum { WRITES = 8 };
	struct end e;
	pid_t pid;

	be_impatient();
	pid = start_server(see_the_end);
	open_end(&e, "libdaplsoft.so.2", "net0");
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
	pid_t pid;

	expect_failures();
	pid = start_server(never);
	open_end(&e, "libdaplsoft.so.2", "net0");
	in_servers_namespace(pid, "ip link set net1 down");
	OK(connect_to(&e, ADDRESS, 1000000, DAT_CONNECTION_EVENT_TIMED_OUT));
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
		CASE(the_shorter_ack_timeout_breaks_first),
		CASE(fewer_retries_break_an_idle_connection_first),
		CASE(a_peer_that_stands_still_is_not_lost),
		CASE(connecting_over_a_dead_link_times_out),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
