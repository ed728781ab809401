/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datsock.pml - one direction of a connection that two carriers share: TCP and a ring (sock/ring.h, sock/move.c).
 *
 * The sender writes LAST bytes, 1 to LAST. It begins and ends epochs of the ring at any moment, is ended by
 * a signal at any step ("dead": the kernel sends a FIN), or closes: the FIN follows what is in TCP, the ring may hold bytes.
 * The receiver reads, or asks the sender's service thread to go back (BACK), which takes its lock as the sender does.
 * TCP holds few bytes; a revocation that finds it full keeps the rest for later (resend).
 *
 * Property: bytes come out once and in order. After a close all of them do, and then the end; after a death a prefix.
 * Nothing waits for ever.
 *
 * Mistakes: NO_RESEND forgets the rest, OVERTAKE writes to TCP before it, READ_FIRST copies before it claims,
 * NO_ACK begins an epoch that the receiver has not left the last one for, EARLY_END takes the FIN without a last look
 * at the ring, NO_START enters the ring before TCP's bytes were read. */
#define LAST 3 /* bytes */
#define TCP 1  /* bytes that TCP holds */
#define RING 2
#define EPOCHS 2

chan tcp = [TCP] of { byte };
byte ring[LAST + 2]; /* by position, so that it never wraps */
byte tail, claim, head, epoch, ack, start;
bool revoked, fin, closed, dead;
byte resend[LAST + 2], resend_at, resend_end;
byte sent_tcp, next = 1; /* next: the byte to be written */
bool in_epoch, back, back_done, locked, sender_ended;

inline take_lock() { atomic { !locked -> locked = true } }

/* ring_revoke() and move_revoke() */
inline revoke()
{
	if
	:: in_epoch ->
		atomic { revoked = true; i = claim; }
		in_epoch = false;
		do
		:: i < tail && len(tcp) < TCP && resend_at == resend_end ->
			atomic { tcp!ring[i]; sent_tcp++; i++; }
		:: i < tail && (len(tcp) == TCP || resend_at != resend_end) ->
#ifdef NO_RESEND
			i++;
#else
			atomic { resend[resend_end] = ring[i]; resend_end++; i++; }
#endif
		:: i == tail -> break
		od;
		tail = claim;
	:: else
	fi
}

inline flush()
{
	do
	:: atomic { resend_at < resend_end && len(tcp) < TCP -> tcp!resend[resend_at]; sent_tcp++; resend_at++; }
	:: atomic { else -> break; }
	od
}

proctype sender()
{
	byte i;

	{
	do
	:: next <= LAST ->
		take_lock();
		if
		:: in_epoch ->
			if
			:: tail - head < RING -> ring[tail] = next; tail++; next++;
			:: tail - head == RING
			fi
		:: !in_epoch ->
			flush();
			if
#ifdef OVERTAKE
			:: len(tcp) < TCP -> atomic { tcp!next; sent_tcp++; next++; }
#else
			:: atomic { resend_at == resend_end && len(tcp) < TCP -> tcp!next; sent_tcp++; next++; }
#endif
			:: len(tcp) == TCP || resend_at < resend_end
			fi
		fi;
		locked = false;
	:: next <= LAST -> /* begin or end an epoch */
		take_lock();
		if
		:: in_epoch -> revoke();
		:: !in_epoch && !back && resend_at == resend_end && epoch < EPOCHS &&
#ifdef NO_ACK
			true
#else
			ack == epoch
#endif
			->
			start = sent_tcp;
			atomic { claim = tail; revoked = false; }
			in_epoch = true;
			epoch++;
		:: else
		fi;
		locked = false;
	:: next > LAST -> break
	od;
	/* close: few bytes go to TCP, many stay in the ring */
	take_lock();
	if
	:: revoke();
	:: true
	fi;
	do
	:: resend_at < resend_end -> flush();
	:: resend_at == resend_end -> break
	od;
	atomic { closed = true; fin = true; sender_ended = true; }
	locked = false;
	} unless { dead }
}

/* A signal ends the process at any moment, or never. */
proctype killer()
{
	if
	:: atomic { !closed -> dead = true; fin = true; sender_ended = true; }
	:: true
	fi
}

/* The sender's service thread: BACK, and what waits to be sent again. It ends with its process. */
proctype service()
{
	byte i;

	{
	do
	:: back && !back_done ->
		take_lock();
		revoke();
		flush();
		back_done = true;
		locked = false;
	:: resend_at < resend_end && len(tcp) < TCP ->
		take_lock();
		flush();
		locked = false;
	:: closed -> break
	od
	} unless { sender_ended }
}

proctype receiver()
{
	byte got, value, last, taken_tcp, mine, seen, at;
	bool in_ring, checked;

again:
	checked = false;
look:
	if
	:: !in_ring && epoch != seen ->
		seen = epoch;
		in_ring = true;
	:: else
	fi;
	if
	:: in_ring && revoked -> in_ring = false; ack = seen;
	:: else
	fi;
	if
	:: atomic { !back && seen > 0 -> back = true; } goto again
	:: true
	fi;
	if
#ifdef NO_START
	:: in_ring ->
#else
	:: in_ring && taken_tcp >= start ->
#endif
		assert(taken_tcp == start || revoked);
		at = tail;
		if
		:: at > mine && !revoked ->
#ifdef READ_FIRST
			value = ring[mine];
			last++;
			assert(value == last);
#endif
			if
			:: atomic { !revoked && claim == mine -> claim = mine + 1; }
#ifndef READ_FIRST
				value = ring[mine];
				last++;
				assert(value == last);
#endif
				mine++;
				head = mine;
			:: atomic { revoked || claim != mine -> assert(revoked); }
			fi;
			goto again
		:: else ->
			if
			:: revoked -> goto again
			:: checked && !revoked -> goto end
			:: fin && len(tcp) == 0 && !checked && !revoked ->
#ifdef EARLY_END
				goto end
#else
				checked = true;
				goto look
#endif
			:: len(tcp) > 0 ->
				/* Bytes that came over TCP: the epoch was revoked, or it is a mistake. */
				assert(revoked);
				goto again
			:: tail > mine -> goto again
			fi
		fi
	:: else ->
		if
		:: atomic { len(tcp) > 0 -> tcp?value; }
			taken_tcp++;
			last++;
			assert(value == last);
			goto again
		:: atomic { len(tcp) == 0 && fin && !in_ring && epoch == seen -> goto end; }
		:: epoch != seen && !in_ring -> goto again
		:: in_ring && revoked -> goto again
		:: atomic { in_ring && len(tcp) == 0 && fin && !revoked -> goto end; }
		fi
	fi;
end:
	assert(dead || last == LAST);
	assert(last <= LAST);
}

init { atomic { run sender(); run service(); run receiver(); run killer(); } }
