/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_dm.h - operations on device memory for the device of core_device.h: they record their arguments, and
 * fail if the test sets an error (core_dm.c). Programs are linked with --wrap=dapl_device_ops. */
#ifndef TEST_CORE_DM_H
#define TEST_CORE_DM_H
#include "dapl/core/dapl.h"

/* What an operation was asked. */
struct core_dm_call {
	uint64_t length, offset;
	unsigned log_align;
	void *host;
	bool to_device;
	int access;
	struct ibv_pd *pd;
	struct ibv_dm *dm;
};

struct core_dm {
	struct core_dm_call last;
	unsigned calls;			/* but frees */
	unsigned dms;			/* atomic: memories that exist */
	int error;			/* of the next calls but frees; 0: they succeed */
	void (*in_call)(void);		/* called in each call but frees */
	char mapped;			/* map gives its address */
};
extern struct core_dm core_dm;

/* Puts the operations, which succeed, into a table. */
void core_dm_start(struct dapl_device_ops *ops);

#endif
