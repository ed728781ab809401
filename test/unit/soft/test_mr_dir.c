/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mr_dir.c - the MR directory: what is published, which permissions a peer finds there, and when they end.
 * Both sides are in this process. */
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/mr_dir.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/unit.h"

enum { RW = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE };

static struct shm_mr_dir directory;
static struct shm_process process;
static struct soft_pd pd, other_pd;
static struct ring_grant grant;
static struct shm_conn shm;
static struct dapl_conn conn;
static char memory[4096];

static int set_up(void **state)
{
	memset(&directory, 0, sizeof directory);
	process = (struct shm_process){ .id = 77, .mr_dir = &directory, .file = 0, .window_file = -1,
		.pidfd = -1 };
	pd.id = 5;
	other_pd.id = 6;
	grant.pd = pd.id;
	shm.grant = &grant;
	shm.peer = &process;
	conn.shm = &shm;
	mr_dir_open(&process);
	return process.window_file < 0;
}

UNIT_FIXTURE(tear_down) { mr_dir_close(&process); }

static struct soft_region region(uint32_t stag, int access)
{
	return (struct soft_region){ .kind = SOFT_MR, .pd = &pd, .valid = true, .stag = stag,
		.first = 0x10000, .length = sizeof memory, .base = memory, .file = -1, .access = access };
}

static bool finds(uint32_t stag, uint32_t needed)
{
	struct mr_permit permit;

	return mr_permit_find(&conn, stag, needed, &permit);
}

UNIT_CASE(opened_directory_tells_where_it_is)
{
	int seals = fcntl(process.window_file, F_GET_SEALS);

	assert_int_equal(directory.id, 77);
	assert_int_equal(directory.self, (uintptr_t)&directory);
	assert_int_equal(directory.pid, getpid());
	assert_int_equal(directory.fd, process.window_file);
	assert_int_equal(directory.window % WINDOW_SIZE, 0);
	assert_true(directory.window > 0);
	assert_true(seals & F_SEAL_GROW && seals & F_SEAL_SEAL);
	assert_false(seals & F_SEAL_SHRINK);	/* a revocation truncates it */
	assert_int_equal(lseek(process.window_file, 0, SEEK_END), directory.window + WINDOW_SIZE);
}

UNIT_CASE(permission_needs_rights_domain_and_key)
{
	struct soft_region r = region(0x100, IBV_ACCESS_REMOTE_READ), foreign = region(0x200, RW);

	foreign.pd = &other_pd;
	mr_dir_publish(&process, &r);
	mr_dir_publish(&process, &foreign);
	assert_true(finds(0x100, IBV_ACCESS_REMOTE_READ));
	assert_true(finds(0x100, RW));		/* any of the rights */
	assert_false(finds(0x100, IBV_ACCESS_REMOTE_WRITE));
	assert_false(finds(0x100, IBV_ACCESS_REMOTE_ATOMIC));
	assert_false(finds(0x200, IBV_ACCESS_REMOTE_WRITE));
	assert_false(finds(0x101, IBV_ACCESS_REMOTE_READ));	/* another key of the same set */
	assert_false(finds(0x100 + 0x10000, IBV_ACCESS_REMOTE_READ));
	grant.pd = 0;
	assert_false(finds(0x100, IBV_ACCESS_REMOTE_READ));
	grant.pd = other_pd.id;
	assert_true(finds(0x200, IBV_ACCESS_REMOTE_WRITE));
}

UNIT_CASE(regions_of_no_use_to_peers_are_not_published)
{
	struct soft_region local = region(0x300, IBV_ACCESS_LOCAL_WRITE), window = region(0x400, RW),
			   unopened = region(0x500, RW);
	struct shm_process closed = process;

	window.kind = SOFT_WINDOW_2;
	closed.window_file = -1;
	mr_dir_publish(&process, &local);
	mr_dir_publish(&process, &window);
	mr_dir_publish(&closed, &unopened);
	mr_dir_publish(NULL, &unopened);	/* a device without shared memory */
	for (unsigned set = 0; set < MR_DIR_SETS; set++)
		for (unsigned way = 0; way < MR_DIR_WAYS; way++)
			assert_int_equal(directory.entry[set][way].version & 1, 0);
	assert_false(mr_dir_withdraw(&process, &local));
	assert_false(mr_dir_withdraw(&process, &window));
	assert_false(mr_dir_withdraw(NULL, &unopened));
	assert_false(mr_dir_withdraw(&process, &unopened));	/* it has no entry */
}

