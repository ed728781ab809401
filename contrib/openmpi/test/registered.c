/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registered.c - tests what the component registers, for how long, and whether it polls the CQ while a peer
 * may access registered memory. Functions of this program intercept and record the component's calls to
 * libdat2. For two ranks.
 *
 *	registered remapped	unmapped memory is registered again
 *	registered returned	memory is registered for the access it needs
 *	registered widened	a registration replaced while in use is freed after use
 *	registered exposed	the CQ is polled while a message is exposed to a peer */
#include "check.h"
#include <dat/udat.h>
#include <dlfcn.h>
#include <sys/mman.h>

enum { TAG = 1, LATER, GO, LARGE = 1 << 17, SOME = 20000, PART = 1 << 14, ROUNDS = 5, MANY = 1000 };

/* --- recorded calls -------------------------------------------------------------------------- */

static struct noted {
	uint8_t *base;
	DAT_VLEN length;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT context;
	int freed;
} noted[1000];
static int registrations, cq_polls;
static DAT_LMR_CONTEXT last_read;	/* local memory of the last RDMA read */

static void *original(const char *name)
{
	void *f = dlsym(dlopen("libdat2.so.2", RTLD_LAZY | RTLD_NOLOAD), name);

	CHECK(f, "there is no %s", name);
	return f;
}

DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			  DAT_VLEN length, DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS may,
			  DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *context,
			  DAT_RMR_CONTEXT *remote, DAT_VLEN *registered, DAT_VADDR *at)
{
	static __typeof__(&dat_lmr_create) f;
	DAT_RETURN rc;

	if (!f)
		f = (__typeof__(f))original("dat_lmr_create");
	rc = f(ia, type, region, length, pz, may, va_type, lmr, context, remote, registered, at);
	if (rc == DAT_SUCCESS && type == DAT_MEM_TYPE_VIRTUAL && registrations < 1000)
		noted[registrations++] = (struct noted){ region.for_va, length, *lmr, *context, 0 };
	return rc;
}

DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	static __typeof__(&dat_lmr_free) f;

	if (!f)
		f = (__typeof__(f))original("dat_lmr_free");
	for (int i = 0; i < registrations; i++)
		noted[i].freed |= noted[i].lmr == lmr;
	return f(lmr);
}

DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *local,
				 DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *remote,
				 DAT_COMPLETION_FLAGS flags)
{
	static __typeof__(&dat_ep_post_rdma_read) f;

	if (!f)
		f = (__typeof__(f))original("dat_ep_post_rdma_read");
	last_read = local->lmr_context;
	return f(ep, n, local, cookie, remote, flags);
}

DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	static __typeof__(&dat_evd_dequeue) f;

	if (!f)
		f = (__typeof__(f))original("dat_evd_dequeue");
	cq_polls++;
	return f(evd, event);
}

/* Returns the last registration that contains this address. */
static struct noted *registration_of(const uint8_t *at)
{
	for (int i = registrations; i-- > 0;)
		if (at >= noted[i].base && at < noted[i].base + noted[i].length)
			return &noted[i];
	CHECK(0, "%p was never registered", (const void *)at);
	return NULL;
}

/* --- the cases ------------------------------------------------------------------------------- */

static uint8_t *map_at(uint8_t *at, size_t n)
{
	uint8_t *p = mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED, "no memory for %zu bytes", n);
	return p;
}

