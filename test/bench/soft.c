/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft.c - what the software device costs, beside what the machine can do. Two processes of
 * one host, a processor each, both polling; of many short batches the median counts, so that
 * what else runs disturbs little.
 *
 *   soft limits              hand-over of a cache line, memcpy, plain TCP
 *   soft data IA [TEXT]      latency and bandwidth; or only the rows whose name has TEXT in it
 *   soft turns IA            ... over TCP in turn with plain TCP, as ratios
 *   soft mapped IA           writes to and reads of memory that the other maps
 *   soft connect IA N        connections a second, N endpoints at once, their memory
 *   soft endpoints IA N      latency between two processes that share N connections
 *   soft processes IA N      round trips of N pairs of processes at once
 *
 * A line of output: what, how much, unit, separated by tabs. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <dat/udat.h>

enum {
	BATCHES = 300, ROUNDS = 100, LARGE = 1 << 20, MIDDLE = 64 << 10, SMALL = 8,
	ASLEEP_US = 20000, ACCESSES = 1000, PAUSE_US = 500, STREAM = 16, STREAMS = 60, DEPTH = 16, AT_ONCE = 32, ROW_S = 8, GIVE_UP_S = 300,
	TURNS = 25, TURN_BATCHES = 8,
};

static int me;			/* 0: measures; 1: the other process */

static struct shared {		/* between the two, for everything that is not measured */
	_Alignas(128) uint64_t ping;
	_Alignas(128) uint64_t pong;
	_Alignas(128) uint32_t barrier[2];
	uint64_t last;			/* round of a row; UINT64_MAX: not known yet */
	uint64_t target[2];
	uint32_t context[2];
	uint16_t port;
	sem_t over;			/* the other one may wake up */
	long wakes;			/* it woke up so often before */
	pid_t other;
	char *block;			/* of the other */
} *shared;

static void fail(const char *what, const char *why)
{
	fprintf(stderr, "soft: %s: %s\n", what, why);
	exit(1);
}

static void good(DAT_RETURN rc, const char *what)
{
	const char *major = "?", *minor = "?";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail(what, major);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void report(const char *what, double value, const char *unit)
{
	if (!me)
		printf("%s\t%.3f\t%s\n", what, value, unit);
	fflush(stdout);
}

/* Waits for the other process. */
static void together(void)
{
	uint32_t mine = __atomic_add_fetch(&shared->barrier[me], 1, __ATOMIC_SEQ_CST);

	while (__atomic_load_n(&shared->barrier[!me], __ATOMIC_SEQ_CST) < mine)
		sched_yield();
}

static struct shared *share(unsigned n)
{
	return mmap(NULL, n * sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		    -1, 0);
}

/* Each side has a processor of its own, if there are two. */
static void settle_on_processor(void)
{
	cpu_set_t all, one;
	int cpu = 0, nth;

	sched_getaffinity(0, sizeof all, &all);
	nth = CPU_COUNT(&all) > 1 ? me : 0;
	for (; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &all) && !nth--)
			break;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof one, &one);
}

/* Starts the other process. */
static pid_t split(void)
{
	pid_t child;

	shared = share(1);
	sem_init(&shared->over, 1, 0);
	child = fork();
	if (child < 0)
		fail("fork", strerror(errno));
	me = !child;
	alarm(GIVE_UP_S);
	settle_on_processor();
	return child;
}

static int join(pid_t child)
{
	int status = 0;

	if (me)
		exit(0);
	waitpid(child, &status, 0);
	return status != 0;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *took, int n)
{
	qsort(took, n, sizeof *took, by_size);
	return took[n / 2];
}

/* Runs one side's part of `rounds` round trips, `most` times; half the median of them, in us, for
 * side 0. The sides don't wait for one another between batches: on a busy machine that takes long.
 * Side 0 says in time which round is the last. */
