/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bpf.c - loads eBPF programs, makes their maps, and attaches them. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include "dapl/softeth/bpf.h"

enum {
	TCX_INGRESS = 46,		/* enum bpf_attach_type; older headers lack it */
	BEFORE_OTHERS = 1 << 3,		/* BPF_F_BEFORE, with no program named: the first */
	SKB_MODE = 2,			/* XDP_FLAGS_SKB_MODE of linux/if_link.h */
};

/* --- bpf(2) --------------------------------------------------------------------------------- */

static int call(int command, void *attr, unsigned size)
{
	int ret = (int)syscall(SYS_bpf, command, attr, size);

	return ret < 0 ? -errno : ret;
}

int bpf_load_program(enum bpf_prog_type type, const struct bpf_insn *insns, int n)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.prog_type = type;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = (uint32_t)n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	memcpy(attr.prog_name, "dapl_eth", sizeof "dapl_eth");
	return call(BPF_PROG_LOAD, &attr, sizeof attr);
}

static int create_map(uint32_t type, uint32_t value_size, uint32_t entries)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.map_type = type;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = value_size;
	attr.max_entries = entries;
	return call(BPF_MAP_CREATE, &attr, sizeof attr);
}

int bpf_create_counters(uint32_t entries)
{
	return create_map(BPF_MAP_TYPE_ARRAY, 2 * sizeof(uint64_t), entries);
}

int bpf_create_sockets(uint32_t entries)
{
	return create_map(BPF_MAP_TYPE_XSKMAP, sizeof(int), entries);
}

/* BPF_LINK_CREATE, with the members of tcx. */
static int attach(int program, int interface, uint32_t type, uint32_t flags)
{
	struct {
		uint32_t program, interface, type, flags;
		uint32_t relative, padding;
		uint64_t revision;
	} attr = { .program = (uint32_t)program, .interface = (uint32_t)interface, .type = type, .flags = flags };

	return call(BPF_LINK_CREATE, &attr, sizeof attr);
}

/* Before the programs of others: one that passes a frame to the stack (TCX_PASS) ends the row, so that a program behind
 * it could not drop the frame. */
int bpf_attach_ingress(int program, int interface)
{
	return attach(program, interface, TCX_INGRESS, BEFORE_OTHERS);
}

/* A driver refuses a program when it has too few queues for it, or joins segments. The kernel then runs it itself. */
int bpf_attach_xdp(int program, int interface)
{
	int link = attach(program, interface, BPF_XDP, 0);

	return link >= 0 || link == -EBUSY || link == -EEXIST || link == -EPERM ? link :
		attach(program, interface, BPF_XDP, SKB_MODE);
}

int bpf_replace(int link, int program)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.link_update.link_fd = (uint32_t)link;
	attr.link_update.new_prog_fd = (uint32_t)program;
	return -call(BPF_LINK_UPDATE, &attr, sizeof attr);
}

static int element(int command, int map, uint32_t entry, void *value)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&entry;
	attr.value = (uintptr_t)value;
	return -call(command, &attr, sizeof attr);
}

int bpf_read_counters(int map, uint32_t entry, uint64_t counters[2])
{
	return element(BPF_MAP_LOOKUP_ELEM, map, entry, counters);
}

int bpf_clear_counters(int map, uint32_t entry)
{
	uint64_t none[2] = { 0, 0 };

	return element(BPF_MAP_UPDATE_ELEM, map, entry, none);
}

int bpf_set_socket(int map, uint32_t entry, int socket)
{
	return element(BPF_MAP_UPDATE_ELEM, map, entry, &socket);
}

/* --- whether there is tcx --------------------------------------------------------------------- */

static bool tcx;

/* The kernel looks for the interface, which does not exist, only if it knows this kind of attachment. A
 * process that may not load programs goes by the version of the kernel. */
static void look_for_tcx(void)
{
	const struct bpf_insn nothing[2] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = TCX_NEXT_PROGRAM },
		{ .code = BPF_JMP | BPF_EXIT } };
	int program = bpf_load_program(BPF_PROG_TYPE_SCHED_CLS, nothing, 2), major = 0, minor = 0, link;
	struct utsname system;

	if (program >= 0) {
		link = bpf_attach_ingress(program, INT_MAX);
		tcx = link == -ENODEV;
		if (link >= 0)
			close(link);
		close(program);
	} else if (program == -EPERM && !uname(&system) && sscanf(system.release, "%d.%d", &major, &minor) == 2) {
		tcx = major > 6 || (major == 6 && minor >= 6);
	}
}

bool bpf_has_tcx(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_for_tcx);
	return tcx;
}
