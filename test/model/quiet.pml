/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* quiet.pml - who is woken for data in a socket whose low-water mark a poller has raised, as
 * doc/design/soft-progress.md has it: a peer that sends, the service thread with its timer, a
 * poller that may stop at any moment, and a thread that arms a CQ, and may sleep and serve. What the
 * kernel does under the socket's lock is one step; that it looks at the sets' members is not.
 *
 * Claim: when nothing can move any more, no message is left (the monitor's assertion).
 *
 *   spin -run quiet.pml                finds no error
 *   spin -run -DMARK_STAYS quiet.pml   leaves the mark where it is when pollers are gone, and must
 *                                      find one; likewise -DNOT_ASKED, which raises it without
 *                                      asking whether pollers still serve, and -DLED_STAYS: who
 *                                      served asleep gives it back to nobody */

#define MESSAGES 3
#define POLLS 3
#define ARMS 2

byte data;		/* messages in the socket */
bool high;		/* the mark */
bool ready;		/* data_epoll's list has the socket */
bool polled;		/* service_epoll does not watch data_epoll, the timer is due */
bool timer;
bool led;		/* a sleeper watches data_epoll, and service_epoll does not */
bool engine, handover;	/* locks */
byte polls, seen;

#define LOCK(l) d_step { !l -> l = true }
#define UNLOCK(l) l = false

/* The kernel: a socket is told of when it gets enough data, or the mark falls to what it has. */
#define TELL if :: data > 0 && !high -> ready = true :: else fi
#define SCAN if :: ready -> ready = false; TELL :: else fi

#ifdef MARK_STAYS
#define LOWER skip
#else
#define LOWER if :: high -> d_step { high = false; TELL } :: else fi
#endif

inline resume()
{
	LOCK(handover);
	if
	:: polled -> polled = false; LOWER
	:: else
	fi;
	UNLOCK(handover)
}

inline quieten()
{
#ifdef NOT_ASKED
	d_step { high = true };
#else
	LOCK(handover);
	if
	:: polled -> high = true
	:: else
	fi;
	UNLOCK(handover)
#endif
}

active proctype peer()
{
	byte i;

	for (i : 1 .. MESSAGES) {
		d_step { data++; TELL }
	}
}

/* data_epoll has something, and woke the service thread or a sleeper. */
inline serve_or_hand_over(over)
{
	LOCK(engine);
	over = polls != seen;
	if
	:: over ->				/* to the pollers */
		seen = polls;
		LOCK(handover);
		polled = true;
		UNLOCK(handover)
	:: !over ->
		SCAN;
		data = 0
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
	:: ready && !polled && !led -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(engine);
		if
		:: polls != seen && polled -> seen = polls; timer = true
		:: else -> resume()
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
			data = 0;
			if
			:: quieten()
			:: skip
			fi;
			if
			:: SCAN
			:: skip
			fi;
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
		:: polled -> resume()
		:: !polled
		fi;
		d_step { mine = !led && !polled; if :: mine -> led = true :: else fi };
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && polled -> d_step { led = false; mine = false }
		:: mine && !polled && ready -> serve_or_hand_over(over)
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
	timeout -> assert(data == 0)
}