static double half_round(void (*round)(uint64_t), int rounds, int most)
{
	double took[BATCHES], begin = now();
	bool last = false;
	uint64_t n = 0;
	int batches = 0;

	if (!me)
		__atomic_store_n(&shared->last, UINT64_MAX, __ATOMIC_RELEASE);
	together();
	while (!me && !last) {
		last = batches == most - 1 || now() - begin > ROW_S;
		if (last)
			__atomic_store_n(&shared->last, n + rounds, __ATOMIC_RELEASE);
		took[batches] = now();
		for (int i = 0; i < rounds; i++)
			round(++n);
		took[batches] = now() - took[batches];
		batches++;
	}
	while (me && n != __atomic_load_n(&shared->last, __ATOMIC_ACQUIRE))
		round(++n);
	return me ? 0 : median(took, batches) / rounds / 2 * 1e6;
}

static void ping_pong(const char *what, void (*round)(uint64_t), int rounds)
{
	report(what, half_round(round, rounds, BATCHES), "us");
}

/* --- limits ---------------------------------------------------------------------------- */

static void hand_over(uint64_t n)
{
	uint64_t *mine = me ? &shared->pong : &shared->ping;
	uint64_t *other = me ? &shared->ping : &shared->pong;

	if (!me)
		__atomic_store_n(mine, n, __ATOMIC_RELEASE);
	for (unsigned i = 1; __atomic_load_n(other, __ATOMIC_ACQUIRE) != n; i++)
		if (i % 100000 == 0)
			sched_yield();
	if (me)
		__atomic_store_n(mine, n, __ATOMIC_RELEASE);
}

/* Both have seen the last round when the words are used anew. */
static void hand_overs(void)
{
	ping_pong("cache line hand-over", hand_over, 1000);
	together();
	shared->ping = shared->pong = 0;
	together();
}

static void copy_speed(void)
{
	char *from = malloc(LARGE), *to = malloc(LARGE);
	double took[BATCHES];

	memset(from, 1, LARGE);
	memset(to, 2, LARGE);
	for (int i = 0; !me && i < BATCHES; i++) {
		took[i] = now();
		memcpy(to, from, LARGE);
		__asm__ volatile("" : : "r"(to) : "memory");
		took[i] = now() - took[i];
	}
	if (!me)
		report("memcpy of 1 MiB", LARGE / median(took, BATCHES) / 1e9, "GB/s");
	free(from);
	free(to);
}

static int sock;
static char *block;
static size_t block_size;

static void tcp_connect(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof a;
	int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	if (!me) {
		if (bind(listener, (struct sockaddr *)&a, sizeof a) || listen(listener, 1))
			fail("listen", strerror(errno));
		getsockname(listener, (struct sockaddr *)&a, &length);
		shared->port = a.sin_port;
	}
	together();
	a.sin_port = shared->port;
	if (!me) {
		sock = accept(listener, NULL, NULL);
	} else {
		sock = listener;
		if (connect(sock, (struct sockaddr *)&a, sizeof a))
			fail("connect", strerror(errno));
	}
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	block = calloc(1, LARGE);
}

/* MSG_DONTWAIT: spinning. */
static void tcp_take(size_t size, int flags)
{
	unsigned empty = 0;

	for (size_t got = 0; got < size;) {
		ssize_t n = recv(sock, block + got, size - got, flags);

		if (n > 0)
			got += n;
		else if (!n || errno != EAGAIN)
			fail("recv", n ? strerror(errno) : "end");
		else if (++empty % 500 == 0)
			sched_yield();
	}
}

static void tcp_give(size_t size)
{
	for (size_t sent = 0; sent < size;) {
		ssize_t n = send(sock, block + sent, size - sent, 0);

		if (n < 0)
			fail("send", strerror(errno));
		sent += n;
	}
}

static void tcp_round(uint64_t n)
{
	(void)n;
	if (!me)
		tcp_give(block_size);
	tcp_take(block_size, MSG_DONTWAIT);
	if (me)
		tcp_give(block_size);
}

