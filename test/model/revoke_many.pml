/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke_many.pml - several threads deregister regions at the same time, and wait without a lock for
 * the same peer (dapl/soft/shm/revoke.c, revoke_wait_for_writers). A revocation does not wait for an
 * access that a later one has waited for. Memory is sequentially consistent here, which the fences
 * achieve; revoke.pml shows the wait itself, with its time limit.
 *
 * Claim: no byte is stored in a region after its deregistration has returned.
 *
 *   spin -run revoke_many.pml                  finds no error
 * Each of these must find one:
 *   spin -run -DNUMBER_FIRST revoke_many.pml   the number is taken before the region is unpublished
 *   spin -run -DMARK_EARLY revoke_many.pml     an access counts as waited for before the wait
 *   spin -run -DNO_LOOK revoke_many.pml        the target does not look whether the peer is within */

#define REGIONS 3
#define WRITES 3

bool valid[REGIONS] = true;	/* in the MR directory */
bool gone[REGIONS];		/* the application has its memory back */
bool within;
byte revocations, waited;

active proctype writer()
{
	byte i, r;
	bool may;

	for (i : 1 .. WRITES) {
		select(r : 0 .. REGIONS - 1);
		within = true;
		may = valid[r];
		if
		:: may -> assert(!gone[r])	/* the store */
		:: else
		fi;
		within = false
	}
}

/* The statements in one atomic are under access_lock. */
inline wait_for_writers(number)
{
	bool busy;

	atomic {
		busy = waited < number && within;
#ifdef NO_LOOK
		busy = false;
#endif
		if
		:: !busy && waited < number -> waited = number
		:: else
		fi
#ifdef MARK_EARLY
		;
		if
		:: waited < number -> waited = number
		:: else
		fi
#endif
	}
	if
	:: busy ->
		!within;
		atomic {
			if
			:: waited < number -> waited = number
			:: else
			fi
		}
	:: else
	fi
}

active [REGIONS] proctype target()
{
	byte number;
	byte own = _pid - 1;

#ifdef NUMBER_FIRST
	atomic { revocations++; number = revocations };
	valid[own] = false;
#else
	valid[own] = false;
	atomic { revocations++; number = revocations };
#endif
	wait_for_writers(number);
	gone[own] = true
}
