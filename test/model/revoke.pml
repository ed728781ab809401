/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.pml - how direct access ends (doc/design/soft-shared-memory.md): an initiator that writes
 * and reads, with any delay between its steps, and a target that withdraws a region or revokes a
 * grant, and waits for a limited time. In that time, only a copy that the kernel has begun comes to
 * its end. Memory is sequentially consistent here, which the fences achieve. The label of each step
 * is that of the document.
 *
 * Claims: once the target has revoked its permission, no byte is stored in its memory (the
 * monitor's assertion), and no read that ends afterwards succeeds.
 *
 *   spin -run revoke.pml                   finds no error
 * Each of these must find one:
 *   spin -run -DNO_CUT revoke.pml          leaves T4 out
 *   spin -run -DNO_WAIT revoke.pml         leaves T5 out
 *   spin -run -DWINDOW_LATE revoke.pml     the initiator looks for the window after the permission
 *   spin -run -DWITHIN_LATE revoke.pml     the initiator says that it is within a write too late
 *   spin -run -DWINDOW_FIRST revoke.pml    the target closes the window before it withdraws
 *   spin -run -DNO_SECOND_LOOK revoke.pml  a read does not check the permission again */

#define WRITES 3
#define WINDOWS 4

bool region = true;	/* in the MR directory */
bool granted = true;
bool within;
bool copies;		/* the kernel copies, with an iovec that it found */
byte window = WINDOWS;	/* the window that is open; the file has those from 1 to `size` */
byte size = WINDOWS;
bool gone;		/* the target uses the memory for something else */
bool corrupted;		/* a byte was stored after that */
bool fresh;		/* the memory holds what was stored after that */
bool leaked;		/* a read of that succeeded */

active proctype writer()
{
	byte i, g;
	bool may;

	for (i : 1 .. WRITES) {
#ifndef WITHIN_LATE
		within = true;				/* W1 */
#endif
#ifdef WINDOW_LATE
		may = granted; may = may && region;
		g = window;
#else
		g = window;				/* W2 */
		may = granted; may = may && region;	/* W3 */
#endif
#ifdef WITHIN_LATE
		within = true;
#endif
		if
		:: may && g > 0 ->
			if				/* W4: the kernel finds the iovec, or
							 * nothing */
			:: d_step { g <= size -> copies = true };
				corrupted = corrupted || gone;	/* W5 */
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

	may = granted; may = may && region;		/* R1 */
	if
	:: may ->
		saw = fresh;				/* R2 */
#ifndef NO_SECOND_LOOK
		may = granted; may = may && region;	/* R3 */
#endif
		leaked = leaked || (may && saw)
	:: else
	fi
}

/* T3 and T4, under a lock; the target is one process here. */
inline close_window()
{
	window = window - 1;				/* T3 */
#ifndef NO_CUT
	size = window					/* T4 */
#endif
}

inline wait_for_writer()
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
#ifdef WINDOW_FIRST
	wait_for_writer();
#endif
	if						/* T1: either */
	:: region = false
	:: granted = false
	fi;
#ifndef WINDOW_FIRST
	wait_for_writer();
#endif
	d_step { gone = true; fresh = true }
}

active proctype monitor()
{
	timeout -> assert(!corrupted && !leaked)
}
