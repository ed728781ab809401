/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conserved.c - random DTOs in both directions of a connection between two processes: each arrives once,
 * in order, with the right bytes, and changes nothing beside its memory. Both sides alternate at
 * random between polling and sleeping.
 *
 * Operation i of a side follows from the seed, the side and i, so that both sides know it: a send,
 * an RDMA write into slot i of the peer, an RDMA read, or a fetch-and-add to a counter of the peer. When
 * a send arrives, all writes before it are in place. The receiver checks them, and tells in shared memory how many
 * operations it has checked; a sender is at most WINDOW ahead. --rounds sets the operations of each side.
 * SOAK_SIDE and SOAK_BOARD: one side alone (test/soak/versions, test/soak/architectures). */
#include "soak.h"
#include "test/own_network.h"
#include "test/random.h"
#include <dat/dat_ib_extensions.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	WINDOW = 64,
	LARGEST = 64 << 10, /* bytes of an operation */
	AFTER = 64,         /* bytes behind the payload that must not change */
	SLOT = LARGEST + AFTER,
	GUARD = 4096, /* bytes before and after the registered memory */
	POISON = 0xa5,
	READS = 4,      /* RDMA reads and atomics on the way */
	STRETCH = 2000, /* most operations in one mode, of polling or sleeping */
	STALL = 60,     /* s without progress: something is lost */
};

enum kind { SEND, WRITE, WRITE_SUPPRESSED, READ, ADD };

struct memory {
	uint8_t before[GUARD];
	uint8_t receive[WINDOW][SLOT], target[WINDOW][SLOT], source[WINDOW][SLOT],
		sink[WINDOW][SLOT];
	uint8_t constant[2 * LARGEST];
	_Alignas(64) volatile uint64_t counter;
	_Alignas(64) uint64_t old[WINDOW];
	uint8_t after[GUARD];
};

struct recipe {
	enum kind kind;
	uint32_t length;
	uint64_t content;
};

static uint64_t operations; /* of each side */

/* What each side publishes for the other. The sides may differ in byte order: numbers are big-endian, except
 * the figures, which only processes of one build print. They may differ in the alignment of 64-bit numbers, which is
 * 4 in structures of i386: alignments are given. */
static struct board {
	struct {
		volatile bool ready, connected, done;
		_Alignas(8) uint64_t address, key;
		_Alignas(64) volatile uint64_t checked; /* of the peer's operations */
		uint64_t sleeps, switches, bytes;       /* figures */
	} side[2];
	volatile uint64_t qual;
} *board;

static struct side {
	struct end end;
	int me;
	struct memory *memory;
	uint64_t random;
	uint64_t posted, completed;    /* operations; all before `completed` are */
	uint64_t received, checked;    /* messages; the peer's operations */
	uint64_t added, added_by_peer; /* sums of the atomics */
	unsigned reads;
	bool sleeping;
	uint64_t stretch; /* operations left in this mode */
	uint64_t sleeps, switches, bytes;
	double progress;
} e;

static uint64_t checked_by_peer(void)
{
	return be64toh(board->side[!e.me].checked);
}

/* --- operations ---------------------------------------------------------------------------- */

static uint32_t length_from(uint64_t r)
{
	static const uint32_t most[16] = { 8,   16,  64,   64,   64,   64,   64,   256,
					   256, 256, 1024, 1024, 2048, 4096, 8192, LARGEST };
	unsigned class = r & 15;

	if (class == 15 && (r >> 4 & 3)) /* the largest are rare: bytes cost time */
		class = 8;
	return (uint32_t)((r >> 8) % (most[class] + 1));
}

/* The last operation is a send: with it all others are checked. */
static struct recipe recipe_of(int side, uint64_t i)
{
	uint64_t r = random_of(((uint64_t)soak_seed << 20) + i * 2 + (uint64_t)side + 1);
	struct recipe recipe = { SEND, length_from(r >> 8), random_of(r) };

	if (i == operations - 1)
		return recipe;
	switch (r & 15) {
	case 8: recipe.kind = WRITE; break;
	case 9: recipe.kind = WRITE_SUPPRESSED; break;
	case 10:
	case 11: recipe.kind = READ; break;
	case 12: recipe.kind = life_on_soft() ? ADD : READ; break;
	}
	return recipe;
}

