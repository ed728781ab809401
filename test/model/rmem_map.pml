/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmem_map.pml - how writes to a mapped region end (doc/design/soft-shared-memory.md): an initiator
 * that stores with any delay after it found the permission, and a target that revokes the
 * permission and waits. The initiator's store of `within` may stay in its store buffer, as on x86,
 * until the initiator makes a fence, or the target has the kernel make it (membarrier).
 *
 * Claim: once the target has waited, nothing is stored.
 *
 *   spin -run rmem_map.pml                finds no error
 *   spin -run -DFENCES rmem_map.pml       the initiator makes the fence: finds no error
 * Each of these must find one:
 *   spin -run -DNO_FENCE rmem_map.pml     neither side makes the fence
 *   spin -run -DLOOK_FIRST rmem_map.pml   M3 before M2
 *   spin -run -DWAIT_FIRST rmem_map.pml   B3 before B1
 *   spin -run -DMAPS_LATE rmem_map.pml    M1 after M3 */

#define WRITES 2

bool permitted = true;
bool maps;
byte within;		/* the value that other processors see */
byte pending = 2;	/* the value in the store buffer; 2: the buffer is empty */
bool gone;		/* the target uses the memory for something else */
bool corrupted;

inline drain()
{
	d_step {
		if
		:: pending < 2 -> within = pending; pending = 2
		:: else
		fi
	}
}

/* Stores become visible in their order: the one before does when the next one enters the buffer. */
inline say_within(value)
{
	drain();
	pending = value
}

active proctype buffer()
{
end:	do
	:: pending < 2 -> drain()
	od
}

active proctype initiator()
{
	byte i;
	bool may;

#ifndef MAPS_LATE
	maps = true;				/* M1, with a fence */
#endif
	for (i : 1 .. WRITES) {
#ifdef LOOK_FIRST
		may = permitted;
#endif
		say_within(1);			/* M2 */
#ifdef FENCES
		drain();
#endif
#ifndef LOOK_FIRST
		may = permitted;		/* M3 */
#endif
#ifdef MAPS_LATE
		maps = true;
#endif
		if
		:: may -> corrupted = corrupted || gone	/* M4 */
		:: else
		fi;
		say_within(0)			/* M5 */
	}
}

inline wait()
{
	if
	:: maps ->				/* B2 */
#ifndef FENCES
#ifndef NO_FENCE
		drain();			/* membarrier */
#endif
#endif
		within == 0			/* B3 */
	:: !maps
	fi
}

active proctype target()
{
#ifdef WAIT_FIRST
	wait();
	permitted = false;
#else
	permitted = false;			/* B1 */
	wait();
#endif
	gone = true
}

active proctype monitor()
{
	timeout -> assert(!corrupted)
}
