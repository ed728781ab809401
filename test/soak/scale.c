/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scale.c - many connections: a thousand in one process, and all-to-all between many processes. Each
 * carries a message both ways, which is checked. Prints memory and descriptors per connection.
 * SOAK_PROCESSES and SOAK_ENDPOINTS set the sizes. */
#include "soak.h"
#include "test/own_network.h"
#include "test/variables.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
	MOST = 1024,    /* processes */
	CROWD = 64,     /* processes; far more than processors */
	PACE = 8,       /* connects of a process */
	PATIENCE = 600, /* s: all processes share the processors of the machine */
};

static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

struct memory {
	long own, shared; /* KiB, resident */
};

static struct memory memory_used(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	struct memory m = { 0 };
	char line[200];

	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "RssAnon: %ld", &m.own) == 1)
			continue;
		if (sscanf(line, "RssShmem: %ld", &m.shared) == 1)
			continue;
	}
	if (file)
		fclose(file);
	return m;
}

/* --- one process with a connection to each of its peers ---------------------------------------- */

struct message {
	uint32_t from, to;
};

struct peer {
	DAT_EP_HANDLE ep;
	struct message out, in;
	bool established, received, sent, ended;
};

struct node {
	unsigned rank, size, done;
	struct end end;
	struct peer *peer;
};

/* Shared by all processes. */
static struct board {
	volatile DAT_CONN_QUAL qual[MOST];
	volatile unsigned arrived[8]; /* at each barrier */
	volatile bool failed;
	long own, shared, descriptors; /* sums: KiB, per process with all connections */
	double seconds[2];             /* of connecting, of exchanging */
} *board;

static void open_node(struct node *n, unsigned rank, unsigned size)
{
	DAT_CONN_QUAL qual;

	memset(n, 0, sizeof *n);
	n->rank = rank;
	n->size = size;
	n->peer = calloc(size, sizeof *n->peer);
	OK(end_open(&n->end, LIFE_IA, (struct end_events){ .cr = (DAT_COUNT)size + 8, .conn = 2 * (DAT_COUNT)size + 8,
		    .recv = 4 * (DAT_COUNT)size + 8 }));
	OK(end_register(&n->end, n->peer, size * sizeof *n->peer));
	OK(dat_psp_create_any(n->end.ia, &qual, n->end.cr, DAT_PSP_CONSUMER_FLAG, &n->end.psp));
	board->qual[rank] = qual;
}

