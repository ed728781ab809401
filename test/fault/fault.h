/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h - makes the n-th call of a kind fail that the libraries under test make: allocations, system calls
 * that use a resource or reach the network, and operations of the device. Counts the memory that the
 * libraries allocated and did not free. Works in libraries that are linked for it (local.mk). */
#ifndef FAULT_H
#define FAULT_H
#include <stdbool.h>
#include <stddef.h>

enum fault_kind { FAULT_NONE, FAULT_ALLOC, FAULT_SYSTEM, FAULT_DEVICE, FAULT_KINDS };

/* The faults of a process. Each process that it forks has its own. */
struct fault {
	char what[32];		/* what failed first: "calloc", "create_cq" */
	void *caller;		/* of the first */
	int errors[8];		/* the errnos given, each once; 0 ends them */
};
struct fault_page {
	_Atomic bool happened;
	struct fault fault;
	_Atomic unsigned calls[FAULT_KINDS];	/* of the process that made most of them */
	int process;		/* its blocks are counted when its libraries are unloaded */
	_Atomic bool unloaded;	/* they are: the next two fields are set */
	size_t blocks;		/* the result of fault_blocks() */
	void *owner;		/* the address that allocated one of them */
};
/* Reports faults in this page from now on. It is memory that the caller shares with the process that reads
 * it. */
void fault_tell(struct fault_page *page);

/* Starts to count calls of this kind from 1: call n fails. With `lasting` all later calls fail, too. */
void fault_arm(enum fault_kind kind, unsigned n, bool lasting);
void fault_disarm(void);
/* Copies what failed. Returns false if nothing did. */
bool fault_happened(struct fault *fault);

/* Called by the wrappers of calls. Returns whether this call fails; then it has set errno to `error`. */
bool fault_here(enum fault_kind kind, const char *what, int error, void *caller);

/* Blocks that were allocated since fault_arm and not freed; `caller` gets the address that allocated
 * one of them. */
size_t fault_blocks(void **caller);

#endif
