/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mixed.c - sends, RDMA writes and RDMA reads in both directions of one connection at once, between
 * two processes. All data is checked, completions must come in the order of the posts, and a side
 * that sees no progress for STALL seconds fails.
 *
 * A send carries up to 4 KiB in 1 to 4 segments. Before every second send an RDMA write puts the
 * same bytes into the peer's memory; half of the writes are suppressed. Before every fourth send
 * an RDMA read fetches up to 4 KiB. At most WINDOW messages are on the way: the receiver returns
 * credit by an RDMA write of 8 bytes, suppressed but for every CREDIT_SIGNALED-th.
 *
 * The environment: LIFE_SEED repeats a run, LIFE_MESSAGES sets the messages of each direction. */
#include "life.h"
#include "test/random.h"
#include "test/variables.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	WINDOW = 48,
	RECEIVE = 16 << 10,	/* bytes of a receive */
	LARGEST = 4 << 10,	/* bytes of a send, write or read */
	READ_SLOTS = 12,	/* most reads that a case keeps out */
	READS_ALLOWED = 4,	/* max_rdma_read_out of the endpoints */
	CREDITS = 256,		/* sources of credit writes */
	CREDIT_SIGNALED = 16,
	REQUESTS = 400,
	STALL = 40,		/* seconds; a test machine may be 40 times slower than its host */
};

/* What the consumer of a case does differently. */
struct traffic {
	unsigned reads_out;	/* most RDMA reads on the way */
	bool fences;		/* every third send waits for the reads before it */
	bool reads_first;	/* a burst of reads in front of every send, not one of every fourth */
};

/* Registered memory. The peer writes to `landed` and `credit`, and reads `source`. */
struct memory {
	uint8_t receive[WINDOW][RECEIVE];
	uint8_t send[WINDOW][LARGEST];
	uint8_t landed[WINDOW][LARGEST];
	uint8_t source[LARGEST * 4];
	uint8_t sink[READ_SLOTS][LARGEST];
	_Alignas(64) uint64_t credit;	/* messages that the peer has consumed */
	_Alignas(64) uint64_t credit_source[CREDITS];
};

/* Shared by both processes. */
struct board {
	struct {
		volatile bool ready, done;
		uint64_t address;
		DAT_RMR_CONTEXT key;
	} side[2];
	volatile DAT_CONN_QUAL qual;
	unsigned seed, messages;
	struct traffic traffic;
};

struct actor {
	struct board *board;
	const struct traffic *traffic;
	int me;
	struct end end;
	struct memory *memory;
	uint64_t there;			/* the peer's struct memory */
	DAT_RMR_CONTEXT key;
	uint64_t random;
	/* requests, counted from 1 in the order of the posts; a completion's cookie is that number */
	uint64_t posted, completed;
	uint64_t send_of[WINDOW];	/* the request that still needs this slot; 0: none */
	uint64_t read_of[READ_SLOTS];
	uint64_t credit_of[CREDITS];	/* request number, kept: compared with `completed` */
	struct { uint32_t at, length; } read[READ_SLOTS];
	unsigned reads;			/* on the way */
	uint64_t sent, received, returned, credits;
	bool read_done;			/* the reads before the next send are posted */

	double progress;		/* when there was some */
};

/* The seed of the content of a message of side `from`, which both sides can compute. */
static uint64_t recipe(const struct board *b, int from, uint64_t message)
{
	return random_of(b->seed + message * 2 + (uint64_t)from);
}

static uint32_t length_of(uint64_t recipe)
{
	return recipe % 8 == 0 ? 0 : (recipe >> 8) % (LARGEST + 1);
}

static bool has_write(const struct board *b, int from, uint64_t message)
{
	return message % 2 == 1 && length_of(recipe(b, from, message)) > 0;
}

static uint8_t byte_of(uint64_t recipe, uint32_t i)
{
	return (uint8_t)(recipe >> 40) + i * 7 + (i >> 8);
}

static void check(struct actor *e, const char *what, uint64_t number, const uint8_t *found,
		  uint64_t expected, uint32_t from, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (found[i] != byte_of(expected, from + i))
			fail("seed %u, side %d: %s %llu has 0x%02x at %u of %u, expected 0x%02x",
			     e->board->seed, e->me, what, (unsigned long long)number, found[i], i,
			     length, byte_of(expected, from + i));
}

