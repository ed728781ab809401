/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_bpf.c - what bpf(2) is asked for, and whether the kernel has tcx. The system call is replaced here; what
 * programs do is steer.c's matter. */
#include <limits.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include "dapl/softeth/bpf.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"

/* Descriptors that the process does not have. */
enum { PROGRAM = 1000, MAP, LINK, COMMANDS = BPF_LINK_UPDATE + 1, INGRESS = 46, ENTRIES = 4 };

static struct bpf_code code;
static int result_of[COMMANDS];		/* of a command; below 0: -errno */
static union bpf_attr asked;		/* of the last call, and its size */
static unsigned asked_size, calls, closed;	/* closed: a bit for each descriptor */
static uint64_t map[ENTRIES][2];
static const char *release;		/* of the kernel; NULL: uname() fails */

/* --- the kernel ------------------------------------------------------------------------------------------------- */

/* In place of syscall(), with the arguments of bpf(2). */
long __wrap_syscall(long number, int command, const void *attr, unsigned size);
int __wrap_uname(struct utsname *name);
int __real_close(int fd);
int __wrap_close(int fd);

static bool ends_with_exit(const union bpf_attr *attr)
{
	const struct bpf_insn *insns = (const struct bpf_insn *)(uintptr_t)attr->insns;

	return attr->insn_cnt && insns[attr->insn_cnt - 1].code == (BPF_JMP | BPF_EXIT);
}

/* Of the map. */
static int access_entry(int command)
{
	uint32_t entry = *(const uint32_t *)(uintptr_t)asked.key;
	void *value = (void *)(uintptr_t)asked.value;

	if (asked.map_fd != MAP || entry >= ENTRIES || asked.flags != BPF_ANY)
		return -ENOENT;
	if (command == BPF_MAP_LOOKUP_ELEM)
		memcpy(value, map[entry], sizeof *map);
	else
		memcpy(map[entry], value, sizeof *map);
	return 0;
}

static int answer(int command)
{
	if (result_of[command] < 0)
		return result_of[command];
	if (command == BPF_PROG_LOAD && !ends_with_exit(&asked))
		return -EINVAL;
	if (command == BPF_MAP_LOOKUP_ELEM || command == BPF_MAP_UPDATE_ELEM)
		return access_entry(command);
	return result_of[command];
}

long __wrap_syscall(long number, int command, const void *attr, unsigned size)
{
	int result = -ENOSYS;

	calls++;
	if (number == SYS_bpf && command >= 0 && command < COMMANDS && size <= sizeof asked) {
		memset(&asked, 0, sizeof asked);
		memcpy(&asked, attr, size);
		asked_size = size;
		result = answer(command);
	}
	if (result >= 0)
		return result;
	errno = -result;
	return -1;
}

int __wrap_uname(struct utsname *name)
{
	memset(name, 0, sizeof *name);
	strncpy(name->release, release ? release : "7.0", sizeof name->release - 1);
	return release ? 0 : -1;
}

int __wrap_close(int fd)
{
	if (fd < PROGRAM)
		return __real_close(fd);
	closed |= 1u << (fd - PROGRAM);
	return 0;
}

/* --- a case ---------------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
	memset(result_of, 0, sizeof result_of);
	result_of[BPF_PROG_LOAD] = PROGRAM;
	result_of[BPF_MAP_CREATE] = MAP;
	result_of[BPF_LINK_CREATE] = LINK;
	calls = closed = 0;
	release = NULL;
	return bpf_code_begin(&code);
}

UNIT_FIXTURE(tear_down)
{
	bpf_code_end(&code);
}

#define TEST(name) UNIT_TEST_WITH(name, set_up, tear_down)

/* --- bpf(2) ------------------------------------------------------------------------------------------------------ */

/* Members that a command does not use must be 0, or the kernel refuses the call. */
static void assert_asked(const union bpf_attr *expected)
{
	assert_memory_equal(&asked, expected, sizeof asked);
}

