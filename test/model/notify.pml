/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.pml - which thread is woken for a message in a ring (doc/design/soft-progress.md): a
 * producer, the consumer's service thread with its timer, a polling thread that may stop at any
 * moment, and a thread that arms a CQ, and may then block and drive progress. Memory is
 * sequentially consistent here, which the two full fences achieve. The label of each step is that
 * of the document.
 *
 * Claim: when no process can move any more, no message is left (the monitor's assertion).
 *
 *   spin -run notify.pml                 finds no error
 *   spin -run -DNO_LOOK notify.pml       leaves S4 out, and must find one
 *   spin -run -DLATE_CLEAR notify.pml    clears the eventfd after S4, and must find one
 *   spin -run -DLATE_HANDOVER notify.pml clears the eventfd after the handover, and must find one
 *   spin -run -DWAITER_STAYS notify.pml  the blocked thread does not give progress back when it
 *                                        wakes, and must find one */

#define MESSAGES 3
#define POLLS 2
#define ARMS 2

byte ring;		/* messages stored and not consumed */
byte sleep_count = 1;	/* the sleep count; odd: signal the eventfd */
byte notified;		/* the sleep count for which the producer signalled */
bool wake_fd;		/* the eventfd is readable */
bool polled;		/* polling threads drive progress, the timer is due */
bool timer;
bool led_by_waiter;		/* a blocked thread watches the eventfd, and the service thread does not */
bool progress_lock;		/* the progress lock */
byte polls, seen;

#define LOCK(l) d_step { !l -> l = true }
#define UNLOCK(l) l = false

#ifdef NO_LOOK
#define LOOK skip
#else
#define LOOK if :: ring > 0 -> wake_fd = true :: else fi
#endif

active proctype producer()
{
	byte i, s;

	for (i : 1 .. MESSAGES) {
		ring++;					/* P1, P2 */
		s = sleep_count;				/* P3 */
		if					/* P4 */
		:: s % 2 == 1 && notified != s -> notified = s; wake_fd = true
		:: else
		fi
	}
}

/* The eventfd was readable, and woke the service thread or a blocked thread. */
inline serve_or_hand_over(over)
{
	LOCK(progress_lock);
	over = polls != seen;
	if
	:: over ->				/* to the polling threads */
		seen = polls;
#ifdef LATE_HANDOVER
		d_step { if :: !polled -> polled = true; sleep_count++ :: else fi };
		wake_fd = false;
#else
		wake_fd = false;
		d_step { if :: !polled -> polled = true; sleep_count++ :: else fi };
#endif
	:: !over ->
#ifdef LATE_CLEAR
		sleep_count = sleep_count + 2; ring = 0; wake_fd = false;
#else
		wake_fd = false;				/* S1 */
		sleep_count = sleep_count + 2;			/* S2, S3 */
		ring = 0;				/* S4 */
#endif
	fi;
	UNLOCK(progress_lock);
	if
	:: over -> timer = true
	:: else
	fi
}

active proctype service()
{
	bool over;

end:	do
	:: wake_fd && !polled && !led_by_waiter -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(progress_lock);
		if
		:: polls != seen && polled -> seen = polls; timer = true
		:: else ->
			d_step { if :: polled -> polled = false; sleep_count++ :: else fi };
			LOOK
		fi;
		UNLOCK(progress_lock)
	od
}

/* Polls a few times, whenever it likes, then never again. */
active proctype poller()
{
	byte i;

	for (i : 1 .. POLLS) {
		if
		:: d_step { !progress_lock -> progress_lock = true };
			if
			:: polls++
			:: skip			/* a poll of an armed CQ is not counted */
			fi;
			ring = 0;
			UNLOCK(progress_lock)
		:: progress_lock			/* another thread holds the lock and does the work */
		fi
	}
}

/* Arms a CQ, and would then block; or does block, and drives progress until something wakes it. */
active proctype waiter()
{
	bool over, mine, woken;
	byte i;

	for (i : 1 .. ARMS) {
		seen = polls;
		if
		:: polled ->
			d_step { if :: polled -> polled = false; sleep_count++ :: else fi };
			if
			:: d_step { !progress_lock -> progress_lock = true };
				LOOK;
				UNLOCK(progress_lock)
			:: progress_lock -> wake_fd = true
			fi
		:: !polled
		fi;
		d_step { mine = !led_by_waiter && !polled; if :: mine -> led_by_waiter = true :: else fi };
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && polled -> d_step { led_by_waiter = false; mine = false }
		:: mine && !polled && wake_fd -> serve_or_hand_over(over)
#ifdef WAITER_STAYS
		:: mine && woken -> mine = false
#else
		:: mine && woken -> d_step { led_by_waiter = false; mine = false }
#endif
		od
	}
}

active proctype monitor()
{
	timeout -> assert(ring == 0)
}
