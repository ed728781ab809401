/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c - memory that cannot be registered: read-only, without rights, missing, or behind
 * the end of a file; the result is the same on every device. And, on the software device,
 * memory windows that the peer invalidates, and memory that is unmapped while it is registered. */
#include "life.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, SIZE = 4 * PAGE };

/* An address far below those that the kernel chooses: no mapping of another thread takes the place of pages
 * that a test has unmapped. */
static char *some_memory(int protection)
{
	static uintptr_t hint = (uintptr_t)(sizeof(void *) == 8 ? 0x300000000000 : 0x30000000);
	char *at = mmap((void *)hint, SIZE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	hint += 16 * SIZE;

	EXPECT(at != MAP_FAILED);
	return at;
}

/* The file has one page only. */
static char *short_file(void)
{
	int fd = memfd_create("life-memory", MFD_CLOEXEC);
	char *at;

	EXPECT(fd >= 0 && !ftruncate(fd, PAGE));
	at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(at != MAP_FAILED);
	close(fd);
	return at;
}

/* Registers memory, and frees it at once. Returns the type of the result. */
static DAT_RETURN registers(const struct session *s, void *at, int privileges)
{
	DAT_REGION_DESCRIPTION region = { .for_va = at };
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret = dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, s->a.pz,
					(DAT_MEM_PRIV_FLAGS)privileges, DAT_VA_TYPE_VA, &lmr, NULL,
					NULL, NULL, NULL);

	if (ret == DAT_SUCCESS)
		OK(dat_lmr_free(lmr));
	return DAT_GET_TYPE(ret);
}

static struct session *new_session(void)
{
	struct session *s = calloc(1, sizeof *s);

	EXPECT(s);
	OK(session_open(s, MOMENT));
	return s;
}

static void end_session(struct session *s)
{
	OK(session_close(s));
	free(s);
}

static void read_only_memory_is_not_registered_for_writing(void)
{
	static const int writing[] = { DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
				       DAT_MEM_PRIV_ALL_FLAG };
	struct session *s = new_session();
	char *all = some_memory(PROT_READ), *last = some_memory(PROT_READ | PROT_WRITE);

	EXPECT(!mprotect(last + SIZE - PAGE, PAGE, PROT_READ));
	for (unsigned i = 0; i < sizeof writing / sizeof *writing; i++) {
		EXPECT(registers(s, all, writing[i]) == DAT_PRIVILEGES_VIOLATION);
		EXPECT(registers(s, last, writing[i]) == DAT_PRIVILEGES_VIOLATION);
	}
	/* A device with memory windows registers with the right to bind, for which the kernel asks for pages that
	 * can be written. */
	if (life_on_soft())
		EXPECT(registers(s, all, DAT_MEM_PRIV_READ_FLAG) == DAT_SUCCESS);
	end_session(s);
}

static void missing_memory_is_not_registered(void)
{
	struct session *s = new_session();
	char *hole = some_memory(PROT_READ | PROT_WRITE);

	EXPECT(!munmap(hole + 2 * PAGE, PAGE));
	EXPECT(registers(s, hole, DAT_MEM_PRIV_ALL_FLAG) == DAT_PRIVILEGES_VIOLATION);
	EXPECT(registers(s, hole, DAT_MEM_PRIV_READ_FLAG) == DAT_PRIVILEGES_VIOLATION);
	EXPECT(registers(s, some_memory(PROT_NONE), DAT_MEM_PRIV_READ_FLAG) ==
	       DAT_PRIVILEGES_VIOLATION);
	end_session(s);
}

static void pages_behind_the_end_of_a_file_are_not_registered(void)
{
	struct session *s = new_session();

	EXPECT(registers(s, short_file(), DAT_MEM_PRIV_ALL_FLAG) == DAT_PRIVILEGES_VIOLATION);
	EXPECT(registers(s, short_file(), DAT_MEM_PRIV_READ_FLAG) == DAT_PRIVILEGES_VIOLATION);
	end_session(s);
}

