/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bell.pml - who is woken for a message in a ring, as doc/design/soft-progress.md has it: a
 * producer, the consumer's service thread with its timer, a poller that may stop at any
 * moment, and a thread that arms a CQ, and may sleep and serve. Memory is sequentially consistent here, which is
 * what the two full fences are for; the label of each step is that of the document.
 *
 * Claim: when nothing can move any more, no message is left (the monitor's assertion).
 *
 *   spin -run bell.pml           finds no error
 *   spin -run -DNO_LOOK bell.pml leaves S4 out, and must find one; likewise -DLATE_CLEAR
 *                                and -DLATE_HANDOVER, which clear the bell too late, and
 *                                -DLED_STAYS: who served asleep gives it back to nobody */

#define MESSAGES 3
#define POLLS 2
#define ARMS 2

byte ring;		/* messages stored and not taken */
byte sleeps = 1;	/* odd: ring the bell */
byte rung;		/* the value the producer rang for */
bool bell;		/* the eventfd */
bool polled;		/* the service thread has stepped aside, the timer is due */
bool timer;
bool led;		/* a sleeper watches the bell, and the service thread does not */
bool engine;		/* the lock */
byte polls, seen;

#define LOCK(l) d_step { !l -> l = true }
#define UNLOCK(l) l = false

#ifdef NO_LOOK
#define LOOK skip
#else
#define LOOK if :: ring > 0 -> bell = true :: else fi
#endif

active proctype producer()
{
	byte i, s;

	for (i : 1 .. MESSAGES) {
		ring++;					/* P1, P2 */
		s = sleeps;				/* P3 */
		if					/* P4 */
		:: s % 2 == 1 && rung != s -> rung = s; bell = true
		:: else
		fi
	}
}

/* The bell is rung, and woke the service thread or a sleeper. */
inline serve_or_hand_over(over)
{
	LOCK(engine);
	over = polls != seen;
	if
	:: over ->				/* to the pollers */
		seen = polls;
#ifdef LATE_HANDOVER
		d_step { if :: !polled -> polled = true; sleeps++ :: else fi };
		bell = false;
#else
		bell = false;
		d_step { if :: !polled -> polled = true; sleeps++ :: else fi };
#endif
	:: !over ->
#ifdef LATE_CLEAR
		sleeps = sleeps + 2; ring = 0; bell = false;
#else
		bell = false;				/* S1 */
		sleeps = sleeps + 2;			/* S2, S3 */
		ring = 0;				/* S4 */
#endif
	fi;
	UNLOCK(engine);
	if
	:: over -> timer = true
	:: else
	fi
}

active proctype service()
{
	bool over;

end:	do
	:: bell && !polled && !led -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(engine);
		if
		:: polls != seen && polled -> seen = polls; timer = true
		:: else ->
			d_step { if :: polled -> polled = false; sleeps++ :: else fi };
			LOOK
		fi;
		UNLOCK(engine)
	od
}

/* Polls a few times, whenever it likes, then never again. */
active proctype poller()
{
	byte i;

	for (i : 1 .. POLLS) {
		if
		:: d_step { !engine -> engine = true };
			if
			:: polls++
			:: skip			/* of an armed CQ: not counted */
			fi;
			ring = 0;
			UNLOCK(engine)
		:: engine			/* somebody else does the work */
		fi
	}
}

/* Arms a CQ, and would sleep then; or does sleep, and serves until something wakes it. */
active proctype waiter()
{
	bool over, mine, woken;
	byte i;

	for (i : 1 .. ARMS) {
		seen = polls;
		if
		:: polled ->
			d_step { if :: polled -> polled = false; sleeps++ :: else fi };
			if
			:: d_step { !engine -> engine = true };
				LOOK;
				UNLOCK(engine)
			:: engine -> bell = true
			fi
		:: !polled
		fi;
		d_step { mine = !led && !polled; if :: mine -> led = true :: else fi };
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && polled -> d_step { led = false; mine = false }
		:: mine && !polled && bell -> serve_or_hand_over(over)
#ifdef LED_STAYS
		:: mine && woken -> mine = false
#else
		:: mine && woken -> d_step { led = false; mine = false }
#endif
		od
	}
}

active proctype monitor()
{
	timeout -> assert(ring == 0)
}
