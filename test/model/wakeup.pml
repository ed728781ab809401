/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wakeup.pml - which thread is woken for data in a socket whose low-water mark a polling thread has
 * raised (doc/design/soft-progress.md): a peer that sends, the service thread with its timer, a
 * polling thread that may stop at any moment, and a thread that arms a CQ, and may then block and
 * drive progress. What the kernel does with the lock of the socket held is one step; its look at
 * the members of the epoll sets is another.
 *
 * Claim: when no process can move any more, no message is left (the monitor's assertion).
 *
 *   spin -run wakeup.pml                 finds no error
 * Each of these must find one:
 *   spin -run -DMARK_STAYS wakeup.pml    leaves the mark raised when polling has stopped
 *   spin -run -DNOT_ASKED wakeup.pml     raises it without asking whether polling threads still
 *                                        drive progress
 *   spin -run -DWAITER_STAYS wakeup.pml  the blocked thread does not give progress back when it
 *                                       wakes */

#define MESSAGES 3
#define POLLS 3
#define ARMS 2

byte data;		/* messages in the socket */
bool high;		/* the low-water mark is raised */
bool ready;		/* data_epoll's list has the socket */
bool polled;		/* polling threads drive progress: service_epoll does not watch data_epoll,
			 * the timer is due */
bool timer;
bool led_by_waiter;		/* a blocked thread watches data_epoll, and service_epoll does not */
bool progress_lock, owner_lock;	/* locks */
byte polls, seen;

#define LOCK(l) d_step { !l -> l = true }
#define UNLOCK(l) l = false

/* The kernel: a socket becomes ready when it gets enough data, or when the mark falls to what it
 * has. */
#define TELL if :: data > 0 && !high -> ready = true :: else fi
#define SCAN if :: ready -> ready = false; TELL :: else fi

#ifdef MARK_STAYS
#define LOWER skip
#else
#define LOWER if :: high -> d_step { high = false; TELL } :: else fi
#endif

inline resume()
{
	LOCK(owner_lock);
	if
	:: polled -> polled = false; LOWER
	:: else
	fi;
	UNLOCK(owner_lock)
}

inline suppress()
{
#ifdef NOT_ASKED
	d_step { high = true };
#else
	LOCK(owner_lock);
	if
	:: polled -> high = true
	:: else
	fi;
	UNLOCK(owner_lock)
#endif
}

active proctype peer()
{
	byte i;

	for (i : 1 .. MESSAGES) {
		d_step { data++; TELL }
	}
}

/* data_epoll was ready, and woke the service thread or a blocked thread. */
inline serve_or_hand_over(over)
{
	LOCK(progress_lock);
	over = polls != seen;
	if
	:: over ->				/* to the polling threads */
		seen = polls;
		LOCK(owner_lock);
		polled = true;
		UNLOCK(owner_lock)
	:: !over ->
		SCAN;
		data = 0
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
	:: ready && !polled && !led_by_waiter -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(progress_lock);
		if
		:: polls != seen && polled -> seen = polls; timer = true
		:: else -> resume()
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
			data = 0;
			if
			:: suppress()
			:: skip
			fi;
			if
			:: SCAN
			:: skip
			fi;
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
		:: polled -> resume()
		:: !polled
		fi;
		d_step { mine = !led_by_waiter && !polled; if :: mine -> led_by_waiter = true :: else fi };
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && polled -> d_step { led_by_waiter = false; mine = false }
		:: mine && !polled && ready -> serve_or_hand_over(over)
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
	timeout -> assert(data == 0)
}