TEST(program_is_loaded_for_traffic_control)
{
	union bpf_attr expected;

	bpf_emit(&code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	assert_int_equal(bpf_load_program(BPF_PROG_TYPE_SCHED_CLS, code.insns, code.n), PROGRAM);
	assert_string_equal((const char *)(uintptr_t)asked.license, "Dual BSD/GPL");
	memset(&expected, 0, sizeof expected);
	expected.prog_type = BPF_PROG_TYPE_SCHED_CLS;
	expected.insns = (uintptr_t)code.insns;
	expected.insn_cnt = 1;
	expected.license = asked.license;
	memcpy(expected.prog_name, "dapl_eth", 8);
	assert_asked(&expected);
}

TEST(map_has_two_numbers_an_entry)
{
	union bpf_attr expected;

	assert_int_equal(bpf_create_counters(64), MAP);
	memset(&expected, 0, sizeof expected);
	expected.map_type = BPF_MAP_TYPE_ARRAY;
	expected.key_size = 4;
	expected.value_size = 16;
	expected.max_entries = 64;
	assert_asked(&expected);
}

/* Before the programs of others (BPF_F_BEFORE); with the members of tcx: kernels refuse a length that ends in them. */
TEST(program_is_attached_to_the_ingress)
{
	uint32_t words[8];

	assert_int_equal(bpf_attach_ingress(PROGRAM, 5), LINK);
	assert_int_equal(asked_size, sizeof words);
	memcpy(words, &asked, sizeof words);
	assert_memory_equal(words, ((uint32_t[8]){ PROGRAM, 5, INGRESS, 8 }), sizeof words);
}

/* ETH-40. Where the driver refuses it the kernel runs it; not if another program is there. */
TEST(xdp_program_is_attached_to_the_driver_or_the_kernel)
{
	uint32_t words[8];

	assert_int_equal(bpf_attach_xdp(PROGRAM, 5), LINK);
	assert_int_equal(calls, 1);
	memcpy(words, &asked, sizeof words);
	assert_memory_equal(words, ((uint32_t[8]){ PROGRAM, 5, BPF_XDP }), sizeof words);
	result_of[BPF_LINK_CREATE] = -EOPNOTSUPP;
	assert_int_equal(bpf_attach_xdp(PROGRAM, 5), -EOPNOTSUPP);
	assert_int_equal(calls, 3);
	memcpy(words, &asked, sizeof words);
	assert_memory_equal(words, ((uint32_t[8]){ PROGRAM, 5, BPF_XDP, 2 }), sizeof words);
	result_of[BPF_LINK_CREATE] = -EBUSY;
	assert_int_equal(bpf_attach_xdp(PROGRAM, 5), -EBUSY);
	assert_int_equal(calls, 4);
}

TEST(map_of_sockets_is_made)
{
	union bpf_attr expected;

	assert_int_equal(bpf_create_sockets(3), MAP);
	memset(&expected, 0, sizeof expected);
	expected.map_type = BPF_MAP_TYPE_XSKMAP;
	expected.key_size = expected.value_size = 4;
	expected.max_entries = 3;
	assert_asked(&expected);
}

TEST(link_gets_another_program)
{
	union bpf_attr expected;

	assert_int_equal(bpf_replace(LINK, PROGRAM), 0);
	memset(&expected, 0, sizeof expected);
	expected.link_update.link_fd = LINK;
	expected.link_update.new_prog_fd = PROGRAM;
	assert_asked(&expected);
}

TEST(counters_are_read_and_cleared)
{
	uint64_t counters[2];

	for (unsigned i = 0; i < ENTRIES; i++)
		map[i][0] = map[i][1] = 10 + i;
	map[2][1] = 4400;
	assert_int_equal(bpf_read_counters(MAP, 2, counters), 0);
	assert_int_equal(counters[0], 12);
	assert_int_equal(counters[1], 4400);
	assert_int_equal(bpf_clear_counters(MAP, 2), 0);
	for (unsigned i = 0; i < ENTRIES; i++)
		assert_int_equal(map[i][0], i == 2 ? 0 : 10 + i);
	assert_int_equal(map[2][1], 0);
}

/* Descriptors and errors share a number below 0; calls without a descriptor return a positive errno. */
TEST(error_of_the_kernel_is_returned)
{
	uint64_t counters[2];

	for (int i = 0; i < COMMANDS; i++)
		result_of[i] = -EPERM;
	bpf_emit(&code, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
	assert_int_equal(bpf_load_program(BPF_PROG_TYPE_XDP, code.insns, code.n), -EPERM);
	assert_int_equal(bpf_create_counters(4), -EPERM);
	assert_int_equal(bpf_attach_ingress(PROGRAM, 5), -EPERM);
	assert_int_equal(bpf_replace(LINK, PROGRAM), EPERM);
	assert_int_equal(bpf_read_counters(MAP, 0, counters), EPERM);
	assert_int_equal(bpf_clear_counters(MAP, 0), EPERM);
}

/* --- whether there is tcx --------------------------------------------------------------------------------------- */

enum { HAS_TCX = 1, AGAIN = 2, LEFT_OPEN = 4, ASKED_TWICE = 8, TOUCHED_DEVICE = 16 };

/* The answer is kept, so each is of a process of its own. Nothing of cmocka may fail there. */
static int look(int load, int attach)
{
	int status;
	pid_t child = fork_child();

	if (!child) {
		unsigned open = load < 0 ? 0 : attach < 0 ? 1u : 1u | 1u << (LINK - PROGRAM), before;
		int found;

		result_of[BPF_PROG_LOAD] = load;
		result_of[BPF_LINK_CREATE] = attach;
		found = bpf_has_tcx() ? HAS_TCX : 0;
		before = calls;
		found |= bpf_has_tcx() ? AGAIN : 0;
		found |= load >= 0 && asked.link_create.target_ifindex != INT_MAX ? TOUCHED_DEVICE : 0;
		_exit(found | (closed == open ? 0 : LEFT_OPEN) | (calls == before ? 0 : ASKED_TWICE));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Kernels without tcx do not get so far as to look for the device. */
TEST(tcx_is_there_if_only_the_device_is_missing)
{
	assert_int_equal(look(PROGRAM, -ENODEV), HAS_TCX | AGAIN);
	assert_int_equal(look(PROGRAM, -EINVAL), 0);
	assert_int_equal(look(PROGRAM, LINK), 0);
}

/* A process that may not ask goes by the version, so that the capability it lacks can be named. */
TEST(version_tells_a_process_that_may_load_no_program)
{
	static const struct {
		const char *release;
		bool has;
	} rows[] = { { "6.6.0", true }, { "6.12.9+deb13-amd64", true }, { "7.0-rc1", true }, { "6.5.11", false },
		{ "5.19.0", false }, { "4.6", false }, { "six", false }, { "7", false }, { NULL, false } };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		release = rows[i].release;
		assert_int_equal(look(-EPERM, LINK), rows[i].has ? HAS_TCX | AGAIN : 0);
	}
	release = "6.6.0";
	assert_int_equal(look(-ENOSYS, LINK), 0);	/* a kernel without bpf(2) */
}

UNIT_MAIN(NULL, NULL)