static void fill(uint8_t *to, uint64_t content, uint32_t length)
{
	uint32_t i = 0;

	for (; i + 8 <= length; i += 8, content += 0x9e3779b97f4a7c15ull)
		memcpy(to + i, &(uint64_t){ htole64(content) }, 8);
	memcpy(to + i, &(uint64_t){ htole64(content) }, length - i);
}

static bool holds(const uint8_t *at, uint64_t content, uint32_t length)
{
	uint64_t word;
	uint32_t i = 0;

	for (; i + 8 <= length; i += 8, content += 0x9e3779b97f4a7c15ull) {
		memcpy(&word, at + i, 8);
		if (le64toh(word) != content)
			return false;
	}
	return !memcmp(at + i, &(uint64_t){ htole64(content) }, length - i);
}

static bool poisoned(const uint8_t *at, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
		if (at[i] != POISON)
			return false;
	return true;
}

static void check_slot(uint8_t *slot, const struct recipe *recipe, const char *what, uint64_t i)
{
	if (!holds(slot, recipe->content, recipe->length))
		fail("seed %u, side %d: %s %llu (%u bytes) has wrong bytes", soak_seed, e.me, what,
		     (unsigned long long)i, recipe->length);
	if (!poisoned(slot + recipe->length, AFTER))
		fail("seed %u, side %d: %s %llu (%u bytes) changes bytes behind it", soak_seed,
		     e.me, what, (unsigned long long)i, recipe->length);
	memset(slot, POISON, recipe->length);
	e.bytes += recipe->length;
}

/* --- connecting ------------------------------------------------------------------------------ */

