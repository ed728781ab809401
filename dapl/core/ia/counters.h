/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.h - reading, printing, starting and stopping counters (doc/spec/extensions.md 4). Other files
 * raise the counters. */
#ifndef DAPL_COUNTERS_H
#define DAPL_COUNTERS_H
#include "dapl/core/dapl.h"

/* dat_ib_query_counters and dat_ib_print_counters. obj is an IA, EP or EVD. If `which` is the number of
 * counters (DCNT_..._ALL_COUNTERS), `out` is an array for all. */
DAT_RETURN dapl_counters_query(struct dapl_object *obj, int which, DAT_UINT64 *out, int reset);
DAT_RETURN dapl_counters_print(struct dapl_object *obj, int which, int reset);
/* Calls `each` for each counter. Does not read the device's own counters from sysfs. */
void dapl_counters_each(struct dapl_object *obj,
			void (*each)(void *arg, const char *name, uint64_t value), void *arg);
void dapl_counters_of_ep(struct dapl_ep *ep, uint64_t value[DCNT_EP_ALL_COUNTERS]);

/* Calls `each` for each counter of endpoints, with the sum over all endpoints that the IA has or had. Without a reset
 * no sum gets smaller. Returns false if memory lacks. */
bool dapl_counters_each_total(struct dapl_ia *ia,
			      void (*each)(void *arg, const char *name, uint64_t value), void *arg);

/* Groups DCNT_IA_LNK and DCNT_IA_DIAG are the device's own; they count from start to stop.
 * DCNT_IA_CM always counts. */
DAT_RETURN dapl_counters_start(struct dapl_object *obj, int group);
DAT_RETURN dapl_counters_stop(struct dapl_object *obj, int group);

#endif
