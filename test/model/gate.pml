/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gate.pml - how direct access ends, as doc/design/soft-direct.md has it: an initiator who
 * writes and reads, each step of his as late as he likes, and a target who withdraws a region
 * or closes a door, and waits, but not for ever: only what the kernel has begun comes to its
 * end in the time. Memory is sequentially consistent here, which is what the fences are
 * for; the label of each step is that of the document.
 *
 * Claims: once the target has taken back its permission it finds no byte stored (the
 * monitor's assertion), and what was read afterwards is no success.
 *
 *   spin -run gate.pml           finds no error
 *   spin -run -DNO_CUT gate.pml  leaves T4 out, and must find one; likewise -DNO_WAIT (T5),
 *                                -DGATE_LATE and -DWITHIN_LATE, where the initiator looks in
 *                                another order, -DGATE_FIRST, where the target closes the
 *                                window before it withdraws, and -DNO_SECOND_LOOK */

#define WRITES 3
#define WINDOWS 4

bool region = true;	/* on the board */
bool door = true;
bool within;
bool copies;		/* the kernel does, with words that it found */
byte gate = WINDOWS;	/* the window that is open; the file has those from 1 to `size` */
byte size = WINDOWS;
bool gone;		/* the target uses the memory for something else */
bool spoiled;		/* ... and found it changed */
bool fresh;		/* what the memory holds is of after that */
bool leaked;		/* ... and a read of it was a success */

active proctype writer()
{
	byte i, g;
	bool may;

	for (i : 1 .. WRITES) {
#ifndef WITHIN_LATE
		within = true;				/* W1 */
#endif
#ifdef GATE_LATE
		may = door; may = may && region;
		g = gate;
#else
		g = gate;				/* W2 */
		may = door; may = may && region;	/* W3 */
#endif
#ifdef WITHIN_LATE
		within = true;
#endif
		if
		:: may && g > 0 ->
			if				/* W4: the kernel finds the words, or nothing */
			:: d_step { g <= size -> copies = true };
				spoiled = spoiled || gone;	/* W5 */
				copies = false
			:: g > size
			fi
		:: else
		fi;
		within = false				/* W6 */
	}
}

active proctype reader()
{
	bool may, saw;

	may = door; may = may && region;		/* R1 */
	if
	:: may ->
		saw = fresh;				/* R2 */
#ifndef NO_SECOND_LOOK
		may = door; may = may && region;	/* R3 */
#endif
		leaked = leaked || (may && saw)
	:: else
	fi
}

/* T3 and T4, under a lock; the target is one process here. */
inline close_window()
{
	gate = gate - 1;				/* T3 */
#ifndef NO_CUT
	size = gate					/* T4 */
#endif
}

inline settle()
{
	if
	:: within ->					/* T2: waits for a while */
		if
		:: !within
		:: close_window();
#ifndef NO_WAIT
			if				/* T5 */
			:: !within
			:: !copies			/* time has passed */
			fi
#endif
		fi
	:: !within
	fi
}

active proctype target()
{
#ifdef GATE_FIRST
	settle();
#endif
	if						/* T1: either */
	:: region = false
	:: door = false
	fi;
#ifndef GATE_FIRST
	settle();
#endif
	d_step { gone = true; fresh = true }
}

active proctype monitor()
{
	timeout -> assert(!spoiled && !leaked)
}