/* Ways to read a stream: how much at once, spinning or asleep. */
static const struct tcp_way { size_t piece; int flags; } tcp_way[] = {
	{ LARGE, 0 }, { LARGE, MSG_DONTWAIT }, { MIDDLE, 0 }, { MIDDLE, MSG_DONTWAIT },
};
enum { WAYS = sizeof tcp_way / sizeof *tcp_way };

/* In GB/s. */
static double tcp_stream(const struct tcp_way *way, int batches)
{
	double took[STREAMS];

	together();
	for (int batch = 0; batch < batches; batch++) {
		took[batch] = now();
		for (int i = 0; !me && i < STREAM; i++)
			tcp_give(LARGE);
		for (size_t i = 0; me && i < STREAM * (size_t)LARGE; i += way->piece)
			tcp_take(way->piece, way->flags);
		if (me)
			tcp_give(1);
		else
			tcp_take(1, 0);
		took[batch] = now() - took[batch];
	}
	return STREAM * (double)LARGE / median(took, batches) / 1e9;
}

static void tcp_streams(void)
{
	double best = 0, speed;

	for (int i = 0; i < WAYS; i++) {
		speed = tcp_stream(&tcp_way[i], STREAMS);
		if (speed > best)
			best = speed;
	}
	report("plain TCP stream 1 MiB", best, "GB/s");
}

/* The other process sleeps until we are done, and counts how often a thread of it ran. */
static void sleep_meanwhile(void)
{
	struct rusage before, after;

	usleep(ASLEEP_US);
	getrusage(RUSAGE_SELF, &before);
	while (sem_wait(&shared->over))
		;
	getrusage(RUSAGE_SELF, &after);
	shared->wakes = after.ru_nvcsw - before.ru_nvcsw - 1;
}

/* The median time that something takes, done now and then while the other process sleeps. */
static double while_it_sleeps(void (*act)(size_t), size_t bytes)
{
	static double took[ACCESSES];
	double begin;

	if (me) {
		sleep_meanwhile();
		return 0;
	}
	usleep(2 * ASLEEP_US);
	for (int i = 0; i < ACCESSES; i++) {
		for (begin = now(); now() - begin < PAUSE_US / 1e6;)
			;
		begin = now();
		act(bytes);
		took[i] = now() - begin;
	}
	sem_post(&shared->over);
	return median(took, ACCESSES) * 1e6;
}

/* Into the other's memory, by the kernel. */
static void copy_over(size_t bytes)
{
	struct iovec from = { block, bytes }, to = { shared->block, bytes };

	if (process_vm_writev(shared->other, &from, 1, &to, 1, 0) != (ssize_t)bytes)
		fail("process_vm_writev", strerror(errno));
}

static void kernel_copy(void)
{
	double took;

	if (me) {
		shared->other = getpid();
		shared->block = block;
	}
	together();
	took = while_it_sleeps(copy_over, SMALL);
	together();
	report("process_vm_writev 8 B to a sleeping process", took, "us");
}

static int limits(void)
{
	pid_t child = split();

	hand_overs();
	copy_speed();
	tcp_connect();
	block_size = SMALL;
	ping_pong("plain TCP 8 B", tcp_round, ROUNDS);
	block_size = MIDDLE;
	ping_pong("plain TCP 64 KiB", tcp_round, 20);
	tcp_streams();
	kernel_copy();
	return join(child);
}

/* --- DAT: objects -------------------------------------------------------------------------- */

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, conn_evd, evd;
static DAT_PZ_HANDLE pz;
static DAT_EP_HANDLE ep;
static DAT_LMR_CONTEXT lmr_context;
static char *out, *in, *target;
static unsigned received, completed, posted, spent;	/* receives to post again */

static void open_ia(const char *name, int depth)
{
	good(dat_ia_open((char *)name, 8, &async_evd, &ia), "dat_ia_open");
	good(dat_pz_create(ia, &pz), "dat_pz_create");
	good(dat_evd_create(ia, depth, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			    &conn_evd), "dat_evd_create");
	good(dat_evd_create(ia, depth, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &evd),
	     "dat_evd_create");
}

