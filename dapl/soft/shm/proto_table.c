/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto_table.c - which of two protocols is faster, by measurement (proto_table.h). The ring is tried several
 * times in succession, as it carries several requests at once, which CMA does not. The shortest time of
 * a measurement counts: a thread that was preempted meanwhile, or polled late, says nothing about the
 * protocol. A measurement ends early if one protocol is much faster, since half of its requests use the
 * slower one. */
#include "dapl/soft/shm/proto_table.h"

static void select_until_due(struct proto_class *class, enum shm_proto proto, uint64_t now_ns)
{
	WRITE_ONCE(class->ns[0], 0);
	WRITE_ONCE(class->ns[1], 0);
	WRITE_ONCE(class->turn, 0);
	WRITE_ONCE(class->selected, proto);
	WRITE_ONCE(class->due, proto_ticks(now_ns) + PROTO_VALID_TICKS);
}

/* Ends a measurement. Returns false if one of the protocols could not be measured, and nothing is known from before. */
static bool decide(struct proto_class *class, uint64_t now_ns)
{
	uint32_t ring = READ_ONCE(class->ns[0]), kernel = READ_ONCE(class->ns[1]);
	enum shm_proto before = READ_ONCE(class->selected);

	if (ring && kernel)
		select_until_due(class, kernel < ring ? PROTO_CMA : PROTO_COPY, now_ns);
	else if (before != PROTO_UNDECIDED)
		select_until_due(class, before, now_ns);
	else
		return false;
	return true;
}

static bool is_clear(const struct proto_class *class)
{
	uint64_t ring = READ_ONCE(class->ns[0]), kernel = READ_ONCE(class->ns[1]);

	return ring && kernel &&
	       (100 * ring > PROTO_CLEAR_PERCENT * kernel || 100 * kernel > PROTO_CLEAR_PERCENT * ring);
}

enum shm_proto proto_choose(struct shm_proto_table *table, uint64_t length, uint64_t now_ns, bool *trying)
{
	struct proto_class *class = &table->class[proto_size_class(length)];
	enum shm_proto known = proto_known(table, length, now_ns);
	uint32_t turn = READ_ONCE(class->turn);

	*trying = false;
	if (known != PROTO_UNDECIDED)
		return known;
	if ((turn >= PROTO_TRIES || (turn >= PROTO_CLEAR_TRIES && is_clear(class))) && decide(class, now_ns))
		return READ_ONCE(class->selected);
	*trying = true;
	WRITE_ONCE(class->turn, turn + 1);
	return turn & PROTO_SERIES ? PROTO_COPY : PROTO_CMA;
}

/* What ends after the measurement is not counted for the next one. */
void proto_learn(struct shm_proto_table *table, enum shm_proto proto, uint64_t length, uint64_t ns)
{
	struct proto_class *class = &table->class[proto_size_class(length)];
	uint32_t *shortest = &class->ns[proto != PROTO_COPY], known = READ_ONCE(*shortest);
	uint64_t seen = (ns * 65536 + length - 1) / length | 1;	/* ns for 64 KiB; never 0 */

	if (seen > UINT32_MAX)
		seen = UINT32_MAX;
	if (READ_ONCE(class->turn) && (!known || seen < known))
		WRITE_ONCE(*shortest, seen);
}

void proto_avoid_cma(struct shm_proto_table *table, uint64_t length, uint64_t now_ns)
{
	select_until_due(&table->class[proto_size_class(length)], PROTO_COPY, now_ns);
}
