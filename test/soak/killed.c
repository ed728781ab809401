/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* killed.c - the peer process is killed at a random instant, in as many rounds as asked: while it
 * starts, connects, exchanges data, disconnects or ends. The survivor gets one terminal event, each
 * DTO that it posted completes once, and nothing of the peer is left.
 *
 * Three processes: the survivor, with one IA for all rounds; a launcher, which uses no DAT, starts the
 * victim of each round, kills it and reports; the victim. Survivor and victim take turns as the
 * side that connects. LIFE_DEVICE names another device than the software device. */
#include "traffic.h"
#include "test/own_network.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
	STEPS = 1500, /* most steps of a victim that ends by itself */
	LATE = 60,    /* s; a survivor that waits for longer hangs */
};

struct order {
	unsigned round;
	bool victim_connects;
	bool once_connected; /* kill_after counts from there */
	bool endless;        /* the victim does not end by itself */
	double kill_after;   /* s, from the start of the victim; < 0: not at all */
};

struct report {
	double killed;          /* when */
	double life, connected; /* s from the start, from the connection, to the end */
	int status;
};

/* Shared by all three. */
static struct board {
	volatile DAT_CONN_QUAL survivor_qual, victim_qual;
	volatile struct traffic_target survivor, victim;
	volatile bool connected; /* as the victim sees it */
	volatile bool survivor_connected;
} *board;

static struct survivor {
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, cr;
	DAT_PSP_HANDLE psp;
	int launcher;           /* socket */
	pid_t launcher_pid;
	double life, connected; /* s: of an undisturbed victim */
	uint64_t random;
	/* figures */
	unsigned connections, unconnected, disconnected, broken, killed;
	uint64_t dtos, flushed;
	double slowest; /* s from the kill to the terminal event */
} s;

static DAT_IA_ADDRESS_PTR local_address(DAT_IA_HANDLE ia)
{
	DAT_IA_ATTR attr;

	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	return attr.ia_address_ptr;
}

static DAT_RETURN connect_endpoint(struct traffic *t, DAT_CONN_QUAL qual, unsigned round)
{
	return dat_ep_connect(t->ep, local_address(t->ia), qual, LATE / 4 * 1000000, sizeof round,
			      &round, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static void open_adapter(DAT_IA_HANDLE *ia, DAT_PZ_HANDLE *pz, DAT_EVD_HANDLE *async,
			 DAT_EVD_HANDLE *cr)
{
	*async = DAT_HANDLE_NULL;
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, async, ia));
	OK(dat_pz_create(*ia, pz));
	OK(dat_evd_create(*ia, 64, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, cr));
}

/* On siw the acceptor must not send first: its message could arrive together with the MPA reply, which siw
 * refuses. */
static bool may_send(bool connects, const volatile bool *peer_connected)
{
	return life_on_soft() || connects || *peer_connected;
}

/* --- the victim --------------------------------------------------------------------------------- */

static void victim_connection(const struct order *o, struct traffic *t, DAT_EVD_HANDLE cr)
{
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;

	if (o->victim_connects) {
		OK(connect_endpoint(t, board->survivor_qual, o->round));
	} else {
		OK(dat_psp_create_any(t->ia, &qual, cr, DAT_PSP_CONSUMER_FLAG, &psp));
		board->victim_qual = qual;
		OK(await(cr, DAT_CONNECTION_REQUEST_EVENT, LATE * 1000000, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, t->ep, 0, NULL));
	}
	while (!t->established && !t->terminal)
		traffic_take(t);
	if (!t->established)
		fail("seed %u, round %u: the victim is not connected: event 0x%x", soak_seed,
		     o->round, t->terminal);
	board->connected = true;
}

/* The victim ends in one of four ways. The survivor sees the same in each. */
static void victim_life(const struct order *o)
{
	DAT_EVD_HANDLE async, cr;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	struct traffic t;
	unsigned steps, form;

	if (o->kill_after >= 0)
		end_without_leak_check();	/* it prints a line when it is killed */
	open_adapter(&ia, &pz, &async, &cr);
	traffic_begin(&t, ia, pz, 2 * o->round + 1);
	board->victim = t.mine;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	victim_connection(o, &t, cr);
	steps = soak_below(&t.random, STEPS);
	for (unsigned i = 0; (i < steps || o->endless) && !t.terminal; i++) {
		if (may_send(o->victim_connects, &board->survivor_connected))
			t.peer = &board->survivor;
		traffic_step(&t);
	}
	form = soak_below(&t.random, 4);
	if (form == 0)
		_exit(0);
	if (form == 1)
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	if (form < 2)
		exit(0);
	OK(dat_ep_disconnect(t.ep, form == 2 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG));
	while (!t.terminal)
		traffic_take(&t);
	traffic_end(&t);
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	exit(0);
}