static void wait_for(volatile const bool *flag)
{
	double begin = life_now();

	while (!*flag) {
		if (life_now() - begin > STALL)
			fail("seed %u, side %d: the other side is not there", soak_seed, e.me);
		usleep(1000);
	}
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void post_receive(void)
{
	uint64_t n = e.received + WINDOW;
	DAT_LMR_TRIPLET iov = end_segment(&e.end, e.memory->receive[n % WINDOW], LARGEST);
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	OK(dat_ep_post_recv(e.end.ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static void make_memory(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT key;

	e.memory = mmap(NULL, sizeof *e.memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	EXPECT(e.memory != MAP_FAILED);
	memset(e.memory, POISON, sizeof *e.memory);
	e.memory->counter = 0;
	fill(e.memory->constant, random_of(soak_seed + (unsigned)e.me), sizeof e.memory->constant);
	region.for_va = e.memory->receive;
	OK(dat_lmr_create(e.end.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof *e.memory - 2 * GUARD, e.end.pz,
			  DAT_MEM_PRIV_ALL_FLAG | DAT_IB_MEM_PRIV_REMOTE_ATOMIC, DAT_VA_TYPE_VA,
			  &e.end.lmr, &e.end.local, &key, NULL, NULL));
	board->side[e.me].key = htobe64(key);
	board->side[e.me].address = htobe64((uintptr_t)e.memory);
}

static void make_endpoint(void)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_message_size = LARGEST,
		.max_rdma_size = LARGEST,
		.max_recv_dtos = WINDOW,
		.max_request_dtos = WINDOW,
		.max_recv_iov = 1,
		.max_request_iov = 2,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 2,
		.max_rdma_read_in = READS,
		.max_rdma_read_out = READS,
	};

	OK(end_open(&e.end, LIFE_IA, (struct end_events){ .recv = 4 * WINDOW, .conn = 8, .cr = e.me == 0 ? 8 : 0 }));
	make_memory();
	OK(end_create_ep(&e.end, &attr));
	for (int i = -WINDOW; i < 0; i++) {
		e.received = (uint64_t)(int64_t)i;
		post_receive();
	}
	e.received = 0;
}

static void join(void)
{
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	if (e.me == 0) {
		OK(dat_psp_create_any(e.end.ia, &qual, e.end.cr, DAT_PSP_CONSUMER_FLAG, &e.end.psp));
		board->qual = htobe64(qual);
	}
	__atomic_thread_fence(__ATOMIC_RELEASE);
	board->side[e.me].ready = true;
	wait_for(&board->side[!e.me].ready);
	if (e.me == 0) {
		OK(await(e.end.cr, DAT_CONNECTION_REQUEST_EVENT, 3 * MOMENT, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e.end.ep, 0, NULL));
	} else {
		OK(dat_ia_query(e.end.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
		OK(dat_ep_connect(e.end.ep, attr.ia_address_ptr, be64toh(board->qual), 3 * MOMENT, 0, NULL,
				  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	}
	OK(await(e.end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, 3 * MOMENT, NULL));
	board->side[e.me].connected = true;
	wait_for(&board->side[!e.me].connected);
}

/* --- posting ------------------------------------------------------------------------------------- */

/* Returns the place in the peer's memory that corresponds to `at` in this side's memory. */
static DAT_RMR_TRIPLET there(const volatile void *at, uint32_t length)
{
	return (DAT_RMR_TRIPLET){ .rmr_context = (DAT_RMR_CONTEXT)be64toh(board->side[!e.me].key),
				  .segment_length = length,
				  .virtual_address = be64toh(board->side[!e.me].address) +
						     ((uintptr_t)at - (uintptr_t)e.memory) };
}

static uint8_t *constant_of(const struct recipe *recipe)
{
	return e.memory->constant + recipe->content % LARGEST / 8 * 8;
}

static DAT_RETURN post_with_payload(const struct recipe *recipe, unsigned slot,
				    DAT_DTO_COOKIE cookie)
{
	uint32_t first = recipe->length ? (uint32_t)(recipe->content >> 20) % recipe->length : 0;
	DAT_LMR_TRIPLET iov[2] = { end_segment(&e.end, e.memory->source[slot], first),
				   end_segment(&e.end, e.memory->source[slot] + first, recipe->length - first) };
	DAT_RMR_TRIPLET to = there(e.memory->target[slot], recipe->length);

	fill(e.memory->source[slot], recipe->content, recipe->length);
	if (recipe->kind == SEND)
		return dat_ep_post_send(e.end.ep, 2, iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	return dat_ep_post_rdma_write(e.end.ep, 2, iov, cookie, &to,
				      recipe->kind == WRITE_SUPPRESSED
					      ? DAT_COMPLETION_SUPPRESS_FLAG
					      : DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_fetching(const struct recipe *recipe, unsigned slot, DAT_DTO_COOKIE cookie)
{
	DAT_LMR_TRIPLET into = end_segment(&e.end, e.memory->sink[slot], recipe->length);
	DAT_RMR_TRIPLET from = there(constant_of(recipe), recipe->length);
	DAT_LMR_TRIPLET old = end_segment(&e.end, &e.memory->old[slot], 8);
	DAT_RMR_TRIPLET counter = there(&e.memory->counter, 8);

	if (recipe->kind == READ)
		return dat_ep_post_rdma_read(e.end.ep, 1, &into, cookie, &from,
					     DAT_COMPLETION_DEFAULT_FLAG);
	return dat_ib_post_fetch_and_add(e.end.ep, recipe->content, &old, cookie, &counter,
					 DAT_COMPLETION_DEFAULT_FLAG);
}

static void post_next(void)
{
	unsigned slot = e.posted % WINDOW;
	DAT_DTO_COOKIE cookie = { .as_64 = e.posted };
	struct recipe recipe;
	DAT_RETURN ret;

	if (e.posted == operations || e.posted - e.completed >= WINDOW ||
	    e.posted - checked_by_peer() >= WINDOW)
		return;
	recipe = recipe_of(e.me, e.posted);
	if (recipe.kind >= READ && e.reads >= READS)
		return;
	ret = recipe.kind >= READ ? post_fetching(&recipe, slot, cookie)
				  : post_with_payload(&recipe, slot, cookie);
	if (ret != DAT_SUCCESS)
		fail("seed %u, side %d: operation %llu of kind %d gives %s", soak_seed, e.me,
		     (unsigned long long)e.posted, recipe.kind, life_return(ret));
	e.reads += recipe.kind >= READ;
	e.posted++;
	e.progress = life_now();
}

/* --- completions ------------------------------------------------------------------------------------ */

static void fetched(const struct recipe *recipe, uint64_t i)
{
	unsigned slot = i % WINDOW;

	e.reads--;
	if (recipe->kind == ADD) {
		if (e.memory->old[slot] != e.added)
			fail("seed %u, side %d: fetch-and-add %llu finds %#llx, expected the sum "
			     "%#llx",
			     soak_seed, e.me, (unsigned long long)i,
			     (unsigned long long)e.memory->old[slot], (unsigned long long)e.added);
		e.added += recipe->content;
		return;
	}
	if (!holds(e.memory->sink[slot],
		   random_of(soak_seed + (unsigned)!e.me) +
			   recipe->content % LARGEST / 8 * 0x9e3779b97f4a7c15ull,
		   recipe->length) ||
	    !poisoned(e.memory->sink[slot] + recipe->length, AFTER))
		fail("seed %u, side %d: RDMA read %llu (%u bytes) has wrong bytes", soak_seed, e.me,
		     (unsigned long long)i, recipe->length);
	memset(e.memory->sink[slot], POISON, recipe->length);
	e.bytes += recipe->length;
}

/* Completions come in the order of the posts; only suppressed ones are left out. */
static void request_completed(uint64_t number)
{
	if (number < e.completed || number >= e.posted)
		fail("seed %u, side %d: operation %llu completes; %llu have completed of %llu "
		     "posted",
		     soak_seed, e.me, (unsigned long long)number, (unsigned long long)e.completed,
		     (unsigned long long)e.posted);
	for (; e.completed < number; e.completed++)
		if (recipe_of(e.me, e.completed).kind != WRITE_SUPPRESSED)
			fail("seed %u, side %d: operation %llu has no completion", soak_seed, e.me,
			     (unsigned long long)e.completed);
	e.completed = number + 1;
	if (recipe_of(e.me, number).kind >= READ) {
		struct recipe recipe = recipe_of(e.me, number);

		fetched(&recipe, number);
	}
}

/* Checks the peer's operations up to its next send: their data must be in place. */
static void message_arrived(const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	uint8_t *slot = e.memory->receive[e.received % WINDOW];
	struct recipe recipe;

	if (dto->user_cookie.as_64 != e.received)
		fail("seed %u, side %d: receive %llu completes, expected %llu", soak_seed, e.me,
		     (unsigned long long)dto->user_cookie.as_64, (unsigned long long)e.received);
	while ((recipe = recipe_of(!e.me, e.checked)).kind != SEND) {
		if (recipe.kind == WRITE || recipe.kind == WRITE_SUPPRESSED)
			check_slot(e.memory->target[e.checked % WINDOW], &recipe, "RDMA write",
				   e.checked);
		if (recipe.kind == ADD)
			e.added_by_peer += recipe.content;
		e.checked++;
	}
	if (dto->transfered_length != recipe.length)
		fail("seed %u, side %d: message %llu has %llu bytes, expected %u", soak_seed, e.me,
		     (unsigned long long)e.checked, (unsigned long long)dto->transfered_length,
		     recipe.length);
	check_slot(slot, &recipe, "message", e.checked);
	post_receive();
	e.received++;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	board->side[e.me].checked = htobe64(++e.checked);
}

static void take(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	/* that of an atomic is of the extension, with a cookie at the same place */
	int number = event->event_number;

	if ((number != DAT_DTO_COMPLETION_EVENT && number != DAT_IB_DTO_EVENT) ||
	    dto->status != DAT_DTO_SUCCESS)
		fail("seed %u, side %d: event 0x%x, status %d", soak_seed, e.me, number,
		     dto->status);
	if (number == DAT_DTO_COMPLETION_EVENT && dto->operation == DAT_DTO_RECEIVE)
		message_arrived(dto);
	else
		request_completed(dto->user_cookie.as_64);
	e.progress = life_now();
}

static void next_mode(void)
{
	e.sleeping = !e.sleeping;
	e.stretch = 1 + soak_below(&e.random, STRETCH);
	e.switches++;
}

/* In the sleeping mode a wait begins as soon as there is no event and nothing to post. */
static void take_events(uint64_t posted_before)
{
	DAT_EVENT event;
	DAT_COUNT n;
	bool any = false;

	while (dat_evd_dequeue(e.end.recv, &event) == DAT_SUCCESS) {
		take(&event);
		any = true;
		if (e.stretch-- == 1)
			next_mode();
	}
	if (any || e.posted > posted_before || !e.sleeping)
		return;
	e.sleeps++;
	/* The peer's `checked` comes without an event: look again after a millisecond. */
	if (dat_evd_wait(e.end.recv, 1000, 1, &event, &n) == DAT_SUCCESS)
		take(&event);
}

static bool finished(void)
{
	uint64_t all = operations;

	return e.posted == all && e.completed == all && e.checked == all &&
	       checked_by_peer() == all;
}

/* --- the two sides ------------------------------------------------------------------------------------ */

static void one_side(int me)
{
	e.me = me;
	e.random = soak_stream((uint64_t)me);
	e.stretch = 1;
	make_endpoint();
	join();
	e.progress = life_now();
	while (!finished()) {
		uint64_t before = e.posted;

		for (unsigned n = soak_below(&e.random, 16); n > 0; n--)
			post_next();
		take_events(before);
		if (life_now() - e.progress > STALL)
			fail("seed %u, side %d: no progress for %d s: %llu posted, %llu completed, "
			     "%llu received, "
			     "%llu checked, %llu checked by the peer",
			     soak_seed, me, STALL, (unsigned long long)e.posted,
			     (unsigned long long)e.completed, (unsigned long long)e.received,
			     (unsigned long long)e.checked,
			     (unsigned long long)checked_by_peer());
	}
	board->side[me].done = true;
	wait_for(&board->side[!me].done);
	if (e.memory->counter != (life_on_soft() ? e.added_by_peer : 0))
		fail("seed %u, side %d: the counter is %#llx, expected the sum %#llx", soak_seed,
		     me, (unsigned long long)e.memory->counter,
		     (unsigned long long)e.added_by_peer);
	EXPECT(poisoned(e.memory->before, GUARD) && poisoned(e.memory->after, GUARD));
	board->side[me].sleeps = e.sleeps;
	board->side[me].switches = e.switches;
	board->side[me].bytes = e.bytes;
	OK(end_close(&e.end));
}

/* One side alone: the other one is another process of the same seed and rounds, perhaps of another
 * build. SOAK_BOARD names a file of zeros that both share. */
static void be_side(const char *side)
{
	const char *path = getenv("SOAK_BOARD");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;

	if (fd < 0 || ftruncate(fd, sizeof *board))
		fail("SOAK_BOARD: %s: %s", path ? path : "not set", strerror(errno));
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(board != MAP_FAILED);
	close(fd);
	operations = soak_rounds(60000);
	setenv("DAPL_DBG_TYPE", "1",
	       1); /* a version with other layouts of memory is reached over TCP, with a line */
	one_side(*side == '1');
}

static void conserve(const char *name)
{
	double begin = life_now();
	int status;
	pid_t pid;

	if (getenv("SOAK_SIDE")) {
		be_side(getenv("SOAK_SIDE"));
		return;
	}
	if (life_on_soft())
		own_network();
	board = soak_shared(sizeof *board);
	operations = soak_rounds(life_on_soft() ? 60000 / SLOWER : 1000);
	pid = fork();
	if (!pid) {
		one_side(1);
		exit(0);
	}
	one_side(0);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("seed %u: the other side ended with status 0x%x", soak_seed, status);
	soak_figure("%s: %llu DTOs each way, %.1f GB checked, %llu sleeps, %llu changes between "
		    "polling and "
		    "sleeping, %.0f s",
		    name, (unsigned long long)operations,
		    (double)(board->side[0].bytes + board->side[1].bytes) / 1e9,
		    (unsigned long long)(board->side[0].sleeps + board->side[1].sleeps),
		    (unsigned long long)(board->side[0].switches + board->side[1].switches),
		    life_now() - begin);
}

static void random_dtos_are_conserved(void)
{
	conserve(life_on_soft() ? "shared memory" : getenv("LIFE_DEVICE"));
}

static void random_dtos_are_conserved_without_cma(void)
{
	if (!life_on_soft())
		skip("a protocol of the software device");
	setenv("DAPL_SOFT_DIRECT", "0", 1);
	conserve("shared memory without CMA");
}

static void random_dtos_are_conserved_over_tcp(void)
{
	if (!life_on_soft())
		skip("the device has no shared memory to be without");
	setenv("DAPL_SOFT_SHM", "0", 1);
	conserve("TCP");
}

static const struct life_case cases[] = {
	CASE(random_dtos_are_conserved),
	CASE(random_dtos_are_conserved_without_cma),
	CASE(random_dtos_are_conserved_over_tcp),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
