/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* forged.c - RDMA requests that a peer must not make: with a guessed key, a key of a region that was
 * freed, of another protection zone, of a region without that right, or a range outside the region.
 * Each fails, ends its connection on both sides, and changes nothing outside the region. Two processes; --rounds sets
 * the number of attempts, each over a connection of its own. */
#include "soak.h"
#include "test/own_network.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

enum {
	PAGE = 4096,
	REGION = 64 << 10, /* bytes of each region */
	SECRET = 0xc5,
	STALL = 30, /* s */
};

enum forgery { GUESSED, STALE, OTHER_ZONE, NO_RIGHT, LOCAL_ONLY, OUTSIDE, FORGERIES };
static const char *const name_of[] = { "guessed key",
				       "stale key",
				       "key of another zone",
				       "right that is missing",
				       "region without remote access",
				       "range outside the region" };

/* The regions of the victim, in this order in its memory, with unregistered pages between them. */
enum place { OPEN, READ_ONLY, WRITE_ONLY, ZONE, LOCAL, FREED, PLACES };

static struct board {
	volatile DAT_CONN_QUAL qual;
	volatile uint64_t address[PLACES];
	volatile DAT_RMR_CONTEXT key[PLACES];
	volatile unsigned round, freed, checked; /* rounds of the attacker and the victim */
	volatile bool done;
	/* the attempt under way, for the message of a failure */
	volatile unsigned forgery, length;
	volatile bool write;
	volatile uint64_t target;
} *board;

struct side {
	struct end end;
	DAT_PZ_HANDLE other_pz;
	DAT_LMR_HANDLE freed;
	uint8_t *memory;
	uint64_t random;
};

