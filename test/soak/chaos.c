/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* chaos.c - connects and disconnects over a link that loses, doubles and reorders packets, loses each FIN or
 * RST, or resets connections. Each connect ends in exactly one event, each connection in exactly one
 * terminal event on each side, and nothing is left. Half-open connections send nothing, or a part of a
 * request. --rounds sets the number of connects. */
#include "bad_link.h"
#include "test/own_network.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	AT_ONCE = 48,	/* connects under way */
	TIMEOUT = 20,	/* s of a dat_ep_connect; lost packets are sent again after 1, 3 and 7 s */
	STALL = 100,	/* s without an event; a lost peer is detected after a minute */
	UNCLOSED = 3000, /* connections that the kernel cannot close: each keeps a port for minutes */
	TABLE = 4096,	/* endpoints of the server */
	EVENTS = 2 * TABLE, /* two for each endpoint: no EVD overflows */
};
static const double LINGER = 0.02; /* s: how long an endpoint is kept after its terminal event */

static struct board {
	volatile bool ready, stop;
	volatile uint64_t accepted, established, ended, failed, broken; /* of the server */
	volatile DAT_CONN_QUAL qual;
} *board;

struct side {
	struct end end;
	uint64_t random;
};

/* An endpoint from its connect or accept to its end. */
struct life {
	DAT_EP_HANDLE ep; /* NULL: none */
	bool established;
	DAT_EVENT_NUMBER terminal; /* 0: none yet */
	double begin, end;
};

static void open_end(struct side *e, const char *device, uint64_t stream)
{
	char params[40];

	memset(e, 0, sizeof *e);
	snprintf(params, sizeof params, "%s 0", device);
	life_entry(LIFE_IA, "libdaplsoft.so.2", params);
	e->random = soak_stream(stream);
	OK(end_open(&e->end, LIFE_IA, (struct end_events){ .conn = EVENTS, .recv = EVENTS, .cr = TABLE }));
}

static struct life *life_of(struct life *lives, unsigned n, DAT_EP_HANDLE ep)
{
	for (unsigned i = 0; i < n; i++)
		if (lives[i].ep == ep)
			return &lives[i];
	fail("seed %u: event of an endpoint that has ended", soak_seed);
}

static void begin_life(struct side *e, struct life *life)
{
	life->begin = life_now();
	life->established = false;
	life->terminal = (DAT_EVENT_NUMBER)0;
	OK(dat_ep_create(e->end.ia, e->end.pz, e->end.recv, e->end.recv, e->end.conn, NULL, &life->ep));
}

/* Checks an event: the connection must have been established before it, or must not have been. */
static void expect_state(const struct life *life, const DAT_EVENT *event, bool established)
{
	if (life->terminal || life->established != established)
		fail("seed %u: event 0x%x on a connection that %s established; terminal event "
		     "before: 0x%x, %.6f s ago",
		     soak_seed, event->event_number, life->established ? "is" : "was not",
		     life->terminal, life->terminal ? life_now() - life->end : 0);
}

static void end_life(struct life *life, const DAT_EVENT *event)
{
	life->terminal = event->event_number;
	life->end = life_now();
}

/* An endpoint is kept for a while after its terminal event, so that a second one would be seen. */
static void free_ended(struct life *lives, unsigned n, double age)
{
	double now = life_now();

	for (unsigned i = 0; i < n; i++)
		if (lives[i].ep && lives[i].terminal && now - lives[i].end >= age) {
			OK(dat_ep_free(lives[i].ep));
			lives[i].ep = NULL;
		}
}

/* Disconnects. Both sides may do so at the same time. The call fails if the connection has just ended. */
static void maybe_disconnect(struct side *e, const struct life *life, unsigned in_ten)
{
	if (soak_below(&e->random, 10) < in_ten)
		dat_ep_disconnect(life->ep, soak_below(&e->random, 2) ? DAT_CLOSE_ABRUPT_FLAG
								      : DAT_CLOSE_GRACEFUL_FLAG);
}

/* --- the server ------------------------------------------------------------------------------ */

