/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wakeup.pml - which thread is woken for data in a socket whose low-water mark a polling thread has
 * raised (doc/design/soft-progress.md): a peer that sends, the service thread with its timer, a
 * polling thread that may stop at any moment, and a thread that arms a CQ, and may then block and
 * drive progress. What the kernel does with the lock of the socket held is one step; its look at
 * the members of the epoll sets is another.
 *
 * Claims: when no process can move any more, no message is left (the monitor's assertion). The owner
 * changes as its table allows.
 *
 *   spin -run wakeup.pml                 finds no error, with -DTWO_WAITERS neither
 * Each of these must find one:
 *   spin -run -DMARK_STAYS wakeup.pml    leaves the mark raised when polling has stopped
 *   spin -run -DNOT_ASKED wakeup.pml     raises it without asking whether polling threads still
 *                                        drive progress
 *   spin -run -DWAITER_STAYS wakeup.pml  the blocked thread does not give progress back when it
 *                                       wakes
 *   spin -run -DAWAKE_ALWAYS wakeup.pml  gives progress to the service thread after a wait,
 *                                        though no blocked thread is the owner */

#define MESSAGES 3
#ifdef TWO_WAITERS
#define WAITERS 2
#define POLLS 2
#define ARMS 1
#else
#define WAITERS 1
#define POLLS 3
#define ARMS 2
#endif

byte data;		/* messages in the socket */
bool high;		/* the low-water mark is raised */
bool ready;		/* data_epoll's list has the socket */
bool timer;
mtype = { SERVICE_THREAD, BLOCKED_THREAD, POLLING_THREADS };
mtype owner = SERVICE_THREAD;	/* the progress owner; service_epoll watches data_epoll for the service
				 * thread only */
bool progress_lock, owner_lock;	/* locks */
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

/* The kernel: a socket becomes ready when it gets enough data, or when the mark falls to what it
 * has. */
#define TELL if :: data > 0 && !high -> ready = true :: else fi
#define SCAN if :: ready -> ready = false; TELL :: else fi

#ifdef MARK_STAYS
#define LOWER skip
#else
#define LOWER if :: high -> d_step { high = false; TELL } :: else fi
#endif

#define SET_OWNER(to) assert(MAY_BECOME(to)); owner = to

inline resume()
{
	LOCK(owner_lock);
	if
	:: owner == POLLING_THREADS -> SET_OWNER(SERVICE_THREAD); LOWER
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
	:: owner == POLLING_THREADS -> high = true
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

inline hand_over()
{
	d_step {
		!owner_lock;
		if
		:: owner != POLLING_THREADS -> SET_OWNER(POLLING_THREADS)
		:: else
		fi
	}
}

/* data_epoll was ready, and woke the service thread or a blocked thread. */
inline serve_or_hand_over(over)
{
	LOCK(progress_lock);
	over = polls != seen;
	if
	:: over -> seen = polls; hand_over()	/* the polling threads look */
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
	:: ready && owner == SERVICE_THREAD -> serve_or_hand_over(over)
	:: timer ->
		timer = false;
		LOCK(progress_lock);
		if
		:: polls != seen && owner == POLLING_THREADS -> seen = polls; timer = true
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
active [WAITERS] proctype waiter()
{
	bool over, mine, woken;
	byte i;

	for (i : 1 .. ARMS) {
		seen = polls;
		if
		:: owner == POLLING_THREADS -> resume()
		:: else
		fi;
		d_step {
			!owner_lock;
			mine = owner == SERVICE_THREAD;
			if
			:: mine -> SET_OWNER(BLOCKED_THREAD)
			:: else
			fi
		};
		if :: woken = true :: woken = false fi;	/* some time, or never */
end:		do
		:: !mine -> break
		:: mine && ready ->
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
				!owner_lock;
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
	timeout -> assert(data == 0)
}
