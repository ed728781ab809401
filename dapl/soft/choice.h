/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* choice.h - which way a large read takes that can take two: through the ring, where the target
 * copies in and the initiator out, or copied by the kernel at once. What is faster depends on the
 * processor and on the length, by a factor of three either way (doc/performance.md), so a device
 * measures both. Knows nothing of how either is done (pair.c, direct.c). */
#ifndef SOFT_CHOICE_H
#define SOFT_CHOICE_H
#include <stdbool.h>
#include <stdint.h>

enum {
	CHOICE_MIN = 8 << 10,		/* shorter ones take the ring: they cost no system call */
	CHOICE_MAX = 4 << 20,		/* longer ones too: the kernel's copy is made under locks */
	CHOICE_SIZES = 10,		/* by powers of two */
};

enum soft_way { SOFT_WAY_OPEN, SOFT_WAY_RING, SOFT_WAY_KERNEL };

/* Of a device. All atomic, and no harm done when two threads count as one. */
struct soft_choice {
	struct {
		uint32_t turn;
		uint32_t ns[2];		/* for 64 KiB, by the ring and by the kernel; 0: unknown */
	} size[CHOICE_SIZES];
};

/* The way of a read of CHOICE_MIN to CHOICE_MAX bytes. *probe: it's taken to see how long it takes. */
enum soft_way soft_choice_make(struct soft_choice *choice, uint64_t length, bool *probe);
/* Nobody has to measure each of them. True: this read goes by the kernel, which is faster, and nothing
 * is to be learned. False: soft_choice_make knows. */
bool soft_choice_is_kernel(struct soft_choice *choice, uint64_t length);
/* It took so long, from when it was posted, or the one before it was done, until the data was there. */
void soft_choice_learn(struct soft_choice *choice, enum soft_way way, uint64_t length, uint64_t ns);

#endif
