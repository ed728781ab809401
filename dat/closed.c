/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.c - objects whose handles may still be in use after their provider is unloaded. The
 * provider hands over the memory of the objects that it freed last. Their first word then
 * points to a table of calls that return an error, so that a program that frees an object
 * after it closed the IA gets INVALID_HANDLE. The dispatch in api_*.c is the same for all
 * handles. */
#include "dat/error.h"
#include "dat/closed.h"
#include "dat/lock.h"
#include <dat/dat_registry.h>
#include <stddef.h>
#include <stdlib.h>

enum { KEEP = 256 };	/* objects; a new one replaces the oldest */

static DAT_RETURN refuse(void)
{
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
}

/* All calls of the table return the same error: `refuse` looks at no argument. */
union closed_provider {
	DAT_PROVIDER table;
	struct {
		const char *device_name;
		DAT_PVOID extension;
		DAT_RETURN (*call[(sizeof(DAT_PROVIDER) - offsetof(DAT_PROVIDER, ia_open_func)) /
				  sizeof(void *)])(void);
	} words;
};
_Static_assert(offsetof(DAT_PROVIDER, ia_open_func) ==
	       offsetof(union closed_provider, words.call), "the calls begin with ia_open");

static union closed_provider closed;
static void *kept[KEEP];	/* a ring buffer */
static unsigned next;
static struct dat_mutex lock = DAT_MUTEX_INIT(RANK_DAT_CLOSED);

EXPORT void dats_keep_closed(void *object)
{
	dat_mutex_lock(&lock);
	if (!closed.words.device_name) {
		closed.words.device_name = "closed";
		for (size_t i = 0; i < sizeof closed.words.call / sizeof *closed.words.call; i++)
			closed.words.call[i] = refuse;
	}
	*(const DAT_PROVIDER **)object = &closed.table;
	free(kept[next]);
	kept[next] = object;
	next = (next + 1) % KEEP;
	dat_mutex_unlock(&lock);
}

void closed_fini(void)
{
	for (unsigned i = 0; i < KEEP; i++) {
		free(kept[i]);
		kept[i] = NULL;
	}
	next = 0;
}