/* Peers may write to and read what is registered last: from `at` on, which lies in it. */
static void register_target(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, char *at,
			    DAT_LMR_CONTEXT *context)
{
	DAT_LMR_HANDLE lmr;
	DAT_VLEN size;
	DAT_VADDR address;

	good(dat_lmr_create(ia, type, region, length, pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, &lmr,
			    context, &shared->context[me], &size, &address), "dat_lmr_create");
	target = at;
	shared->target[me] = (uintptr_t)at;
}

static void register_memory(void)
{
	DAT_REGION_DESCRIPTION region;

	out = aligned_alloc(4096, 3 * LARGE);
	memset(out, 0, 3 * LARGE);
	in = out + LARGE;
	region.for_va = out;
	register_target(DAT_MEM_TYPE_VIRTUAL, region, 3 * LARGE, in + LARGE, &lmr_context);
}

/* What is written to is a shared mapping from now on, such as peers map. */
static void target_mapped(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char name[DAT_LMR_COOKIE_SIZE] = "bench", *at;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;

	if (fd < 0 || ftruncate(fd, LARGE) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		fail("memfd_create", strerror(errno));
	at = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		fail("mmap", strerror(errno));
	name[sizeof name - 1] = (char)('0' + me);
	region.for_shared_memory = (DAT_SHARED_MEMORY){ at, &name };
	register_target(DAT_MEM_TYPE_SHARED_VIRTUAL, region, LARGE, at, &context);
	close(fd);
	together();
}

static void post_receive(void)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)in, .segment_length = LARGE,
			       .lmr_context = lmr_context };
	static const DAT_DTO_COOKIE cookie;

	good(dat_ep_post_recv(ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_recv");
}

static void post(size_t size, bool write)
{
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)out, .segment_length = size,
				 .lmr_context = lmr_context };
	DAT_RMR_TRIPLET to = { .virtual_address = shared->target[!me], .segment_length = size,
			       .rmr_context = shared->context[!me] };
	static const DAT_DTO_COOKIE cookie;

	posted++;
	if (write)
		good(dat_ep_post_rdma_write(ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG),
		     "dat_ep_post_rdma_write");
	else
		good(dat_ep_post_send(ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		     "dat_ep_post_send");
}

static bool waits;		/* in dat_evd_wait, and does not poll */
static DAT_CNO_HANDLE cno;	/* NULL, or evd's: a thread waits for it after empty polls */

/* Takes what is there, or waits for it. */
static void poll_once(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVD_HANDLE triggered;
	DAT_EVENT event;
	DAT_COUNT more;

	if (waits) {
		good(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	} else if (dat_evd_dequeue(evd, &event) != DAT_SUCCESS) {
		if (cno)
			good(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &triggered), "dat_cno_wait");
		return;
	}
	dto = &event.event_data.dto_completion_event_data;
	if (event.event_number != DAT_DTO_COMPLETION_EVENT || dto->status != DAT_DTO_SUCCESS)
		fail("completion", "not a success");
	if (dto->operation == DAT_DTO_RECEIVE) {
		received++;
		spent++;
	} else {
		completed++;
	}
}

static void renew(void)
{
	for (; spent; spent--)
		post_receive();
}

static DAT_EVENT wait_for(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	good(dat_evd_wait(conn_evd, 20000000, 1, &event, &more), "dat_evd_wait");
	if (event.event_number != number)
		fail("connection", "not the event that was expected");
	return event;
}

