/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.pml - which thread is woken for a message in a ring (doc/design/soft-progress.md): a
 * producer, the consumer's service thread with its timer, a polling thread that may stop at any
 * moment, and a thread that arms a CQ, and may then block and drive progress. Memory is
 * sequentially consistent here, which the two full fences achieve. The label of each step is that
 * of the document.
 *
 * Claims: when no process can move any more, no message is left (the monitor's assertion). The owner
 * changes as its table allows.
 *
 *   spin -run notify.pml                 finds no error, with -DTWO_WAITERS neither
 *   spin -run -DNO_LOOK notify.pml       leaves S4 out, and must find one
 *   spin -run -DLATE_CLEAR notify.pml    clears the eventfd after S4, and must find one
 *   spin -run -DLATE_HANDOVER notify.pml clears the eventfd after the handover, and must find one
 *   spin -run -DWAITER_STAYS notify.pml  the blocked thread does not give progress back when it
 *                                        wakes, and must find one
 *   spin -run -DAWAKE_ALWAYS notify.pml  gives progress to the service thread after a wait,
 *                                        though no blocked thread is the owner, and must find one */

#define MESSAGES 3
#ifdef TWO_WAITERS
#define WAITERS 2
#define POLLS 1
#define ARMS 1
#else
#define WAITERS 1
#define POLLS 2
#define ARMS 2
#endif

byte ring;		/* messages stored and not consumed */
byte sleep_count = 1;	/* the sleep count; odd: signal the eventfd */
byte notified;		/* the sleep count for which the producer signaled */
bool wake_fd;		/* the eventfd is readable */
bool timer;
mtype = { SERVICE_THREAD, BLOCKED_THREAD, POLLING_THREADS };
mtype owner = SERVICE_THREAD;	/* the progress owner; one of the first two watches the eventfd */
bool progress_lock;	/* the lock; a change of the owner is one step, as with its lock held */
byte polls, seen;

#define LOCK(l) d_step { !l -> l = true }
#define UNLOCK(l) l = false

/* The table of dapl/soft/progress/owner_state.c. */
#define MAY_BECOME(to) (owner != to && (owner == SERVICE_THREAD || to == SERVICE_THREAD || \
			to == POLLING_THREADS))

#ifdef AWAKE_ALWAYS
#define BLOCKED_OWNER true
#else
#define BLOCKED_OWNER (owner == BLOCKED_THREAD)
#endif

#ifdef NO_LOOK
#define LOOK skip
#else
#define LOOK if :: ring > 0 -> wake_fd = true :: else fi
#endif

/* The count is even while polling threads drive progress. */
#define SET_OWNER(to) \
	assert(MAY_BECOME(to)); \
	if :: owner == POLLING_THREADS || to == POLLING_THREADS -> sleep_count++ :: else fi; \
	owner = to

inline resume()
{
	d_step {
		if
		:: owner == POLLING_THREADS -> SET_OWNER(SERVICE_THREAD)
		:: else
		fi
	}
}

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

inline hand_over()
{
	d_step {
		if
		:: owner != POLLING_THREADS -> SET_OWNER(POLLING_THREADS)
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
		hand_over();
		wake_fd = false
#else
		wake_fd = false;
		hand_over()
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
	:: wake_fd && owner == SERVICE_THREAD -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(progress_lock);
		if
		:: polls != seen && owner == POLLING_THREADS -> seen = polls; timer = true
		:: else ->
			resume();
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
active [WAITERS] proctype waiter()
{
	bool over, mine, woken;
	byte i;

	for (i : 1 .. ARMS) {
		seen = polls;
		if
		:: owner == POLLING_THREADS ->
			resume();
			if
			:: d_step { !progress_lock -> progress_lock = true };
				LOOK;
				UNLOCK(progress_lock)
			:: progress_lock -> wake_fd = true
			fi
		:: else
		fi;
		d_step {
				mine = owner == SERVICE_THREAD;
			if
			:: mine -> SET_OWNER(BLOCKED_THREAD)
			:: else
			fi
		};
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && wake_fd ->
			if
			:: owner == BLOCKED_THREAD -> serve_or_hand_over(over)
			:: else
			fi;
			mine = owner == BLOCKED_THREAD	/* else it stops watching */
#ifdef WAITER_STAYS
		:: mine && woken -> mine = false
#else
		:: mine && woken ->
			d_step {
						if
				:: BLOCKED_OWNER -> SET_OWNER(SERVICE_THREAD)
				:: else
				fi;
				mine = false
			}
#endif
		od
	}
}

active proctype monitor()
{
	timeout -> assert(ring == 0)
}
