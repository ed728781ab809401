/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gate.pml - how direct access ends, as doc/design/soft-direct.md has it: an initiator who
 * writes and reads, each step of his as late as he likes, and a target who withdraws a
 * region and closes a door, and does not wait. Memory is sequentially consistent here,
 * which is what the fences are for; the label of each step is that of the document.
 *
 * Claims: once the target has taken back its permission it finds no byte stored (the
 * monitor's assertion), and what was read afterwards is no success.
 *
 *   spin -run gate.pml           finds no error
 *   spin -run -DNO_CUT gate.pml  leaves T4 out, and must find one; likewise -DGATE_LATE and
 *                                -DKNOCK_LATE, where the initiator looks in another order,
 *                                -DGATE_FIRST, where the target opens the next window
 *                                before it withdraws, and -DNO_SECOND_LOOK */

#define WRITES 3
#define WINDOWS 4

bool region = true;	/* on the board */
bool door = true;
bool knocked;
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
#ifndef KNOCK_LATE
		knocked = true;				/* W1 */
#endif
#ifdef GATE_LATE
		may = door; may = may && region;
		g = gate;
#else
		g = gate;				/* W2 */
		may = door; may = may && region;	/* W3 */
#endif
#ifdef KNOCK_LATE
		knocked = true;
#endif
		if
		:: may && g > 0 ->
			if				/* W4: the file can't grow */
			:: g <= size ->
				if			/* W5: the kernel copies, or finds nothing */
				:: d_step { g <= size -> spoiled = spoiled || gone }
				:: g > size
				fi
			:: g > size
			fi
		:: else
		fi
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

active proctype target()
{
	if						/* T1: either */
	:: 
#ifdef GATE_FIRST
		close_window();
		region = false
#else
		region = false;
		close_window()
#endif
	:: door = false;
		if					/* T2 */
		:: knocked -> close_window()
		:: !knocked
		fi
	fi;
	d_step { gone = true; fresh = true }
}

active proctype monitor()
{
	timeout -> assert(!spoiled && !leaked)
}