static uint64_t source_recipe(const struct board *b, int of)
{
	return random_of(b->seed ^ (0xabcdu + (unsigned)of));
}

/* --- connecting ------------------------------------------------------------------------------ */

static void wait_for_flag(struct actor *e, volatile const bool *flag)
{
	struct timespec pause = { 0, 1000000 };
	double begin = life_now();

	while (!*flag) {
		if (life_now() - begin > STALL)
			fail("seed %u, side %d: the other side is not there", e->board->seed, e->me);
		nanosleep(&pause, NULL);
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void post_receive(struct actor *e, unsigned slot)
{
	DAT_LMR_TRIPLET iov = end_segment(&e->end, e->memory->receive[slot], RECEIVE);
	DAT_DTO_COOKIE cookie = { .as_64 = slot };

	OK(dat_ep_post_recv(e->end.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void make_endpoint(struct actor *e)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC, .qos = DAT_QOS_BEST_EFFORT,
		.max_message_size = RECEIVE, .max_rdma_size = RECEIVE,
		.max_recv_dtos = WINDOW, .max_request_dtos = REQUESTS,
		.max_recv_iov = 1, .max_request_iov = 4,
		.max_rdma_read_iov = 1, .max_rdma_write_iov = 1,
		.max_rdma_read_in = READS_ALLOWED, .max_rdma_read_out = READS_ALLOWED,
	};

	e->memory = mmap(NULL, sizeof *e->memory, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(e->memory != MAP_FAILED);
	for (uint32_t i = 0; i < sizeof e->memory->source; i++)
		e->memory->source[i] = byte_of(source_recipe(e->board, e->me), i);
	OK(end_open(&e->end, LIFE_IA, (struct end_events){ .recv = 2 * WINDOW, .request = 2 * REQUESTS, .conn = 8,
		    .cr = e->me == 0 ? 8 : 0 }));
	OK(end_register(&e->end, e->memory, sizeof *e->memory));
	OK(end_create_ep(&e->end, &attr));
	for (unsigned i = 0; i < WINDOW; i++)
		post_receive(e, i);
}

static void join(struct actor *e)
{
	struct board *b = e->board;
	DAT_IA_ATTR attr;
	DAT_EVENT event;
	DAT_CONN_QUAL qual;

	b->side[e->me].address = (uintptr_t)e->memory;
	b->side[e->me].key = e->end.remote;
	if (e->me == 0) {
		OK(dat_psp_create_any(e->end.ia, &qual, e->end.cr, DAT_PSP_CONSUMER_FLAG, &e->end.psp));
		b->qual = qual;
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	b->side[e->me].ready = true;
	wait_for_flag(e, &b->side[!e->me].ready);
	e->there = b->side[!e->me].address;
	e->key = b->side[!e->me].key;
	if (e->me == 0) {
		OK(await(e->end.cr, DAT_CONNECTION_REQUEST_EVENT, 3 * MOMENT, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e->end.ep, 0, NULL));
	} else {
		OK(dat_ia_query(e->end.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		OK(dat_ep_connect(e->end.ep, attr.ia_address_ptr, b->qual, 3 * MOMENT, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	OK(await(e->end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, 3 * MOMENT, NULL));
	/* An acceptor on siw must not send first: its message could arrive together with the MPA reply,
	 * which siw refuses. */
	if (e->me == 1)
		b->side[1].done = true;
	else
		wait_for_flag(e, &b->side[1].done);
}

/* --- requests -------------------------------------------------------------------------------------- */

static DAT_DTO_COOKIE next_cookie(struct actor *e)
{
	return (DAT_DTO_COOKIE){ .as_64 = ++e->posted };
}

/* Requests of the provider itself must not fill the queue. */
static void posted(struct actor *e, const char *what, DAT_RETURN ret)
{
	if (ret != DAT_SUCCESS)
		fail("seed %u, side %d: %s, request %llu (completed %llu) gives %s", e->board->seed, e->me,
		     what, (unsigned long long)e->posted, (unsigned long long)e->completed,
		     life_return(ret));
	e->progress = life_now();
}

/* Returns the place in the peer's memory that corresponds to `at` in this side's memory. */
static DAT_RMR_TRIPLET there(const struct actor *e, const volatile void *at, uint32_t length)
{
	return (DAT_RMR_TRIPLET){ .rmr_context = e->key, .segment_length = length,
		.virtual_address = e->there + ((uintptr_t)at - (uintptr_t)e->memory) };
}

/* Posts a read of a part of the peer's source. Returns false if the most reads are in progress. */
static bool read_part(struct actor *e, uint32_t at, uint32_t length)
{
	DAT_LMR_TRIPLET to;
	DAT_RMR_TRIPLET from;
	unsigned slot = 0;

	if (e->reads >= e->traffic->reads_out)
		return false;
	while (e->read_of[slot])
		slot++;
	e->read[slot].at = at;
	e->read[slot].length = length;
	memset(e->memory->sink[slot], 0, length);
	to = end_segment(&e->end, e->memory->sink[slot], length);
	from = there(e, e->memory->source + at, length);
	posted(e, "an RDMA read", dat_ep_post_rdma_read(e->end.ep, 1, &to, next_cookie(e), &from,
							DAT_COMPLETION_DEFAULT_FLAG));
	e->read_of[slot] = e->posted;
	e->reads++;
	return true;
}

static bool read_something(struct actor *e)
{
	uint64_t r = random_next(&e->random);

	return read_part(e, (r >> 20) % (sizeof e->memory->source - LARGEST), 1 + r % LARGEST);
}

static void write_message(struct actor *e, const uint8_t *bytes, unsigned slot, uint32_t length)
{
	DAT_LMR_TRIPLET from = end_segment(&e->end, bytes, length);
	DAT_RMR_TRIPLET to = there(e, e->memory->landed[slot], length);

	posted(e, "an RDMA write", dat_ep_post_rdma_write(e->end.ep, 1, &from, next_cookie(e), &to,
		e->sent % 4 == 1 ? DAT_COMPLETION_SUPPRESS_FLAG : DAT_COMPLETION_DEFAULT_FLAG));
}

static void send_message(struct actor *e, const uint8_t *bytes, uint32_t length)
{
	uint64_t r = random_next(&e->random);
	bool fence = e->traffic->fences && e->sent % 3 == 0;
	unsigned n = 1 + r % 4, at = 0;
	DAT_LMR_TRIPLET iov[4];

	for (unsigned i = 0; i < n; i++) {
		uint32_t part = i == n - 1 ? length - at : (r >> (8 * i + 8)) % (length - at + 1);

		iov[i] = end_segment(&e->end, bytes + at, part);
		at += part;
	}
	posted(e, "a send", dat_ep_post_send(e->end.ep, (DAT_COUNT)n, iov, next_cookie(e),
		fence ? DAT_COMPLETION_BARRIER_FENCE_FLAG : DAT_COMPLETION_DEFAULT_FLAG));
}

/* The peer writes it. */
static uint64_t credit_now(const struct actor *e)
{
	return __atomic_load_n(&e->memory->credit, __ATOMIC_ACQUIRE);
}

/* Sends the next message, if there is credit and its memory is free. */
static void send_next(struct actor *e)
{
	unsigned slot = e->sent % WINDOW;
	uint64_t r = recipe(e->board, e->me, e->sent);
	uint8_t *bytes = e->memory->send[slot];
	uint32_t length = length_of(r);

	if (e->sent == e->board->messages || e->sent - credit_now(e) >= WINDOW ||
	    e->send_of[slot])
		return;
	if (!e->read_done) {
		if (e->traffic->reads_first)
			while (read_something(e))
				;
		else if (e->sent % 4 == 3 && !read_something(e))
			return;
		e->read_done = true;
	}
	for (uint32_t i = 0; i < length; i++)
		bytes[i] = byte_of(r, i);
	if (has_write(e->board, e->me, e->sent))
		write_message(e, bytes, slot, length);
	send_message(e, bytes, length);
	e->send_of[slot] = e->posted;
	e->sent++;
	e->read_done = false;
}

static void return_credit(struct actor *e)
{
	unsigned slot = e->credits % CREDITS;
	DAT_LMR_TRIPLET from = end_segment(&e->end, &e->memory->credit_source[slot], 8);
	DAT_RMR_TRIPLET to = there(e, &e->memory->credit, 8);

	if (e->returned == e->received || e->credit_of[slot] > e->completed)
		return;
	e->memory->credit_source[slot] = e->received;
	posted(e, "a credit write", dat_ep_post_rdma_write(e->end.ep, 1, &from, next_cookie(e), &to,
		e->credits % CREDIT_SIGNALED ? DAT_COMPLETION_SUPPRESS_FLAG :
		DAT_COMPLETION_DEFAULT_FLAG));
	e->credit_of[slot] = e->posted;
	e->credits++;
	e->returned = e->received;
}

/* --- completions ---------------------------------------------------------------------------------------- */

static bool next_event(struct actor *e, DAT_EVD_HANDLE evd, const char *what,
		       DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(evd, &event);

	if (DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY)
		return false;
	OK(ret);
	*dto = event.event_data.dto_completion_event_data;
	if (event.event_number != DAT_DTO_COMPLETION_EVENT || dto->status != DAT_DTO_SUCCESS)
		fail("seed %u, side %d: %s: event 0x%x, status %d, after %llu sent and %llu received",
		     e->board->seed, e->me, what, event.event_number, dto->status,
		     (unsigned long long)e->sent, (unsigned long long)e->received);
	e->progress = life_now();
	return true;
}

static void read_arrived(struct actor *e, unsigned slot)
{
	check(e, "RDMA read", e->read_of[slot], e->memory->sink[slot],
	      source_recipe(e->board, !e->me), e->read[slot].at, e->read[slot].length);
	e->read_of[slot] = 0;
	e->reads--;
}

static void take_completions(struct actor *e)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	while (next_event(e, e->end.request, "a request", &dto)) {
		uint64_t number = dto.user_cookie.as_64;

		if (number <= e->completed || number > e->posted)
			fail("seed %u, side %d: request %llu completes after %llu", e->board->seed, e->me,
			     (unsigned long long)number, (unsigned long long)e->completed);
		e->completed = number;
		for (unsigned i = 0; i < READ_SLOTS; i++)
			if (e->read_of[i] && e->read_of[i] < number)
				fail("seed %u, side %d: RDMA read %llu has no completion, request %llu has",
				     e->board->seed, e->me, (unsigned long long)e->read_of[i],
				     (unsigned long long)number);
			else if (e->read_of[i] == number)
				read_arrived(e, i);
		for (unsigned i = 0; i < WINDOW; i++)
			if (e->send_of[i] == number)
				e->send_of[i] = 0;
	}
}

static void take_messages(struct actor *e)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	while (next_event(e, e->end.recv, "a receive", &dto)) {
		unsigned slot = dto.user_cookie.as_64;
		uint64_t r = recipe(e->board, !e->me, e->received);

		if (slot != e->received % WINDOW || dto.transfered_length != length_of(r))
			fail("seed %u, side %d: message %llu comes in slot %u with %llu bytes, expected %u",
			     e->board->seed, e->me, (unsigned long long)e->received, slot,
			     (unsigned long long)dto.transfered_length, length_of(r));
		check(e, "message", e->received, e->memory->receive[slot], r, 0, length_of(r));
		if (has_write(e->board, !e->me, e->received))
			check(e, "RDMA write", e->received, e->memory->landed[slot], r, 0, length_of(r));
		post_receive(e, slot);
		e->received++;
	}
}

/* --- the two sides ------------------------------------------------------------------------------------------ */

static void fail_at_stall(struct actor *e)
{
	if (life_now() - e->progress < STALL)
		return;
	fail("seed %u, side %d: no progress for %d s: %llu of %u sent, credit for %llu, %llu received, "
	     "%llu requests posted, %llu completed, %u RDMA reads out", e->board->seed, e->me, STALL,
	     (unsigned long long)e->sent, e->board->messages, (unsigned long long)credit_now(e),
	     (unsigned long long)e->received, (unsigned long long)e->posted,
	     (unsigned long long)e->completed, e->reads);
}

/* The last credit write is signaled late or not at all. The peer's `credit` shows that it arrived. */
static bool finished(const struct actor *e)
{
	uint64_t all = e->board->messages;

	return e->sent == all && e->received == all && e->returned == all && credit_now(e) == all && e->reads == 0;
}

static void traffic(struct actor *e)
{
	while (!finished(e)) {
		send_next(e);
		take_messages(e);
		take_completions(e);
		return_credit(e);
		fail_at_stall(e);
	}
}

static void leave(struct actor *e)
{
	struct board *b = e->board;

	b->side[e->me].ready = false;
	while (b->side[!e->me].ready)
		fail_at_stall(e);
	OK(end_close(&e->end));
}

static void one_side(struct board *b, int me, void (*body)(struct actor *))
{
	struct actor *e = calloc(1, sizeof *e);

	e->board = b;
	e->traffic = &b->traffic;
	e->me = me;
	e->random = random_of(b->seed + 77u + (unsigned)me) | 1;
	make_endpoint(e);
	join(e);
	e->progress = life_now();
	body(e);
	leave(e);
	free(e);
}

static unsigned seed;	/* of this run */

static void two_sides(const struct traffic *t, unsigned messages, void (*body)(struct actor *))
{
	struct board *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			       -1, 0);
	int status;
	pid_t pid;

	EXPECT(b != MAP_FAILED);
	b->seed = seed;
	b->messages = (unsigned)variable_number("LIFE_MESSAGES", messages);
	b->traffic = *t;
	pid = fork();
	if (!pid) {
		one_side(b, 1, body);
		_exit(0);
	}
	one_side(b, 0, body);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("seed %u: the other side ended with status 0x%x", seed, status);
}

static unsigned many(void)
{
	return life_on_soft() ? 20000 / SLOWER : 1500;
}

/* --- cases ---------------------------------------------------------------------------------------------------- */

static void both_directions_at_once(void)
{
	static const struct traffic t = { .reads_out = READS_ALLOWED };

	two_sides(&t, many(), traffic);
}

static void both_directions_at_once_over_tcp(void)
{
	if (!life_on_soft())
		skip("the device has no shared memory to be without");
	setenv("DAPL_SOFT_SHM", "0", 1);
	both_directions_at_once();
}

static void fences_and_more_reads_than_go_out(void)
{
	static const struct traffic t = { .reads_out = READ_SLOTS, .fences = true,
		.reads_first = true };

	two_sides(&t, many() / 5, traffic);
}

/* Each side posts reads, sends behind a fence, and waits for the peer's message only. The requests must go
 * out although no thread polls for their completions. */
static void exchange_unpolled(struct actor *e)
{
	for (unsigned round = 0; round < e->board->messages; round++) {
		unsigned slot = round % WINDOW;
		DAT_LMR_TRIPLET iov = end_segment(&e->end, e->memory->send[slot], 8);
		DAT_DTO_COMPLETION_EVENT_DATA *dto;
		DAT_EVENT event;

		for (unsigned i = 0; i < READ_SLOTS; i++)
			read_something(e);
		memcpy(e->memory->send[slot], &round, sizeof round);
		posted(e, "a send", dat_ep_post_send(e->end.ep, 1, &iov, next_cookie(e),
						     DAT_COMPLETION_BARRIER_FENCE_FLAG));
		OK(await(e->end.recv, DAT_DTO_COMPLETION_EVENT, STALL * 1000000, &event));
		dto = &event.event_data.dto_completion_event_data;
		EXPECT(dto->status == DAT_DTO_SUCCESS && dto->transfered_length == 8);
		EXPECT(!memcmp(e->memory->receive[slot], &round, sizeof round));
		post_receive(e, slot);
		e->progress = life_now();
		while (e->completed < e->posted) {
			take_completions(e);
			fail_at_stall(e);
		}
	}
}

static void fenced_requests_go_out_without_polling(void)
{
	static const struct traffic t = { .reads_out = READ_SLOTS };

	two_sides(&t, life_on_soft() ? 2000 / SLOWER : 100, exchange_unpolled);
}

/* siw answers such reads with wrong bytes. */
static void read_short(struct actor *e)
{
	enum { PAGE = 4096, SHORT = 40 };

	EXPECT((uintptr_t)e->memory->source % PAGE == 0);
	for (uint32_t length = 1; length <= SHORT; length++)
		for (uint32_t before = 0; before <= length; before += 1 + length / 8) {
			while (!read_part(e, PAGE - before, length)) {
				take_completions(e);
				fail_at_stall(e);
			}
		}
	while (e->completed < e->posted) {
		take_completions(e);
		fail_at_stall(e);
	}
}

static void short_reads_that_cross_a_page(void)
{
	static const struct traffic t = { .reads_out = READ_SLOTS };

	two_sides(&t, 0, read_short);
}

static const struct life_case cases[] = {
	CASE(both_directions_at_once),
	CASE(both_directions_at_once_over_tcp),
	CASE(fences_and_more_reads_than_go_out),
	CASE(fenced_requests_go_out_without_polling),
	CASE(short_reads_that_cross_a_page),
};

int main(int argc, char **argv)
{
	seed = variable_seed("LIFE_SEED");
	printf("# seed %u\n", seed);
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