static void make_endpoint(struct node *n, unsigned rank)
{
	struct peer *p = &n->peer[rank];
	DAT_LMR_TRIPLET in = end_segment(&n->end, &p->in, sizeof p->in);
	DAT_DTO_COOKIE cookie = { .as_64 = rank };

	OK(dat_ep_create(n->end.ia, n->end.pz, n->end.recv, n->end.recv, n->end.conn, NULL, &p->ep));
	OK(dat_ep_post_recv(p->ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static struct peer *peer_of(struct node *n, DAT_EP_HANDLE ep)
{
	for (unsigned i = 0; i < n->size; i++)
		if (n->peer[i].ep == ep)
			return &n->peer[i];
	fail("process %u: an event of an endpoint that it does not have", n->rank);
}

static void accept_requests(struct node *n)
{
	DAT_CR_PARAM param;
	DAT_EVENT event;
	uint32_t from;

	while (dat_evd_dequeue(n->end.cr, &event) == DAT_SUCCESS) {
		DAT_CR_HANDLE cr = event.event_data.cr_arrival_event_data.cr_handle;

		OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		memcpy(&from, param.private_data, sizeof from);
		EXPECT(from > n->rank && from < n->size && !n->peer[from].ep);
		make_endpoint(n, from);
		OK(dat_cr_accept(cr, n->peer[from].ep, 0, NULL));
	}
}

static void take_connection_events(struct node *n, DAT_EVENT_NUMBER expected)
{
	DAT_EVENT event;
	DAT_COUNT more;

	while (dat_evd_wait(n->end.conn, 1000, 1, &event, &more) == DAT_SUCCESS) {
		struct peer *p = peer_of(n, event.event_data.connect_event_data.ep_handle);
		bool *flag = expected == DAT_CONNECTION_EVENT_ESTABLISHED ? &p->established
									  : &p->ended;

		if (event.event_number != expected || *flag)
			fail("process %u: event 0x%x, expected 0x%x once", n->rank,
			     event.event_number, expected);
		*flag = true;
		n->done++;
	}
}

/* Waits until all processes have come this far. */
static void barrier(struct node *n, unsigned which, void (*meanwhile)(struct node *))
{
	double begin = life_now();

	__atomic_add_fetch(&board->arrived[which], 1, __ATOMIC_SEQ_CST);
	while (board->arrived[which] < n->size) {
		if (meanwhile)
			meanwhile(n);
		if (board->failed || life_now() - begin > PATIENCE)
			fail("process %u: %u of %u processes are at step %u", n->rank,
			     board->arrived[which], n->size, which);
		usleep(1000);
	}
}

static void check_patience(const struct node *n, double begin, const char *what)
{
	if (board->failed || life_now() - begin > PATIENCE)
		fail("process %u of %u: %u %s", n->rank, n->size, n->done, what);
}

/* At most PACE connects are under way: an acceptor waits 10 s for each peer, and all share the processors. */
static void connect_all(struct node *n)
{
	double begin = life_now();
	uint32_t rank = n->rank;
	unsigned next = 0;
	DAT_IA_ATTR attr;

	OK(dat_ia_query(n->end.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	for (n->done = 0; n->done < n->size - 1;) {
		unsigned under_way = 0;

		for (unsigned i = 0; i < next; i++)
			under_way += !n->peer[i].established;
		for (; next < n->rank && under_way < PACE; next++, under_way++) {
			make_endpoint(n, next);
			OK(dat_ep_connect(n->peer[next].ep, attr.ia_address_ptr, board->qual[next],
					  PATIENCE * 1000000u, sizeof rank, &rank,
					  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		}
		accept_requests(n);
		take_connection_events(n, DAT_CONNECTION_EVENT_ESTABLISHED);
		check_patience(n, begin, "connections");
	}
}

static void send_to(struct node *n, unsigned rank)
{
	struct peer *p = &n->peer[rank];
	DAT_LMR_TRIPLET out = end_segment(&n->end, &p->out, sizeof p->out);
	DAT_DTO_COOKIE cookie = { .as_64 = rank };

	p->out = (struct message){ n->rank, rank };
	OK(dat_ep_post_send(p->ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void take_completion(struct node *n, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	unsigned rank = (unsigned)dto->user_cookie.as_64;
	struct peer *p = &n->peer[rank];
	bool *flag = dto->operation == DAT_DTO_RECEIVE ? &p->received : &p->sent;

	EXPECT(dto->status == DAT_DTO_SUCCESS && dto->ep_handle == p->ep && !*flag);
	*flag = true;
	n->done++;
	if (flag == &p->received)
		EXPECT(p->in.from == rank && p->in.to == n->rank);
}

static void exchange_all(struct node *n)
{
	double begin = life_now();
	DAT_EVENT event;
	DAT_COUNT more;

	for (unsigned i = 1; i < n->size; i++)
		send_to(n, (n->rank + i) % n->size);
	for (n->done = 0; n->done < 2 * (n->size - 1);) {
		if (dat_evd_wait(n->end.recv, 10000, 1, &event, &more) == DAT_SUCCESS)
			take_completion(n, &event);
		check_patience(n, begin, "completions");
	}
}

static void disconnect_all(struct node *n)
{
	double begin = life_now();

	for (unsigned i = 0; i < n->rank; i++)
		OK(dat_ep_disconnect(n->peer[i].ep, DAT_CLOSE_GRACEFUL_FLAG));
	for (n->done = 0; n->done < n->size - 1;) {
		take_connection_events(n, DAT_CONNECTION_EVENT_DISCONNECTED);
		check_patience(n, begin, "disconnects");
	}
}

/* Prints what the connections use beyond the open IA. */
static void add_figures(const struct memory *before, int descriptors)
{
	struct memory now = memory_used();

	__atomic_add_fetch(&board->own, now.own - before->own, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&board->shared, now.shared - before->shared, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&board->descriptors, open_descriptors() - descriptors, __ATOMIC_SEQ_CST);
}

static _Noreturn void process(unsigned rank, unsigned size)
{
	struct soak_held held;
	struct memory before;
	struct node n;
	double begin;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	held = soak_hold();
	open_node(&n, rank, size);
	before = memory_used();
	barrier(&n, 0, NULL);
	begin = life_now();
	connect_all(&n);
	barrier(&n, 1, NULL);
	if (rank == 0)
		board->seconds[0] = life_now() - begin;
	begin = life_now();
	exchange_all(&n);
	barrier(&n, 2, NULL);
	if (rank == 0)
		board->seconds[1] = life_now() - begin;
	add_figures(&before, held.descriptors);
	disconnect_all(&n);
	barrier(&n, 3, NULL);
	OK(end_close(&n.end));
	if (open_descriptors() > held.descriptors)
		fail("process %u: %d descriptors are left:%s", rank,
		     open_descriptors() - held.descriptors, what_is_open());
	free(n.peer);
	exit(0);
}

static void all_to_all(const char *name, unsigned size)
{
	unsigned long connections = size * (size - 1ul) / 2;
	static pid_t pids[MOST];

	EXPECT(size >= 2 && size <= MOST);
	if (size >
	    CROWD) /* a peer without a processor may not share its memory in time; then TCP is used */
		setenv("DAPL_DBG_TYPE", "1", 1);
	own_network();
	raise_descriptor_limit();
	board = soak_shared(sizeof *board);
	for (unsigned i = 0; i < size; i++)
		if (!(pids[i] = fork()))
			process(i, size);
	for (unsigned i = 0; i < size; i++) {
		int status;

		EXPECT(waitpid(pids[i], &status, 0) == pids[i]);
		if (status) {
			board->failed = true;
			fail("process %u of %u ends with status 0x%x", i, size, status);
		}
	}
	/* Each connection has an end in two processes. */
	soak_figure("%s: %u processes, %lu connections: connected in %.1f s, exchanged in %.1f s; "
		    "per end of a connection: "
		    "%.1f KiB own and %.1f KiB shared memory resident, %.2f descriptors (those of "
		    "the IA included)",
		    name, size, connections, board->seconds[0], board->seconds[1],
		    (double)board->own / (double)(2 * connections),
		    (double)board->shared / (double)(2 * connections),
		    (double)board->descriptors / (double)(2 * connections));
}

/* --- many endpoints in one process --------------------------------------------------------------------- */

/* Two nodes in one process: a number tells them apart. */
static void many_endpoints(const char *name, unsigned pairs)
{
	struct session s;
	DAT_EP_HANDLE *ep = calloc(2 * pairs, sizeof *ep);
	struct memory before, after;
	int descriptors, used;
	DAT_EVD_HANDLE conn, dto;
	struct session t;
	double begin;

	own_network();
	raise_descriptor_limit();
	OK(session_open(&s, MOMENT));
	EXPECT(session_exchange(&s, 1));
	OK(dat_evd_create(s.ia, 4 * (DAT_COUNT)pairs, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG,
			  &conn));
	OK(dat_evd_create(s.ia, 4 * (DAT_COUNT)pairs, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto));
	before = memory_used();
	descriptors = open_descriptors();
	t = s;
	t.a.conn = t.b.conn = conn;
	t.a.recv = t.b.recv = t.a.request = t.b.request = dto;
	begin = life_now();
	for (unsigned i = 0; i < pairs; i++) {
		for (int side = 0; side < 2; side++)
			OK(dat_ep_create(s.ia, s.a.pz, dto, dto, conn, NULL,
					 &ep[2 * i + (unsigned)side]));
		t.a.ep = ep[2 * i];
		t.b.ep = ep[2 * i + 1];
		OK(session_connect(&t, MOMENT));
	}
	after = memory_used();
	used = open_descriptors() - descriptors;
	EXPECT(session_exchange(&s, 2));
	soak_figure("%s: %u endpoints in one process, connected in %.1f s; per endpoint: %.1f KiB "
		    "own and %.1f KiB shared "
		    "memory resident, %.2f descriptors",
		    name, 2 * pairs, life_now() - begin,
		    (double)(after.own - before.own) / (2.0 * pairs),
		    (double)(after.shared - before.shared) / (2.0 * pairs), used / (2.0 * pairs));
	for (unsigned i = 0; i < 2 * pairs; i++)
		OK(dat_ep_free(ep[i]));
	EXPECT(session_exchange(&s, 3));
	OK(session_close(&s));
	free(ep);
}

/* --- cases ------------------------------------------------------------------------------------------------ */

static void many_endpoints_in_one_process(void)
{
	many_endpoints("shared memory", (unsigned)variable_number("SOAK_ENDPOINTS", 100) / 2);
}

static void many_endpoints_in_one_process_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	many_endpoints("TCP", (unsigned)variable_number("SOAK_ENDPOINTS", 100) / 2);
}

static void processes_connect_all_to_all(void)
{
	all_to_all("shared memory", (unsigned)variable_number("SOAK_PROCESSES", 8));
}

static void processes_connect_all_to_all_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	all_to_all("TCP", (unsigned)variable_number("SOAK_PROCESSES", 8));
}

static const struct life_case cases[] = {
	CASE(many_endpoints_in_one_process),
	CASE(many_endpoints_in_one_process_over_tcp),
	CASE(processes_connect_all_to_all),
	CASE(processes_connect_all_to_all_over_tcp),
};

int main(int argc, char **argv)
{
	if (getenv("SOAK_PROCESSES") || getenv("SOAK_ENDPOINTS"))
		setenv("LIFE_LIMIT", "3600", 0);
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