/* Sends the LARGE bytes at `data`, except the first `skip`, from rank 0 to rank 1. */
static void pass(uint8_t *data, size_t skip, unsigned seed)
{
	size_t n = LARGE - skip;
	uint8_t *at = data + skip;

	if (rank == 0) {
		fill(at, n, seed);
		MPI_Send(at, n, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Recv(at, n, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		check_filled(at, n, seed);
		CHECK(last_read == registration_of(at)->context, "not the last registration");
	}
}

/* Uses the same memory three times, then other memory at the same address. The registration of a part is
 * dropped when the whole is registered. */
static void remapped(void)
{
	uint8_t *data = map_at(NULL, LARGE);

	for (int round = 0; round < ROUNDS; round++) {
		size_t first = round % 2 ? 0 : PART;
		int before = registrations;

		pass(data, first, round);
		pass(data, first, round + 1);
		pass(data, PART, round + 2);
		if (rank < 2)
			CHECK(registration_of(data + PART) >= noted + before, "round %d", round);
		munmap(data, LARGE);
		data = map_at(data, LARGE);
	}
}

/* Receives into memory and then sends from it, which needs other access rights. */
static void returned(void)
{
	uint8_t *data = map_at(NULL, LARGE);

	for (int round = 0; round < ROUNDS; round++) {
		pass(data, 0, round);
		if (rank == 1)
			MPI_Send(data, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
		if (rank == 0) {
			memset(data, 0, LARGE);
			MPI_Recv(data, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			check_filled(data, LARGE, round);
		}
	}
}

/* Memory that is being sent is part of a larger registration. A receive into another part of it needs a new
 * registration with more access rights. A receive elsewhere makes Open MPI drop the first registration,
 * which must stay valid until the send is complete. */
static void send_and_widen(uint8_t *data, uint8_t *elsewhere)
{
	struct noted *first;
	MPI_Request request;

	MPI_Send(data, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
	first = registration_of(data);
	MPI_Isend(data, SOME, MPI_BYTE, 1, LATER, MPI_COMM_WORLD, &request);
	MPI_Recv(data + LARGE / 2, SOME, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(registration_of(data + LARGE / 2) != first, "no other registration");
	MPI_Recv(elsewhere, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(!first->freed, "freed, and in use");
	MPI_Send(NULL, 0, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Recv(elsewhere, SOME, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(first->freed, "not freed");
}

static void receive_late(uint8_t *data, uint8_t *elsewhere)
{
	MPI_Recv(data, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Send(elsewhere, SOME, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	MPI_Send(elsewhere, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
	MPI_Recv(NULL, 0, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memset(data, 0, LARGE);
	MPI_Recv(data, SOME, MPI_BYTE, 0, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	check_filled(data, SOME, 7);
	MPI_Send(elsewhere, SOME, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
}

static void widened(void)
{
	uint8_t *data = map_at(NULL, LARGE), *elsewhere = map_at(NULL, LARGE);

	fill(data, LARGE, 7);
	if (rank == 0)
		send_and_widen(data, elsewhere);
	else if (rank == 1)
		receive_late(data, elsewhere);
}

/* After short messages that arrived without a poll of the CQ, the CQ is polled rarely. Polling it also drives
 * the device, for which a peer that reads from this process may be waiting. */
static void exposed(void)
{
	uint8_t *data = map_at(NULL, LARGE);
	MPI_Request request;
	int done = 0, before;

	for (int i = 0; i < MANY && rank < 2; i++) {
		if (rank == 1)
			MPI_Recv(data, 1, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Send(data, 1, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD);
		if (rank == 0)
			MPI_Recv(data, 1, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank == 1) {
		MPI_Recv(data, 1, MPI_BYTE, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Recv(data, LARGE, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 0) {
		MPI_Isend(data, LARGE, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &request);
		before = cq_polls;
		for (int i = 0; i < MANY; i++)
			MPI_Test(&request, &done, MPI_STATUS_IGNORE);
		CHECK(!done, "received before it was requested");
		CHECK(cq_polls - before >= MANY, "%d polls of the CQ in %d tests", cq_polls - before, MANY);
		MPI_Send(data, 1, MPI_BYTE, 1, GO, MPI_COMM_WORLD);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	}
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "";

	begin(&argc, &argv);
	if (!strcmp(kind, "remapped"))
		remapped();
	else if (!strcmp(kind, "returned"))
		returned();
	else if (!strcmp(kind, "exposed"))
		exposed();
	else
		widened();
	return end();
}