static void accept_requests(struct side *e, struct life *lives)
{
	DAT_EVENT event;
	unsigned i;

	while (dat_evd_dequeue(e->end.cr, &event) == DAT_SUCCESS) {
		for (i = 0; i < TABLE && lives[i].ep; i++)
			;
		EXPECT(i < TABLE);
		begin_life(e, &lives[i]);
		board->accepted++;
		if (dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, lives[i].ep, 0,
				  NULL) != DAT_SUCCESS) {
			board->failed++;
			OK(dat_ep_free(lives[i].ep));
			lives[i].ep = NULL;
		}
	}
}

static void server_event(struct side *e, struct life *lives, const DAT_EVENT *event)
{
	struct life *life = life_of(lives, TABLE, event->event_data.connect_event_data.ep_handle);

	switch ((int)event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		expect_state(life, event, false);
		life->established = true;
		board->established++;
		maybe_disconnect(e, life, 7);
		return;
	case DAT_CONNECTION_EVENT_BROKEN:
		board->broken++;
		/* fall through */
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		expect_state(life, event, true);
		board->ended++;
		break;
	default:
		expect_state(life, event, false);
		EXPECT(event->event_number == DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		board->failed++;
	}
	end_life(life, event);
}

static void serve(const struct bad_link *link)
{
	static struct life lives[TABLE];
	struct soak_held before, opened;
	DAT_CONN_QUAL qual;
	DAT_EVENT event;
	struct side e;
	double idle;

	if (link)
		bad_link_enter_server(link);
	before = soak_hold();
	open_end(&e, link ? BAD_LINK_DEVICE : "lo", 2);
	OK(dat_psp_create_any(e.end.ia, &qual, e.end.cr, DAT_PSP_CONSUMER_FLAG, &e.end.psp));
	opened = soak_hold();
	board->qual = qual;
	board->ready = true;
	idle = life_now();
	while (!board->stop || board->ended + board->failed < board->accepted) {
		DAT_COUNT n;

		free_ended(lives, TABLE, LINGER);
		accept_requests(&e, lives);
		for (int i = 0;
		     i < AT_ONCE && dat_evd_wait(e.end.conn, 1000, 1, &event, &n) == DAT_SUCCESS; i++) {
			server_event(&e, lives, &event);
			idle = life_now();
		}
		if (board->stop && life_now() - idle > STALL)
			fail("seed %u: %llu of %llu accepted connections have no terminal event",
			     soak_seed,
			     (unsigned long long)(board->accepted - board->ended - board->failed),
			     (unsigned long long)board->accepted);
	}
	free_ended(lives, TABLE, 0);
	EXPECT(dat_evd_dequeue(e.end.conn, &event) != DAT_SUCCESS);
	EXPECT(dat_evd_dequeue(e.end.async, &event) != DAT_SUCCESS);
	if (link) /* on one host the first connection makes what the device needs for shared memory */
		soak_expect_held(&opened, "the server after all connections", NULL);
	OK(end_close(&e.end));
	soak_expect_held(&before, "the server after dat_ia_close", NULL);
	exit(0);
}

static pid_t start_server(const struct bad_link *link)
{
	double begin = life_now();
	pid_t pid;

	board = soak_shared(sizeof *board);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(link);
	}
	while (!board->ready) {
		if (life_now() - begin > MOMENT / 1e6 * SLOWER)
			fail("the server is not ready");
		usleep(1000);
	}
	return pid;
}

static void end_server(pid_t pid)
{
	int status;

	board->stop = true;
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("seed %u: the server ends with status 0x%x", soak_seed, status);
}

/* --- the client --------------------------------------------------------------------------------- */

struct outcome {
	unsigned established, disconnected, broken, timed_out, unreachable, rejected;
	double slowest; /* s from dat_ep_connect to its event */
};

