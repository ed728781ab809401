/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* proto_table.c - which of two protocols is faster, by measurement (proto_table.h). At first both protocols are tried in turn,
 * and later the slower one now and then. The ring is tried several times in succession, as it
 * carries several requests at once, which CMA does not. The value kept is near the shortest times
 * of late: a thread that was preempted meanwhile, or polled late, says nothing about the protocol. */
#include "dapl/soft/shm/proto_table.h"
#include "common/once.h"
#include "dapl/soft/tunables.h"

static unsigned size_of(uint64_t length)
{
	unsigned size = 63 - __builtin_clzll(length / PROTO_MIN | 1);

	return size < PROTO_SIZES ? size : PROTO_SIZES - 1;
}

/* True: this turn is for the slower protocol. */
static bool is_try(uint32_t turn, uint32_t ring, uint32_t kernel)
{
	uint32_t best = ring < kernel ? ring : kernel, worst = ring < kernel ? kernel : ring;
	uint32_t interval = worst / PROTO_SLOW > best ? PROTO_RETRY_SLOW : PROTO_RETRY;

	return turn % interval < (kernel < ring ? PROTO_SERIES : 1);
}

enum shm_proto proto_choose(struct shm_proto_table *table, uint64_t length, bool *try)
{
	unsigned size = size_of(length);
	uint32_t turn = READ_ONCE(table->size[size].turn);
	uint32_t ring = READ_ONCE(table->size[size].ns[0]), kernel = READ_ONCE(table->size[size].ns[1]);

	WRITE_ONCE(table->size[size].turn, turn + 1);
	*try = true;
	if (turn < PROTO_FIRST || !ring || !kernel)
		return turn & PROTO_SERIES ? PROTO_COPY : PROTO_CMA;
	*try = is_try(turn, ring, kernel);
	return (kernel < ring) ^ *try ? PROTO_CMA : PROTO_COPY;
}

bool proto_is_cma(struct shm_proto_table *table, uint64_t length)
{
	unsigned size = size_of(length);
	uint32_t turn = READ_ONCE(table->size[size].turn);
	uint32_t ring = READ_ONCE(table->size[size].ns[0]), kernel = READ_ONCE(table->size[size].ns[1]);

	if (turn < PROTO_FIRST || !kernel || kernel >= ring || turn % PROTO_SAMPLE == 0 ||
	    is_try(turn, ring, kernel))
		return false;
	WRITE_ONCE(table->size[size].turn, turn + 1);
	return true;
}

void proto_learn(struct shm_proto_table *table, enum shm_proto proto, uint64_t length, uint64_t ns)
{
	uint32_t *kept = &table->size[size_of(length)].ns[proto != PROTO_COPY];
	uint64_t known = READ_ONCE(*kept), seen = (ns * 65536 + length - 1) / length | 1;	/* ns for 64 KiB */

	if (seen > UINT32_MAX / 2)
		seen = UINT32_MAX / 2;
	if (known && seen > known)
		seen = known + ((seen - known < known ? seen - known : known) + 7) / 8;
	WRITE_ONCE(*kept, seen);
}