/* --- the launcher --------------------------------------------------------------------------------- */

/* Waits for the end of the victim. It exits by itself, or is killed at its time. */
static struct report await_end(pid_t pid, const struct order *o)
{
	double begin = life_now(), connected = 0;
	struct report r = { 0 };

	while (waitpid(pid, &r.status, WNOHANG) != pid) {
		double now = life_now(), since = o->once_connected ? connected : begin;

		if (!connected && board->connected)
			connected = now;
		if (o->kill_after >= 0 && since && now - since > o->kill_after && !r.killed) {
			r.killed = now;
			kill(pid, SIGKILL);
		}
		if (now - begin > LATE)
			kill(pid, SIGKILL);
		usleep(50);
	}
	r.life = life_now() - begin;
	r.connected = connected ? life_now() - connected : 0;
	if (!r.killed)
		r.killed = life_now();
	return r;
}

static void launch(int socket)
{
	struct order o;

	while (read(socket, &o, sizeof o) == sizeof o) {
		struct report r;
		pid_t pid = fork();

		if (!pid) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close(socket);
			victim_life(&o);
		}
		r = await_end(pid, &o);
		if (write(socket, &r, sizeof r) != sizeof r)
			_exit(1);
	}
	_exit(0);
}

static void start_launcher(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		fail("socketpair: %s", strerror(errno));
	s.launcher_pid = fork();
	if (!s.launcher_pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		launch(pair[1]);
	}
	close(pair[1]);
	s.launcher = pair[0];
}

static _Noreturn void fail_without_launcher(unsigned round)
{
	int status = 0;

	waitpid(s.launcher_pid, &status, 0);
	fail("seed %u, round %u: the launcher has ended with status 0x%x", soak_seed, round, status);
}

static void send_order(const struct order *o)
{
	if (send(s.launcher, o, sizeof *o, MSG_NOSIGNAL) != sizeof *o)
		fail_without_launcher(o->round);
}

static bool victim_has_ended(const struct order *o, struct report *r)
{
	struct pollfd p = { .fd = s.launcher, .events = POLLIN };

	if (r->life > 0)
		return true;
	if (poll(&p, 1, 0) != 1)
		return false;
	if (read(s.launcher, r, sizeof *r) != sizeof *r)
		fail_without_launcher(o->round);
	if (WIFEXITED(r->status) && r->status)
		fail("seed %u: the victim ends with status 0x%x", soak_seed, r->status);
	s.killed += WIFSIGNALED(r->status);
	return true;
}

/* --- the survivor ----------------------------------------------------------------------------------- */

/* Accepts a request of this round. Rejects one of a victim that was killed in an earlier round. */
static bool accept_victim(struct traffic *t, unsigned round)
{
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	while (dat_evd_dequeue(s.cr, &event) == DAT_SUCCESS) {
		EXPECT(event.event_number == DAT_CONNECTION_REQUEST_EVENT);
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		EXPECT(param.private_data_size >= (DAT_COUNT)sizeof round);
		if (!memcmp(param.private_data, &round, sizeof round))
			return dat_cr_accept(cr, t->ep, 0, NULL) == DAT_SUCCESS;
		dat_cr_reject(cr, 0, NULL);
	}
	return false;
}

/* Returns false if the victim was killed before it listened or connected. */
static bool begin_connection(struct traffic *t, const struct order *o, struct report *r)
{
	double silent = 0; /* since when the victim has ended without a request */

	for (;;) {
		bool ended = victim_has_ended(o, r);

		if (o->victim_connects && accept_victim(t, o->round))
			return true;
		if (!o->victim_connects && board->victim_qual) {
			OK(connect_endpoint(t, board->victim_qual, o->round));
			return true;
		}
		if (ended && !silent)
			silent = life_now();
		/* What the victim sent before its end has arrived by now. */
		if (ended && life_now() - silent > (o->victim_connects ? s.life / 10 : 0))
			return false;
		usleep(50);
	}
}