static DAT_DTO_COMPLETION_STATUS status_of(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	OK(await(evd, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
	return event.event_data.dto_completion_event_data.status;
}

/* --- memory windows ------------------------------------------------------------------ */

/* Binds the window, or unbinds it. Returns its context. */
static DAT_RMR_CONTEXT bound(struct session *s, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, DAT_LMR_TRIPLET range)
{
	DAT_RMR_COOKIE cookie = { .as_64 = 1 };
	DAT_RMR_CONTEXT context;
	DAT_EVENT event;

	OK(dat_rmr_bind(rmr, lmr, &range, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, s->b.ep, cookie,
			DAT_COMPLETION_DEFAULT_FLAG, &context));
	OK(await(s->b.request, DAT_RMR_BIND_COMPLETION_EVENT, MOMENT, &event));
	EXPECT(event.event_data.rmr_completion_event_data.status == DAT_DTO_SUCCESS);
	return context;
}

/* RMR-15 */
static void a_window_that_the_peer_invalidated_is_bound_again(void)
{
	struct session *s = new_session();
	char *at = some_memory(PROT_READ | PROT_WRITE);
	DAT_REGION_DESCRIPTION region = { .for_va = at };
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)s->a.memory, .segment_length = 64,
				 .lmr_context = s->a.local };
	DAT_LMR_TRIPLET into = { .virtual_address = (uintptr_t)s->b.memory, .segment_length = 64,
				 .lmr_context = s->b.local };
	DAT_LMR_TRIPLET range = { .virtual_address = (uintptr_t)at, .segment_length = SIZE };
	DAT_RMR_TRIPLET window = { .virtual_address = (uintptr_t)at, .segment_length = 64 };
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;

	if (!life_on_soft())
		skip("a device may lack windows or sends with invalidate");
	OK(dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, s->b.pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &range.lmr_context, NULL, NULL, NULL));
	OK(dat_rmr_create_for_ep(s->b.pz, &rmr));
	window.rmr_context = bound(s, rmr, lmr, range);
	OK(dat_ep_post_recv(s->b.ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	OK(dat_ep_post_send_with_invalidate(s->a.ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE,
					    window.rmr_context));
	EXPECT(status_of(s->a.request) == DAT_DTO_SUCCESS);
	EXPECT(status_of(s->b.recv) == DAT_DTO_SUCCESS);
	window.rmr_context = bound(s, rmr, lmr, range);
	OK(dat_ep_post_rdma_write(s->a.ep, 1, &from, cookie, &window, DAT_COMPLETION_DEFAULT_FLAG));
	EXPECT(status_of(s->a.request) == DAT_DTO_SUCCESS);
	OK(dat_rmr_free(rmr));
	OK(dat_lmr_free(lmr));
	end_session(s);
}

/* RMR-3: devices refuse to invalidate such a window. */
static void an_unbound_window_is_unbound_again(void)
{
	struct session *s = new_session();
	DAT_LMR_TRIPLET nothing = { .segment_length = 0 };
	DAT_LMR_TRIPLET range = { .virtual_address = (uintptr_t)s->b.memory, .segment_length = 64,
				  .lmr_context = s->b.local };
	DAT_RMR_HANDLE rmr;

	if (!life_on_soft())
		skip("a device may lack windows");
	OK(dat_rmr_create_for_ep(s->b.pz, &rmr));
	bound(s, rmr, DAT_HANDLE_NULL, nothing);
	bound(s, rmr, s->b.lmr, range);
	bound(s, rmr, DAT_HANDLE_NULL, nothing);
	bound(s, rmr, DAT_HANDLE_NULL, nothing);
	bound(s, rmr, s->b.lmr, range);
	OK(dat_rmr_free(rmr));
	end_session(s);
}

/* --- DAPL_SOFT_GUARD ----------------------------------------------------------------- */

enum what { WRITE, READ, SEND, KINDS };
enum loss { UNMAPPED, READ_ONLY };

struct access {
	enum what what;
	enum loss loss;
	unsigned length;
};

static void lose(char *at, enum loss loss)
{
	EXPECT(loss == UNMAPPED ? !munmap(at, SIZE) : !mprotect(at, SIZE, PROT_READ));
}

/* Runs in a child: side a accesses memory that side b has unmapped. */
static void access_lost_memory(const void *arg)
{
	const struct access *access = arg;
	struct session *s = new_session();
	char *at = some_memory(PROT_READ | PROT_WRITE);
	DAT_REGION_DESCRIPTION region = { .for_va = at };
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)s->a.memory,
				 .segment_length = access->length, .lmr_context = s->a.local };
	DAT_LMR_TRIPLET into = { .virtual_address = (uintptr_t)at, .segment_length = SIZE };
	DAT_RMR_TRIPLET remote = { .virtual_address = (uintptr_t)at + PAGE,
				   .segment_length = access->length };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_DTO_COMPLETION_STATUS status;
	DAT_LMR_HANDLE lmr;

	OK(dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, region, SIZE, s->b.pz, DAT_MEM_PRIV_ALL_FLAG,
			  DAT_VA_TYPE_VA, &lmr, &into.lmr_context, &remote.rmr_context, NULL, NULL));
	OK(dat_ep_post_recv(s->b.ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	lose(at, access->loss);
	switch (access->what) {
	case WRITE:
		OK(dat_ep_post_rdma_write(s->a.ep, 1, &from, cookie, &remote,
					  DAT_COMPLETION_DEFAULT_FLAG));
		break;
	case READ:
		OK(dat_ep_post_rdma_read(s->a.ep, 1, &from, cookie, &remote,
					 DAT_COMPLETION_DEFAULT_FLAG));
		break;
	default:
		OK(dat_ep_post_send(s->a.ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	}
	status = status_of(s->a.request);
	if (access->what == SEND) {
		EXPECT(status_of(s->b.recv) == DAT_DTO_ERR_LOCAL_PROTECTION);
		EXPECT(status != DAT_DTO_SUCCESS);
	} else {
		EXPECT(status == DAT_DTO_ERR_REMOTE_ACCESS);
	}
	OK(await(s->a.conn, DAT_CONNECTION_EVENT_BROKEN, MOMENT, NULL));
	end_session(s);
}

static void expect_guarded(struct access access)
{
	struct child_result result = run(access_lost_memory, &access);
	const char *line = strstr(result.text, " can no longer be ");

	if (result.status || !line || strstr(line + 1, " can no longer be ") ||
	    !strstr(result.text, "of the LMR with context 0x"))
		fail("kind %d, loss %d, %u bytes: status 0x%x: %s", access.what, access.loss,
		     access.length, result.status, result.text);
}

static void guarded_memory_fails_the_peers_request(void)
{
	static const unsigned lengths[] = { 8, 100, PAGE };

	if (!life_on_soft())
		skip("hardware keeps the pages");
	setenv("DAPL_SOFT_GUARD", "1", 1);
	for (int kind = 0; kind < KINDS; kind++)
		for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
			expect_guarded((struct access){ kind, UNMAPPED, lengths[i] });
			if (kind != READ)
				expect_guarded((struct access){ kind, READ_ONLY, lengths[i] });
		}
}

static void guarded_memory_fails_the_peers_request_over_tcp(void)
{
	setenv("DAPL_SOFT_SHM", "0", 1);
	guarded_memory_fails_the_peers_request();
}

static void guarded_memory_fails_the_peers_request_without_direct_access(void)
{
	setenv("DAPL_SOFT_DIRECT", "0", 1);
	guarded_memory_fails_the_peers_request();
}

static void a_guarded_session_works(void)
{
	if (!life_on_soft())
		skip("hardware keeps the pages");
	setenv("DAPL_SOFT_GUARD", "1", 1);
	whole_session();
}

int main(int argc, char **argv)
{
	static const struct life_case cases[] = {
		CASE(read_only_memory_is_not_registered_for_writing),
		CASE(missing_memory_is_not_registered),
		CASE(pages_behind_the_end_of_a_file_are_not_registered),
		CASE(a_window_that_the_peer_invalidated_is_bound_again),
		CASE(an_unbound_window_is_unbound_again),
		CASE(guarded_memory_fails_the_peers_request),
		CASE(guarded_memory_fails_the_peers_request_over_tcp),
		CASE(guarded_memory_fails_the_peers_request_without_direct_access),
		CASE(a_guarded_session_works),
	};

	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