static void own_address(struct sockaddr_in *to)
{
	DAT_IA_ATTR attr;

	good(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	memcpy(to, attr.ia_address_ptr, sizeof *to);
}

static void listen_any(DAT_PSP_HANDLE *psp)
{
	DAT_CONN_QUAL port;

	good(dat_psp_create_any(ia, &port, conn_evd, DAT_PSP_CONSUMER_FLAG, psp),
	     "dat_psp_create_any");
	shared->port = port;
}

static void connect_ep(DAT_EP_HANDLE from)
{
	struct sockaddr_in to;

	own_address(&to);
	good(dat_ep_connect(from, (DAT_IA_ADDRESS_PTR)&to, shared->port, 20000000, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), "dat_ep_connect");
}

/* --- DAT: data -------------------------------------------------------------------------------- */

static const char *only = "";	/* rows with that in their name */

static bool wanted(const char *what)
{
	return strstr(what, only) != NULL;
}

static size_t size;
static double answer_after;	/* seconds: one that computes meanwhile */
static uint64_t streams;	/* done; side 0 says so in shared->ping */

/* For `answer_after` seconds. To ask the clock would be a quarter of a round trip. */
static void compute(void)
{
	if (!answer_after)
		return;
	for (double begin = now(); now() - begin < answer_after;)
		;
}

/* The receiver of a message answers first, and posts the receive again while that is under way, as
 * ucx_perftest does. */
static void send_round(uint64_t n)
{
	if (!me)
		post(size, false);
	renew();
	while (received < n)
		poll_once();
	if (me) {
		compute();
		post(size, false);
	}
}

/* The last 8 bytes of what is written are the number of the round. They may be there without
 * a poll of ours: completions must be taken all the same. The other has seen the number before when
 * it's overwritten, so that write is done with our memory. */
static void write_number(uint64_t n)
{
	*(uint64_t *)(out + size - 8) = n;
	post(size, true);
}

static void write_round(uint64_t n)
{
	uint64_t *seen = (uint64_t *)(target + size - 8);

	while (posted - completed >= DEPTH)
		poll_once();
	if (!me)
		write_number(n);
	while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != n)
		poll_once();
	if (me)
		write_number(n);
}

static void finish(void)
{
	while (completed < posted)
		poll_once();
	renew();
	together();
	received = completed = posted = 0;
	memset(target, 0, LARGE);
	together();
}

static double data_half_round(size_t bytes, bool write, int rounds, int most)
{
	double us;

	size = bytes;
	finish();
	us = half_round(write ? write_round : send_round, rounds, most);
	finish();
	return us;
}

static void data_ping_pong(const char *what, size_t bytes, bool write, int rounds)
{
	if (wanted(what))
		report(what, data_half_round(bytes, write, rounds, BATCHES), "us");
}