static void until_terminal(struct traffic *t, const struct order *o, struct report *r)
{
	bool disconnects = soak_below(&s.random, 8) == 0;
	unsigned at = soak_below(&s.random, STEPS);
	double begin = life_now();

	for (unsigned i = 0; !t->terminal; i++) {
		if (may_send(!o->victim_connects, &board->connected))
			t->peer = &board->victim;
		traffic_step(t);
		board->survivor_connected = t->established;
		victim_has_ended(o, r);
		if (disconnects && i == at && t->established && !t->terminal)
			dat_ep_disconnect(t->ep,
					  i & 1 ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
		if (life_now() - begin > LATE + s.life)
			fail("seed %u, round %u: no terminal event %.1f s after the end of the "
			     "peer; "
			     "%sestablished, %llu of %llu DTOs complete",
			     soak_seed, o->round, life_now() - r->killed,
			     t->established ? "" : "not ", (unsigned long long)t->completed,
			     (unsigned long long)t->posted);
	}
}

static void count_round(const struct traffic *t, const struct report *r)
{
	if (t->established) {
		s.connections++;
		s.disconnected += t->terminal == DAT_CONNECTION_EVENT_DISCONNECTED;
		s.broken += t->terminal == DAT_CONNECTION_EVENT_BROKEN;
	} else {
		s.unconnected++;
	}
	s.dtos += t->completed;
	s.flushed += t->flushed;
	if (t->terminal && t->terminal_time - r->killed > s.slowest)
		s.slowest = t->terminal_time - r->killed;
}

/* Half of the victims are killed at any moment, the other half once they are connected. */
static struct order next_order(unsigned round, bool undisturbed)
{
	struct order o = { .round = round, .victim_connects = round & 1, .kill_after = -1 };

	if (undisturbed)
		return o;
	o.once_connected = soak_below(&s.random, 2);
	o.endless = soak_below(&s.random, 4) > 0;
	o.kill_after = (o.once_connected ? s.connected : s.life) * 1.1 *
		       soak_below(&s.random, 1000) / 1000;
	return o;
}

static void one_round(unsigned round, bool undisturbed)
{
	struct order o = next_order(round, undisturbed);
	struct report r = { 0 };
	struct traffic t;

	traffic_begin(&t, s.ia, s.pz, 2 * round);
	board->survivor = t.mine;
	board->victim_qual = 0;
	board->connected = board->survivor_connected = false;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	send_order(&o);
	if (begin_connection(&t, &o, &r))
		until_terminal(&t, &o, &r);
	while (!victim_has_ended(&o, &r))
		usleep(100);
	traffic_end(&t);
	count_round(&t, &r);
	if (undisturbed && r.life > s.life)
		s.life = r.life;
	if (undisturbed && r.connected > s.connected)
		s.connected = r.connected;
}

/* A request that comes late holds a descriptor until it is answered. */
static void refuse_late_requests(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(s.cr, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL);
}

static void figures(const char *name, unsigned rounds)
{
	soak_figure(
		"%s: %u rounds: %u victims killed, %u connections (%u DISCONNECTED, %u BROKEN), "
		"%u not established; %llu DTOs complete, %llu of them with an error; latest "
		"terminal "
		"event %.3f s after the end of the peer",
		name, rounds, s.killed, s.connections, s.disconnected, s.broken, s.unconnected,
		(unsigned long long)s.dtos, (unsigned long long)s.flushed, s.slowest);
}

static void kill_peers(const char *name, unsigned rounds)
{
	struct soak_held before, opened;
	DAT_CONN_QUAL qual;

	setenv("DAPL_DBG_TYPE", "1",
	       1);          /* test/life/diagnosis checks the lines about lost peers */
	if (life_on_soft()) /* an RDMA device stays in its namespace */
		own_network();
	board = soak_shared(sizeof *board);
	s.random = soak_stream(~0u);
	start_launcher();
	before = soak_hold();
	open_adapter(&s.ia, &s.pz, &s.async, &s.cr);
	OK(dat_psp_create_any(s.ia, &qual, s.cr, DAT_PSP_CONSUMER_FLAG, &s.psp));
	board->survivor_qual = qual;
	for (unsigned round = 0; round < 2; round++)
		one_round(round, true);
	opened = soak_hold();
	for (unsigned round = 2; round < rounds + 2; round++) {
		one_round(round, false);
		soak_expect_held(&opened, "after a round", refuse_late_requests);
	}
	OK(dat_ia_close(s.ia, DAT_CLOSE_ABRUPT_FLAG));
	if (!life_on_soft())
		before.descriptors +=
			4; /* librdmacm keeps both devices open: two descriptors each */
	soak_expect_held(&before, "after dat_ia_close", NULL);
	figures(name, rounds);
}

static void killed_peer_is_survived(void)
{
	kill_peers(life_on_soft() ? "shared memory" : getenv("LIFE_DEVICE"), soak_rounds(15));
}

static void killed_peer_is_survived_over_tcp(void)
{
	if (!life_on_soft())
		skip("the device has no shared memory to be without");
	setenv("DAPL_SOFT_SHM", "0", 1);
	kill_peers("TCP", soak_rounds(15));
}

static const struct life_case cases[] = {
	CASE(killed_peer_is_survived),
	CASE(killed_peer_is_survived_over_tcp),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
