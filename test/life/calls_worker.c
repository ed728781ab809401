/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_worker.c - the random choices and the record of a thread of calls.c. */
#include "calls_worker.h"
#include <stdlib.h>
#include <string.h>

_Atomic(uintptr_t) handles[IAS][KINDS][SLOTS];
_Atomic(unsigned) quals[IAS][SLOTS];
_Atomic(DAT_LMR_CONTEXT) local_context[IAS][SLOTS];
_Atomic(DAT_RMR_CONTEXT) remote_context[IAS][SLOTS];
char arena[ARENA] __attribute__((aligned(4096)));

unsigned roll(struct worker *w, unsigned n)
{
	return (unsigned)rand_r(&w->random) / 16 % n;
}

bool one_in(struct worker *w, unsigned n)
{
	return roll(w, n) == 0;
}

unsigned pick_slot(struct worker *w)
{
	return one_in(w, 2) ? 0 : roll(w, SLOTS);
}

DAT_HANDLE pick(struct worker *w, unsigned ia, enum kind kind)
{
	if (one_in(w, 60))
		kind = (enum kind)(1 + roll(w, KINDS - 1));
	if (one_in(w, 200))
		return DAT_HANDLE_NULL;
	if (kind == IA)
		return (DAT_HANDLE)handles[ia][IA][0];
	return (DAT_HANDLE)handles[ia][kind][pick_slot(w)];
}

void keep(struct worker *w, unsigned ia, enum kind kind, const void *handle)
{
	handles[ia][kind][pick_slot(w)] = (uintptr_t)handle;
}

unsigned pick_ia(struct worker *w)
{
	return one_in(w, 8) ? 1 + roll(w, IAS - 1) : 0;
}

bool may_free(struct worker *w)
{
	return one_in(w, 6);
}

bool has_place(struct worker *w, unsigned ia, enum kind kind)
{
	DAT_HANDLE_TYPE type;

	return one_in(w, 8) || dat_get_handle_type((DAT_HANDLE)handles[ia][kind][roll(w, SLOTS)], &type) != DAT_SUCCESS;
}

DAT_TIMEOUT moment(struct worker *w)
{
	return one_in(w, 3) ? 0 : roll(w, 2000);
}

DAT_COMPLETION_FLAGS post_flags(struct worker *w)
{
	static const int flags[] = { 0, 0, 0, 0, DAT_COMPLETION_SUPPRESS_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG };

	return (DAT_COMPLETION_FLAGS)flags[roll(w, 8)];
}

void begin_call(struct worker *w, const char *name, uintptr_t on)
{
	unsigned at = w->made % LAST_CALLS;

	w->name[at] = name;
	w->on[at] = on;
	w->since = life_now();
}

static void count_call(struct worker *w, const char *name, bool succeeded)
{
	unsigned i = 0;

	while (i < NAMES - 1 && w->tally[i].name && strcmp(w->tally[i].name, name))
		i++;
	w->tally[i].name = name;
	w->tally[i].made++;
	w->tally[i].succeeded += succeeded;
}

DAT_RETURN end_call(struct worker *w, DAT_RETURN ret)
{
	w->since = 0;
	count_call(w, w->name[w->made % LAST_CALLS], ret == DAT_SUCCESS);
	w->made++;
	w->succeeded += ret == DAT_SUCCESS;
	return ret;
}
