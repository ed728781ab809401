/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock_check.c - the list of a thread's locks, and the checks of their order (lock_check.h). */
#include "common/lock_check.h"

#ifdef DAPL_LOCK_CHECK
#include <stdio.h>
#include <stdlib.h>

struct held_lock {
	const void *lock;
	const char *name, *where;
	unsigned rank;
	unsigned others;	/* more locks of that rank, taken after this one */
};

/* Locks of a thread at one time. The most are held over a fork: 17. The list is small because static TLS is
 * scarce. */
enum { HELD_MAX = 20 };

static _Thread_local struct held_lock held[HELD_MAX];
static _Thread_local unsigned held_count;

static struct held_lock *find(const void *lock)
{
	for (unsigned i = held_count; i-- > 0;)
		if (held[i].lock == lock)
			return &held[i];
	return NULL;
}

/* Locks of rank `limit` and above must not be held. */
static void check(const void *lock, unsigned rank, unsigned limit, const char *name, const char *where)
{
	if (rank == RANK_NONE) {
		fprintf(stderr, "lock check: %s takes %s, which was not initialized\n", where, name);
		abort();
	}
	for (unsigned i = 0; i < held_count; i++) {
		if (held[i].rank < limit && held[i].lock != lock)
			continue;
		fprintf(stderr, "lock check: %s takes %s (rank %u) while the thread holds %s "
			"(rank %u)%s, taken in %s\n", where, name, rank, held[i].name, held[i].rank,
			held[i].lock == lock ? ", the same lock" : "", held[i].where);
		abort();
	}
}

void lock_check_order(const void *lock, unsigned rank, const char *name, const char *where)
{
	check(lock, rank, rank, name, where);
}

void lock_check_another(const void *lock, unsigned rank, const char *name, const char *where)
{
	check(lock, rank, rank + 1, name, where);
}

void lock_check_taken(const void *lock, unsigned rank, const char *name, const char *where)
{
	if (held_count == HELD_MAX) {
		fprintf(stderr, "lock check: %s takes %s while the thread holds %u locks\n", where,
			name, held_count);
		abort();
	}
	held[held_count++] = (struct held_lock){ lock, name, where, rank, 0 };
}

static struct held_lock *find_rank(unsigned rank)
{
	for (unsigned i = held_count; i-- > 0;)
		if (held[i].rank == rank)
			return &held[i];
	return NULL;
}

void lock_check_another_taken(const void *lock, unsigned rank, const char *name, const char *where)
{
	struct held_lock *first = find_rank(rank);

	if (first)
		first->others++;
	else
		lock_check_taken(lock, rank, name, where);
}

void lock_check_release(const void *lock, unsigned rank, const char *name, const char *where)
{
	struct held_lock *found = find(lock);

	if (!found && (found = find_rank(rank)) && found->lock && !found->others)
		found = NULL;
	if (found && found->others) {
		found->others--;
		found->lock = NULL;	/* any of them is the last */
		return;
	}
	if (!found) {
		fprintf(stderr, "lock check: %s releases %s, which the thread does not hold\n", where,
			name);
		abort();
	}
	held_count--;
	for (unsigned i = found - held; i < held_count; i++)
		held[i] = held[i + 1];
}

void lock_check_held(const void *lock, const char *name, const char *where)
{
	if (find(lock))
		return;
	fprintf(stderr, "lock check: %s needs %s, which the thread does not hold\n", where, name);
	abort();
}

void lock_check_none_held(const char *where)
{
	if (!held_count)
		return;
	fprintf(stderr, "lock check: %s runs while the thread holds %s, taken in %s\n", where,
		held[0].name, held[0].where);
	abort();
}

#endif