static void open_end(struct side *e)
{
	memset(e, 0, sizeof *e);
	OK(end_open(&e->end, LIFE_IA, (struct end_events){ .cr = 16, .conn = 16, .recv = 64 }));
	OK(dat_pz_create(e->end.ia, &e->other_pz));
	e->memory = mmap(NULL, PLACES * (REGION + PAGE) + PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(e->memory != MAP_FAILED);
	memset(e->memory, SECRET, PLACES * (REGION + PAGE) + PAGE);
}

static uint8_t *place_of(const struct side *e, enum place place)
{
	return e->memory + PAGE + place * (REGION + PAGE);
}

static DAT_LMR_HANDLE reg(struct side *e, enum place place, DAT_PZ_HANDLE pz, int privileges)
{
	DAT_REGION_DESCRIPTION region = { .for_va = place_of(e, place) };
	DAT_RMR_CONTEXT remote;
	DAT_LMR_CONTEXT local;
	DAT_LMR_HANDLE lmr;

	OK(dat_lmr_create(e->end.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, pz,
			  (DAT_MEM_PRIV_FLAGS)privileges, DAT_VA_TYPE_VA, &lmr, &local, &remote,
			  NULL, NULL));
	board->address[place] = (uintptr_t)region.for_va;
	board->key[place] = place == LOCAL ? local : remote;
	return lmr;
}

static void wait_until(const volatile unsigned *count, unsigned least, const char *what)
{
	double begin = life_now();

	while (*count < least && !board->done) {
		if (life_now() - begin > STALL)
			fail("seed %u, round %u: %s does not come", soak_seed, board->round, what);
		usleep(20);
	}
}

static void end_event(struct side *e)
{
	DAT_EVENT event;
	DAT_COUNT n;

	OK(dat_evd_wait(e->end.conn, STALL * 1000000, 1, &event, &n));
	if (event.event_number != DAT_CONNECTION_EVENT_BROKEN &&
	    event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		fail("seed %u, round %u: event 0x%x", soak_seed, board->round, event.event_number);
}

/* --- the victim --------------------------------------------------------------------------------- */

/* Of a write that begins in its region and ends outside, the part inside may be placed: a message is checked
 * piece by piece as it arrives, as RFC 5041 allows. */
static bool may_change(const struct side *e, size_t byte)
{
	uint64_t address = (uintptr_t)e->memory + byte;

	return board->forgery == OUTSIDE && board->write && address >= board->address[OPEN] &&
	       address < board->address[OPEN] + REGION && address >= board->target &&
	       address - board->target < board->length;
}

static void check_memory(const struct side *e)
{
	for (size_t i = 0; i < PLACES * (REGION + PAGE) + PAGE; i++)
		if (e->memory[i] != SECRET && !may_change(e, i))
			fail("seed %u, round %u: byte %zu of the victim is 0x%02x after: %s, %s of "
			     "%u bytes at %lld",
			     soak_seed, board->round, i, e->memory[i], name_of[board->forgery],
			     board->write ? "write" : "read", board->length,
			     (long long)(board->target - (uintptr_t)e->memory));
	memset(place_of(e, OPEN), SECRET, REGION);
}

static void victim_round(struct side *e, unsigned round)
{
	DAT_EVENT event;

	e->freed = reg(e, FREED, e->end.pz, DAT_MEM_PRIV_ALL_FLAG);
	OK(end_create_ep(&e->end, NULL));
	board->checked = round; /* the attacker may connect */
	OK(await(e->end.cr, DAT_CONNECTION_REQUEST_EVENT, STALL * 1000000, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e->end.ep, 0, NULL));
	OK(await(e->end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, STALL * 1000000, NULL));
	wait_until(&board->round, round + 1, "the attacker's first request");
	OK(dat_lmr_free(e->freed));
	board->freed = round + 1;
	end_event(e);
	OK(dat_ep_free(e->end.ep));
	check_memory(e);
}

static void be_victim(unsigned rounds)
{
	struct side e;
	DAT_CONN_QUAL qual;

	open_end(&e);
	reg(&e, OPEN, e.end.pz, DAT_MEM_PRIV_ALL_FLAG);
	reg(&e, READ_ONLY, e.end.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG);
	reg(&e, WRITE_ONLY, e.end.pz,
	    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
		    DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	reg(&e, ZONE, e.other_pz, DAT_MEM_PRIV_ALL_FLAG);
	reg(&e, LOCAL, e.end.pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	OK(dat_psp_create_any(e.end.ia, &qual, e.end.cr, DAT_PSP_CONSUMER_FLAG, &e.end.psp));
	board->qual = qual;
	for (unsigned i = 0; i < rounds; i++)
		victim_round(&e, i + 1);
	OK(end_close(&e.end));
}

/* --- the attacker ----------------------------------------------------------------------------------- */

struct request {
	bool write;
	uint64_t address;
	DAT_RMR_CONTEXT key;
	uint32_t length;
};

static void post(struct side *e, const struct request *r)
{
	DAT_LMR_TRIPLET here = end_segment(&e->end, place_of(e, OPEN), r->length);
	DAT_RMR_TRIPLET there = { .rmr_context = r->key,
				  .virtual_address = r->address,
				  .segment_length = r->length };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };

	OK(r->write ? dat_ep_post_rdma_write(e->end.ep, 1, &here, cookie, &there,
					     DAT_COMPLETION_DEFAULT_FLAG)
		    : dat_ep_post_rdma_read(e->end.ep, 1, &here, cookie, &there,
					    DAT_COMPLETION_DEFAULT_FLAG));
}

static DAT_DTO_COMPLETION_STATUS status(struct side *e)
{
	DAT_EVENT event;

	OK(await(e->end.recv, DAT_DTO_COMPLETION_EVENT, STALL * 1000000, &event));
	return event.event_data.dto_completion_event_data.status;
}

static struct request at_place(struct side *e, enum place place, bool write)
{
	uint32_t length = 1 + soak_below(&e->random, soak_below(&e->random, 2) ? 64 : REGION);

	return (struct request){ .write = write,
				 .length = length,
				 .key = board->key[place],
				 .address = board->address[place] +
					    soak_below(&e->random, REGION - length + 1) };
}

/* Past the end, before the begin, or across either by one byte or more. */
static void move_outside(struct side *e, struct request *r)
{
	uint64_t begin = board->address[OPEN], end = begin + REGION;
	uint32_t some = 1 + soak_below(&e->random, r->length);

	switch (soak_below(&e->random, 4)) {
	case 0: r->address = end - r->length + some; break;
	case 1: r->address = begin - some; break;
	case 2: r->address = soak_random(&e->random) << 16 | soak_random(&e->random); break;
	case 3: r->address = UINT64_MAX - soak_below(&e->random, REGION); break;
	}
	if (r->address >= begin && r->address + r->length <= end)
		r->address = end;
}

static bool is_a_key(DAT_RMR_CONTEXT key)
{
	for (unsigned i = 0; i < PLACES; i++)
		if (board->key[i] == key)
			return true;
	return false;
}

static struct request forge(struct side *e, enum forgery forgery)
{
	bool write = soak_below(&e->random, 2);
	struct request r = at_place(e, OPEN, write);

	switch (forgery) {
	case GUESSED:
		do /* half of them are near a real one */
			r.key = soak_below(&e->random, 2)
					? (DAT_RMR_CONTEXT)soak_random(&e->random)
					: r.key ^ 1u << soak_below(&e->random, 32);
		while (is_a_key(r.key));
		break;
	case STALE: r = at_place(e, FREED, write); break;
	case OTHER_ZONE: r = at_place(e, ZONE, write); break;
	case NO_RIGHT: r = at_place(e, write ? READ_ONLY : WRITE_ONLY, write); break;
	case LOCAL_ONLY: r = at_place(e, LOCAL, write); break;
	default: move_outside(e, &r);
	}
	return r;
}

/* Makes an allowed read first: of the region that is freed afterwards, if the key of a freed region is to be
 * forged. */
static void attack(struct side *e, unsigned round, unsigned *refused)
{
	enum forgery forgery = (enum forgery)soak_below(&e->random, FORGERIES);
	struct request allowed = at_place(e, forgery == STALE ? FREED : OPEN, false), forged;
	DAT_IA_ATTR attr;

	OK(dat_ia_query(e->end.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	OK(end_create_ep(&e->end, NULL));
	OK(dat_ep_connect(e->end.ep, attr.ia_address_ptr, board->qual, STALL * 1000000, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(e->end.conn, DAT_CONNECTION_EVENT_ESTABLISHED, STALL * 1000000, NULL));
	memset(place_of(e, OPEN), 0, allowed.length);
	post(e, &allowed);
	EXPECT(status(e) == DAT_DTO_SUCCESS);
	EXPECT(place_of(e, OPEN)[0] == SECRET && place_of(e, OPEN)[allowed.length - 1] == SECRET);
	board->round = round + 1;
	wait_until(&board->freed, round + 1, "the freed region");
	forged = forge(e, forgery);
	board->forgery = forgery;
	board->length = forged.length;
	board->write = forged.write;
	board->target = forged.address;
	memset(place_of(e, OPEN), 0x11, REGION);
	usleep(soak_below(&e->random, 300)); /* the victim polls, or sleeps */
	post(e, &forged);
	if (status(e) == DAT_DTO_SUCCESS)
		fail("seed %u, round %u: %s: an RDMA %s of %u bytes at %#llx with key %#x succeeds",
		     soak_seed, round, name_of[forgery], forged.write ? "write" : "read",
		     forged.length, (unsigned long long)forged.address, (unsigned)forged.key);
	for (uint32_t i = 0; i < forged.length; i++)
		if (place_of(e, OPEN)[i] != 0x11)
			fail("seed %u, round %u: %s: bytes of the victim arrive", soak_seed, round,
			     name_of[forgery]);
	end_event(e);
	OK(dat_ep_free(e->end.ep));
	refused[forgery]++;
}

static void be_attacker(unsigned rounds, unsigned *refused)
{
	struct side e;

	open_end(&e);
	e.random = soak_stream(5);
	OK(end_register(&e.end, place_of(&e, OPEN), REGION));
	for (unsigned i = 0; i < rounds; i++) {
		wait_until(&board->checked, i + 1, "the victim");
		attack(&e, i + 1, refused);
	}
	OK(end_close(&e.end));
}

static void attempts(const char *name)
{
	unsigned rounds = soak_rounds(120), refused[FORGERIES] = { 0 };
	int status;
	pid_t pid;

	setenv("DAPL_DBG_TYPE", "1",
	       1); /* test/life/diagnosis checks the lines about refused requests */
	own_network();
	board = soak_shared(sizeof *board);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		be_victim(rounds);
		exit(0);
	}
	be_attacker(rounds, refused);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("seed %u: the victim ends with status 0x%x", soak_seed, status);
	soak_figure("%s: %u attempts, all refused: %u guessed keys, %u stale, %u of another zone, "
		    "%u without the right, "
		    "%u of local regions, %u ranges outside",
		    name, rounds, refused[GUESSED], refused[STALE], refused[OTHER_ZONE],
		    refused[NO_RIGHT], refused[LOCAL_ONLY], refused[OUTSIDE]);
}

static void forged_requests_are_refused(void)
{
	attempts("shared memory");
}

static void forged_requests_are_refused_without_cma(void)
{
	setenv("DAPL_SOFT_DIRECT", "0", 1);
	attempts("shared memory without CMA");
}

static void forged_requests_are_refused_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	attempts("TCP");
}

static const struct life_case cases[] = {
	CASE(forged_requests_are_refused),
	CASE(forged_requests_are_refused_without_cma),
	CASE(forged_requests_are_refused_over_tcp),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