/* Keys that differ in the lowest byte, or by a multiple of 65536, share a set. */
UNIT_CASE(region_without_a_free_entry_is_left_out)
{
	struct soft_region r[MR_DIR_WAYS + 1];

	for (unsigned i = 0; i <= MR_DIR_WAYS; i++) {
		r[i] = region(0x700 + i, RW);
		mr_dir_publish(&process, &r[i]);
		assert_int_equal(finds(0x700 + i, RW), i < MR_DIR_WAYS);
	}
	assert_true(mr_dir_withdraw(&process, &r[1]));
	assert_false(finds(0x701, RW));
	assert_true(finds(0x700, RW) && finds(0x702, RW));
	mr_dir_publish(&process, &r[MR_DIR_WAYS]);
	assert_true(finds(0x700 + MR_DIR_WAYS, RW));
}

UNIT_CASE(withdrawal_ends_permissions_for_good)
{
	struct soft_region r = region(0x900, RW);
	struct mr_permit permit;

	mr_dir_publish(&process, &r);
	assert_true(mr_permit_find(&conn, 0x900, RW, &permit));
	assert_true(mr_dir_withdraw(&process, &r));
	assert_false(mr_permit_is_valid(&permit));
	assert_false(finds(0x900, RW));
	mr_dir_publish(&process, &r);		/* the same key, in the same entry */
	assert_true(finds(0x900, RW));
	assert_false(mr_permit_still_valid(&permit));
}

/* Only writers are waited for. */
UNIT_CASE(withdrawal_tells_whether_peers_may_be_writing)
{
	static const struct { int access; bool writers; } cases[] = {
		{ IBV_ACCESS_REMOTE_READ, false }, { IBV_ACCESS_REMOTE_WRITE, true },
		{ IBV_ACCESS_REMOTE_ATOMIC, true }, { RW, true },
		{ IBV_ACCESS_REMOTE_READ | IBV_ACCESS_LOCAL_WRITE, false },
	};

	for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct soft_region r = region(0x10000 + (i << 8), cases[i].access);

		mr_dir_publish(&process, &r);
		assert_int_equal(mr_dir_withdraw(&process, &r), cases[i].writers);
		assert_false(mr_dir_withdraw(&process, &r));	/* it is gone */
	}
}

UNIT_CASE(permission_covers_its_range_and_no_more)
{
	static const struct { uint64_t first, size, remote, length; bool covered; } cases[] = {
		{ 0x1000, 0x100, 0x1000, 0x100, true }, { 0x1000, 0x100, 0x10ff, 1, true },
		{ 0x1000, 0x100, 0x1100, 0, true }, { 0x1000, 0x100, 0x1000, 0, true },
		{ 0x1000, 0x100, 0xfff, 1, false }, { 0x1000, 0x100, 0xfff, 2, false },
		{ 0x1000, 0x100, 0x1000, 0x101, false }, { 0x1000, 0x100, 0x1001, 0x100, false },
		{ 0x1000, 0x100, 0x1101, 0, false }, { 0x1000, 0x100, 0x1000, UINT64_MAX, false },
		{ 0x1000, 0x100, UINT64_MAX, 2, false },
		{ UINT64_MAX - 15, 16, UINT64_MAX - 15, 15, true },
		{ UINT64_MAX - 15, 16, UINT64_MAX - 14, 15, false },	/* its end wraps */
		{ 0, UINT64_MAX, 0, UINT64_MAX, true }, { 0, UINT64_MAX, 1, UINT64_MAX, false },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mr_permit permit = { .is = { .first = cases[i].first, .length = cases[i].size } };

		if (mr_permit_covers(&permit, cases[i].remote, cases[i].length) != cases[i].covered)
			fail_msg("case %zu", i);
	}
}

UNIT_MAIN(NULL, NULL)