static void client_connect(struct side *e, struct life *life, const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address) };

	begin_life(e, life);
	OK(dat_ep_connect(life->ep, (DAT_IA_ADDRESS_PTR)&to, board->qual, TIMEOUT * 1000000, 0,
			  NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void client_event(struct side *e, struct life *lives, const DAT_EVENT *event,
			 struct outcome *o)
{
	struct life *life = life_of(lives, AT_ONCE, event->event_data.connect_event_data.ep_handle);
	double took = life_now() - life->begin;

	if (!life->established && took > o->slowest)
		o->slowest = took;
	switch ((int)event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		expect_state(life, event, false);
		life->established = true;
		o->established++;
		/* the client disconnects what the server does not, always */
		maybe_disconnect(e, life, 10);
		return;
	case DAT_CONNECTION_EVENT_DISCONNECTED: o->disconnected++; break;
	case DAT_CONNECTION_EVENT_BROKEN: o->broken++; break;
	case DAT_CONNECTION_EVENT_TIMED_OUT: o->timed_out++; break;
	case DAT_CONNECTION_EVENT_UNREACHABLE: o->unreachable++; break;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED: o->rejected++; break;
	default: fail("seed %u: event 0x%x of a client", soak_seed, event->event_number);
	}
	expect_state(life, event,
		     event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			     event->event_number == DAT_CONNECTION_EVENT_BROKEN);
	end_life(life, event);
}

/* Makes `connects` connections, with AT_ONCE in progress. */
static struct outcome connect_many(struct side *e, unsigned connects, const char *address)
{
	static struct life lives[AT_ONCE];
	struct outcome o = { 0 };
	double idle = life_now();
	unsigned begun = 0, under_way = 0;
	DAT_EVENT event;
	DAT_COUNT n;

	memset(lives, 0, sizeof lives);
	do {
		under_way = 0;
		free_ended(lives, AT_ONCE, LINGER);
		for (unsigned i = 0; i < AT_ONCE; i++) {
			if (!lives[i].ep && begun < connects) {
				client_connect(e, &lives[i], address);
				begun++;
			}
			under_way += lives[i].ep != NULL;
		}
		while (under_way && dat_evd_wait(e->end.conn, 1000, 1, &event, &n) == DAT_SUCCESS) {
			client_event(e, lives, &event, &o);
			idle = life_now();
			if (!n)
				break;
		}
		if (life_now() - idle > STALL)
			fail("seed %u: %u of %u connects have no terminal event", soak_seed,
			     under_way, begun);
	} while (under_way);
	EXPECT(dat_evd_dequeue(e->end.conn, &event) != DAT_SUCCESS);
	EXPECT(dat_evd_dequeue(e->end.async, &event) != DAT_SUCCESS);
	return o;
}

static void report(const char *name, unsigned connects, const struct outcome *o,
		   const struct bad_link *l)
{
	soak_figure("%s: %u connects: %u established, %u timed out, %u unreachable, %u rejected; "
		    "ends: %u DISCONNECTED, "
		    "%u BROKEN; server: %llu accepted, %llu failed, %llu BROKEN; latest event of a "
		    "connect %.1f s; "
		    "%llu packets: %llu lost, %llu doubled, %llu delayed, %llu resets, %llu FIN "
		    "and %llu RST dropped",
		    name, connects, o->established, o->timed_out, o->unreachable, o->rejected,
		    o->disconnected, o->broken, (unsigned long long)board->accepted,
		    (unsigned long long)board->failed, (unsigned long long)board->broken,
		    o->slowest, (unsigned long long)l->packets, (unsigned long long)l->lost,
		    (unsigned long long)l->doubles, (unsigned long long)l->delays,
		    (unsigned long long)l->resets, (unsigned long long)l->fins,
		    (unsigned long long)l->rsts);
}

static void be_quiet(void)
{
	setenv("DAPL_DBG_TYPE", "1",
	       1); /* test/life/diagnosis checks the lines about failures */
}

static void connects_over(const char *name, struct bad_link *link, unsigned connects)
{
	struct soak_held before = soak_hold(), opened;
	pid_t pid = start_server(link);
	struct outcome o;
	struct side e;

	open_end(&e, BAD_LINK_DEVICE, 1);
	opened = soak_hold();
	o = connect_many(&e, connects, BAD_LINK_SERVER);
	/* Over a link that works, the server gets the end of all connections, and the kernel closes its
	 * sockets. */
	link->loss = link->reset = link->delayed = link->doubled = 0;
	link->drop_fin = link->drop_rst = false;
	soak_expect_held(&opened, "the client after all connections", NULL);
	end_server(pid);
	OK(end_close(&e.end));
	soak_expect_held(&before, "the client after dat_ia_close", NULL);
	EXPECT(o.disconnected + o.broken == o.established);
	EXPECT(o.established + o.timed_out + o.unreachable + o.rejected == connects);
	report(name, connects, &o, link);
	bad_link_end(link);
}

/* --- cases ---------------------------------------------------------------------------------------- */

static void each_connect_ends_once_over_a_lossy_link(void)
{
	struct bad_link *link;

	be_quiet();
	link = bad_link_make();
	link->loss = 50;
	link->doubled = 50;
	link->delayed = 200;
	connects_over("5 % loss, 5 % duplication, 20 % reordering", link, soak_rounds(100));
}

static void simultaneous_disconnects_end_once(void)
{
	struct bad_link *link;

	be_quiet();
	link = bad_link_make();
	link->delayed = 500;
	connects_over("simultaneous disconnects", link, soak_rounds(400));
}

static void connections_that_are_reset_end_once(void)
{
	struct bad_link *link;

	be_quiet();
	link = bad_link_make();
	link->reset = 100;
	connects_over("10 % resets", link, soak_rounds(200));
}

/* The close notification is data of the stream: its loss is repaired, and the FIN is not needed. */
static void connections_whose_fin_is_lost_end_once(void)
{
	unsigned rounds = soak_rounds(200);
	struct bad_link *link;

	be_quiet();
	link = bad_link_make();
	link->drop_fin = link->drop_rst = true;
	connects_over("each FIN and RST lost", link, rounds < UNCLOSED ? rounds : UNCLOSED);
}

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* A socket that is connected to the service point; sends a part of a request, or nothing. */
static int stranger(uint64_t *random)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons((uint16_t)board->qual) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char request[] = "MPA ID Req Frame";

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	if (soak_below(random, 2) &&
	    send(fd, request, soak_below(random, sizeof request), MSG_NOSIGNAL) < 0)
		return fd; /* closed already, for a newer one */
	return fd;
}

static void connections_are_made_among_half_open_strangers(void)
{
	unsigned strangers = soak_rounds(1000), connected = 0;
	uint64_t random = soak_stream(3);
	struct outcome o, sum = { 0 };
	struct side e;
	pid_t pid;
	int *fds;

	be_quiet();
	own_network();
	raise_descriptor_limit();
	if (strangers > 5000)
		strangers = 5000; /* the long forms of the other cases have more rounds */
	fds = calloc(strangers, sizeof *fds);
	pid = start_server(NULL);
	open_end(&e, "lo", 1);
	for (unsigned i = 0; i < strangers; i++) {
		fds[i] = stranger(&random);
		connected += fds[i] >= 0;
		if (i % 100 == 99) {
			o = connect_many(&e, 2, "127.0.0.1");
			EXPECT(o.established == 2);
			sum.established += o.established;
			sum.slowest = o.slowest > sum.slowest ? o.slowest : sum.slowest;
		}
	}
	for (unsigned i = 0; i < strangers; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(fds);
	OK(end_close(&e.end));
	end_server(pid);
	soak_figure("%u half-open strangers, %u of them connected; beside them %u of %u connects "
		    "established, "
		    "the slowest in %.2f s",
		    strangers, connected, sum.established, strangers / 100 * 2, sum.slowest);
}

static const struct life_case cases[] = {
	CASE(each_connect_ends_once_over_a_lossy_link),
	CASE(simultaneous_disconnects_end_once),
	CASE(connections_that_are_reset_end_once),
	CASE(connections_whose_fin_is_lost_end_once),
	CASE(connections_are_made_among_half_open_strangers),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