/* The median round trip between two waiting threads, without the time that the answer takes. */
static void both_wait(const char *what, double us, bool for_cno)
{
	static double took[ACCESSES];

	if (!wanted(what))
		return;
	size = SMALL;
	answer_after = us / 1e6;
	finish();
	waits = !for_cno;
	if (for_cno) {
		good(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
		good(dat_evd_modify_cno(evd, cno), "dat_evd_modify_cno");
	}
	for (int i = 0; i < ACCESSES; i++) {
		double begin = now();

		send_round(i + 1);
		took[i] = now() - begin - answer_after;
	}
	if (for_cno) {
		good(dat_evd_modify_cno(evd, DAT_HANDLE_NULL), "dat_evd_modify_cno");
		good(dat_cno_free(cno), "dat_cno_free");
		cno = DAT_HANDLE_NULL;
	}
	waits = false;
	answer_after = 0;
	finish();
	report(what, median(took, ACCESSES) * 1e6, "us");
}

/* Until the last has completed, which says that it is in place. In bytes a second, for side 0. */
static double stream_speed(size_t bytes, bool write, unsigned count, int most)
{
	double took[STREAMS], begin = now();
	int batches = 0;

	finish();
	for (; !me && batches < most && now() - begin < ROW_S; batches++) {
		took[batches] = now();
		for (unsigned i = 0; i < count; i++) {
			while (posted - completed >= DEPTH)
				poll_once();
			post(bytes, write);
		}
		while (completed < posted)
			poll_once();
		took[batches] = now() - took[batches];
	}
	if (!me)
		__atomic_add_fetch(&shared->ping, 1, __ATOMIC_RELEASE);
	while (me && __atomic_load_n(&shared->ping, __ATOMIC_ACQUIRE) == streams) {
		poll_once();
		renew();
	}
	streams++;
	finish();
	return me ? 0 : count * (double)bytes / median(took, batches);
}

static void stream(const char *what, size_t bytes, bool write, unsigned count)
{
	double speed;

	if (!wanted(what))
		return;
	speed = stream_speed(bytes, write, count, STREAMS);
	report(what, bytes < 4096 ? speed / bytes / 1e6 : speed / 1e9,
	       bytes < 4096 ? "million/s" : "GB/s");
}

static void read_back(size_t bytes)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)in, .segment_length = bytes,
			       .lmr_context = lmr_context };
	DAT_RMR_TRIPLET from = { .virtual_address = shared->target[!me], .segment_length = bytes,
				 .rmr_context = shared->context[!me] };
	static const DAT_DTO_COOKIE cookie;

	posted++;
	good(dat_ep_post_rdma_read(ep, 1, &to, cookie, &from, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_rdma_read");
}

static void write_and_wait(size_t bytes)
{
	post(bytes, true);
	while (completed < posted)
		poll_once();
}

static void read_and_wait(size_t bytes)
{
	read_back(bytes);
	while (completed < posted)
		poll_once();
}

/* Time until the completion of one access. */
static void to_sleeper(const char *what, void (*act)(size_t), size_t bytes)
{
	double took;

	if (!wanted(what))
		return;
	finish();
	took = while_it_sleeps(act, bytes);
	finish();
	report(what, took, "us");
	report("  and it woke up", shared->wakes, "times");
}

static void data_rows(void)
{
	hand_overs();
	data_ping_pong("send 8 B", SMALL, false, ROUNDS);
	data_ping_pong("RDMA write 8 B until seen", SMALL, true, ROUNDS);
	data_ping_pong("send 64 KiB", MIDDLE, false, 20);
	data_ping_pong("RDMA write 64 KiB until seen", MIDDLE, true, 20);
	both_wait("send 8 B and back, both in dat_evd_wait", 0, false);
	both_wait("  if the other computes for 100 us", 100, false);
	both_wait("send 8 B and back, both in dat_cno_wait", 0, true);
	both_wait("  if the other computes for 100 us", 100, true);
	stream("send 8 B stream", SMALL, false, 2000);
	stream("send 1 MiB stream", LARGE, false, STREAM);
	stream("RDMA write 1 MiB stream", LARGE, true, STREAM);
	to_sleeper("RDMA write 8 B to a sleeping process", write_and_wait, SMALL);
	to_sleeper("RDMA read 8 B from a sleeping process", read_and_wait, SMALL);
	to_sleeper("RDMA write 16 KiB to a sleeping process", write_and_wait, 16 << 10);
	to_sleeper("RDMA read 16 KiB from a sleeping process", read_and_wait, 16 << 10);
}

/* Each row once in its turn, over and over: so the two are compared while the machine runs at one
 * speed. Plain TCP's stream counts in the way of reading that is the fastest by its median. */
static void turn_rows(void)
{
	static double plain[WAYS][TURNS], send[TURNS], write[TURNS];
	static double plain_small[TURNS], plain_middle[TURNS], small[TURNS], middle[TURNS];
	double best = 0;

	tcp_connect();
	for (int i = 0; i < TURNS; i++) {
		block_size = SMALL;
		plain_small[i] = half_round(tcp_round, ROUNDS, TURN_BATCHES);
		small[i] = data_half_round(SMALL, false, ROUNDS, TURN_BATCHES);
		block_size = MIDDLE;
		plain_middle[i] = half_round(tcp_round, 20, TURN_BATCHES);
		middle[i] = data_half_round(MIDDLE, false, 20, TURN_BATCHES);
		for (int way = 0; way < WAYS; way++)
			plain[way][i] = tcp_stream(&tcp_way[way], TURN_BATCHES);
		send[i] = stream_speed(LARGE, false, STREAM, TURN_BATCHES);
		write[i] = stream_speed(LARGE, true, STREAM, TURN_BATCHES);
	}
	for (int way = 0; way < WAYS; way++)
		best = median(plain[way], TURNS) > best ? median(plain[way], TURNS) : best;
	report("send 8 B, time", median(small, TURNS) / median(plain_small, TURNS), "of plain TCP's");
	report("send 64 KiB, time", median(middle, TURNS) / median(plain_middle, TURNS),
	       "of plain TCP's");
	report("send 1 MiB stream, speed", median(send, TURNS) / 1e9 / best, "of plain TCP's");
	report("RDMA write 1 MiB stream, speed", median(write, TURNS) / 1e9 / best,
	       "of plain TCP's");
}

static void mapped_rows(void)
{
	target_mapped();
	data_ping_pong("RDMA write 8 B until seen", SMALL, true, ROUNDS);
	data_ping_pong("RDMA write 64 KiB until seen", MIDDLE, true, 20);
	stream("RDMA write 8 B stream", SMALL, true, 2000);
	stream("RDMA write 1 MiB stream", LARGE, true, STREAM);
	to_sleeper("RDMA write 8 B to a sleeping process", write_and_wait, SMALL);
	to_sleeper("RDMA read 8 B from a sleeping process", read_and_wait, SMALL);
	to_sleeper("RDMA write 16 KiB to a sleeping process", write_and_wait, 16 << 10);
	to_sleeper("RDMA read 16 KiB from a sleeping process", read_and_wait, 16 << 10);
}

static int data(const char *name, void (*rows)(void))
{
	pid_t child = split();
	DAT_PSP_HANDLE psp;

	open_ia(name, 4 * DEPTH);
	register_memory();
	if (me)
		listen_any(&psp);
	together();
	good(dat_ep_create(ia, pz, evd, evd, conn_evd, NULL, &ep), "dat_ep_create");
	for (int i = 0; i < DEPTH; i++)
		post_receive();
	if (!me)
		connect_ep(ep);
	else
		good(dat_cr_accept(wait_for(DAT_CONNECTION_REQUEST_EVENT)
					   .event_data.cr_arrival_event_data.cr_handle,
				   ep, 0, NULL), "dat_cr_accept");
	wait_for(DAT_CONNECTION_EVENT_ESTABLISHED);
	rows();
	finish();
	good(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	return join(child);
}

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

static void connection_rate(int at_once)
{
	double took[STREAMS], begin = now();
	int batches = 0;
	char what[80];

	for (; batches < STREAMS && now() - begin < ROW_S; batches++) {
		took[batches] = now();
		for (int i = 0; i < 256 / at_once; i++) {
			up(at_once);
			down(at_once);
		}
		took[batches] = now() - took[batches];
	}
	snprintf(what, sizeof what, "connect and disconnect, %d at once", at_once);
	report(what, 256 / at_once * at_once / median(took, batches), "/s");
}

static int connections(const char *name, int n)
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

static int endpoints(const char *name, int n)
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

static int processes(const char *name, int n)
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

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "limits"))
		return limits();
	if ((argc == 3 || argc == 4) && !strcmp(argv[1], "data")) {
		only = argc == 4 ? argv[3] : only;
		return data(argv[2], data_rows);
	}
	if (argc == 3 && !strcmp(argv[1], "turns"))
		return data(argv[2], turn_rows);
	if (argc == 3 && !strcmp(argv[1], "mapped"))
		return data(argv[2], mapped_rows);
	if (argc == 4 && !strcmp(argv[1], "connect"))
		return connections(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "endpoints"))
		return endpoints(argv[2], atoi(argv[3]));
	if (argc == 4 && !strcmp(argv[1], "processes"))
		return processes(argv[2], atoi(argv[3]));
	fputs("usage: see soft.c\n", stderr);
	return 2;
}
