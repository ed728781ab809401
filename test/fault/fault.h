/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h - lets the n-th call of a kind fail that our libraries make: allocations, system
 * calls that use something up or reach the network, operations of the device. Counts what
 * they allocated and did not give back. Works in libraries that were linked for it
 * (local.mk); what callers make of the failure is faults.c's business. */
#ifndef FAULT_H
#define FAULT_H
#include <stdbool.h>
#include <stddef.h>

enum fault_kind { FAULT_NONE, FAULT_ALLOC, FAULT_SYSTEM, FAULT_DEVICE, FAULT_KINDS };

/* What happened in a process, and in those that it forked: each counts for itself. */
struct fault {
	char what[32];		/* what failed first: "calloc", "create_cq" */
	void *caller;		/* of the first */
	int errors[8];		/* the errnos given, each once; 0 ends them */
};
struct fault_page {
	_Atomic bool happened;
	struct fault fault;
	_Atomic unsigned calls[FAULT_KINDS];	/* of the process that made most of them */
	int process;		/* whose blocks are counted when its libraries are unloaded: */
	_Atomic bool unloaded;
	size_t blocks;		/* as fault_blocks says */
	void *owner;
};
/* From now on it is reported there: memory shared with the process that asks. */
void fault_tell(struct fault_page *page);

/* Counts from 1 again. `lasting`: all later calls fail too. */
void fault_arm(enum fault_kind kind, unsigned n, bool lasting);
void fault_disarm(void);
/* What failed: false if nothing did. */
bool fault_happened(struct fault *fault);

/* For the wrappers: shall this call fail, with that error? */
bool fault_here(enum fault_kind kind, const char *what, int error, void *caller);

/* Blocks that were allocated since fault_arm and not freed; `caller` gets the address that allocated
 * one of them. */
size_t fault_blocks(void **caller);

#endif
