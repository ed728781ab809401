/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mapped.pml - how writes to a mapped region end, as doc/design/soft-direct.md has it: an initiator
 * who stores as late as he likes after he found the permission, and a target who takes it back
 * and waits. The initiator's store of `within` may stay in his store buffer, as on x86: until he
 * fences, or the target has it done (membarrier).
 *
 * Claim: once the target has come back from waiting, nothing is stored.
 *
 *   spin -run mapped.pml             finds no error; likewise -DFENCES, where the initiator does it
 *   spin -run -DNO_FENCE mapped.pml  must find one; likewise -DLOOK_FIRST (M3 before M2),
 *                                    -DWAIT_FIRST (B3 before B1), -DMAPS_LATE (M1 after M3) */

#define WRITES 2

bool permitted = true;
bool maps;
byte within;		/* what others see */
byte pending = 2;	/* what the initiator stored and others don't see; 2: nothing */
bool gone;		/* the target uses the memory for something else */
bool spoiled;

inline drain()
{
	d_step {
		if
		:: pending < 2 -> within = pending; pending = 2
		:: else
		fi
	}
}

/* Stores are seen in their order: the one before is, when the next one waits. */
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
		:: may -> spoiled = spoiled || gone	/* M4 */
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
	timeout -> assert(!spoiled)
}
