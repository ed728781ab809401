/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datsock_remote.pml - one direction of a connection that TCP and a ring in the receiver's process share (sock/remote_out.c, sock/remote_in.c).
 *
 * The sender writes the bytes 1 to LAST. It begins and ends epochs of the ring at any moment, and closes: the FIN follows.
 * In an epoch bytes wait in its staging copy; once the receiver has agreed, RDMA writes them, and NOTICE follows. An
 * epoch that was agreed to ends by a frame in TCP, which tells the position from which on the bytes come by TCP. At its
 * end the sender may ask whether all bytes have arrived (SYNC); then the frame tells the last position.
 * The receiver reads, and asks for the way back (BACK) at any moment, before a fork: then TCP must have no frame.
 * The DAT connection breaks at any moment, and each end learns it after any part of the messages that are under way.
 *
 * Property: bytes come out once and in order, then the end, and nothing waits for ever.
 *
 * Mistakes: NO_SKIP reads bytes of TCP that were taken from the ring, EARLY_AGREE agrees before TCP was read up to the
 * epoch, NO_LEFT begins an epoch before the frame of the last one was read, FRAME_ALWAYS sends a frame for an epoch that
 * was not agreed to, NO_SYNC tells the last position without asking, FRAME_NEVER sends none after a break, TAIL_FRAME tells the position of the last byte that was
 * written, though the connection broke. */
#define LAST 3
#define RING 2
#define EPOCHS 2
#define FIN 255
#define FRAME(e, position) (100 + 10 * (e) + (position))

mtype = { MOVE, AGREE, CANCEL, NOTICE, TAKEN, LEFT, BACK, BACKED, SYNC, SYNCED };

chan tcp = [12] of { byte };
chan to_receiver = [10] of { mtype, byte, byte, byte }; /* type, position, bytes of TCP, epoch */
chan to_sender = [10] of { mtype, byte, byte };         /* type, position, epoch */
bool broken, sender_over, receiver_over;
byte staged[LAST + 2], ring[LAST + 2];

#define SEND(message) if :: broken :: !broken -> to_receiver!message fi
#define ANSWER(message) if :: broken :: !broken -> to_sender!message fi

proctype breaker()
{
	if
	:: atomic { !sender_over && !receiver_over -> broken = true }
	:: true
	fi
}

/* move_revoke() and remote_end() */
inline end_epoch()
{
	if
	:: in_epoch ->
#ifdef FRAME_ALWAYS
		if :: true ->
#else
#ifdef FRAME_NEVER
		if :: agreed && !down ->
#else
		if :: agreed ->
#endif
#endif
#ifdef TAIL_FRAME
			tcp!FRAME(epoch, tail); sent++;
			claim = tail;
#else
			tcp!FRAME(epoch, claim); sent++;
#endif
		:: else -> SEND(CANCEL(0, 0, epoch)); left = epoch;
		fi;
		i = claim;
		do
		:: i < tail -> tcp!staged[i]; sent++; i++;
		:: else -> break
		od;
		tail = claim; in_epoch = false; agreed = false;
	:: else
	fi
}

proctype sender()
{
	byte next = 1, tail, claim, sent, epoch, left, i, position, number;
	bool in_epoch, agreed, down, back, asked;

	do
	:: atomic { next <= LAST && in_epoch && tail - claim < RING ->
		staged[tail] = next; tail++; next++;
		if
		:: agreed -> SEND(NOTICE(tail, 0, epoch));
		:: else
		fi }
	:: atomic { next <= LAST && !in_epoch -> tcp!next; sent++; next++; }
	:: atomic { next <= LAST && !in_epoch && !down && !back && epoch < EPOCHS &&
#ifndef NO_LEFT
		left == epoch &&
#endif
		true ->
		epoch++; in_epoch = true;
		SEND(MOVE(tail, sent, epoch)); }
	:: atomic { in_epoch -> end_epoch(); }
	:: atomic { nempty(to_sender) && !down ->
		if
		:: to_sender?AGREE(position, number) ->
			if
			:: in_epoch && number == epoch ->
				agreed = true;
				if
				:: tail > claim -> SEND(NOTICE(tail, 0, epoch));
				:: else
				fi
			:: else
			fi
		:: to_sender?TAKEN(position, number) ->
			if
			:: in_epoch && number == epoch -> assert(position <= tail); claim = position;
			:: else
			fi
		:: to_sender?SYNCED(position, number) ->
			if
			:: in_epoch && number == epoch && position == tail -> claim = tail;
			:: else
			fi
		:: to_sender?LEFT(position, number) -> left = number;
		:: to_sender?BACK(position, number) -> back = true; end_epoch(); SEND(BACKED(0, 0, 0));
		fi }
	/* what is under way may be lost */
	:: atomic { broken && !down -> down = true; end_epoch(); }
	:: atomic { next > LAST && in_epoch && agreed && !down && !asked ->
		asked = true;
#ifdef NO_SYNC
		claim = tail;
#endif
		SEND(SYNC(tail, 0, epoch)); }
	:: atomic { next > LAST -> end_epoch(); tcp!FIN; sender_over = true; break }
	od;
	/* The service thread still answers. */
end:	do
	:: atomic { nempty(to_sender) && !receiver_over ->
		to_sender?_, position, number; }
	:: atomic { receiver_over -> break }
	od
}

inline leave(with_frame)
{
	entered = false; noticed = false;
	if
	:: with_frame -> ANSWER(LEFT(0, epoch));
	:: else
	fi
}

inline try_agree()
{
	if
	:: wanted && !entered && drop == 0 &&
#ifdef EARLY_AGREE
		true ->
#else
		taken_tcp == want_start ->
#endif
		wanted = false; entered = true; noticed = false;
		epoch = want_epoch; mine = want_position; tail = want_position;
		ANSWER(AGREE(0, epoch));
	:: wanted && !entered && taken_tcp > want_start -> wanted = false;
	:: else
	fi
}

proctype receiver()
{
	byte last, value, taken_tcp, mine, tail, epoch, drop, position, start, number;
	byte want_start, want_position, want_epoch;
	byte ends; /* the position of a frame that is not reached yet, and 1; 0: none */
	bool entered, noticed, wanted, down, back, backed, forked;

	do
	:: atomic { nempty(to_receiver) && !down ->
		if
		:: to_receiver?MOVE(position, start, number) ->
			if
			:: entered -> assert(!noticed); leave(false);
			:: else
			fi;
			wanted = true; want_start = start; want_position = position; want_epoch = number;
			try_agree();
		:: to_receiver?CANCEL(position, start, number) ->
			if
			:: wanted && want_epoch == number -> wanted = false;
			:: entered && epoch == number -> assert(!noticed); leave(false);
			:: else
			fi
		:: to_receiver?NOTICE(position, start, number) ->
			if
			:: entered && number == epoch && drop == 0 ->
				do
				:: tail < position -> ring[tail] = staged[tail]; tail++;
				:: else -> break
				od;
				noticed = true;
			:: else
			fi
		:: to_receiver?SYNC(position, start, number) ->
			if
			:: entered && number == epoch && tail == position -> ANSWER(SYNCED(position, epoch));
			:: else
			fi
		:: to_receiver?BACKED(position, start, number) -> backed = true;
		fi }
	:: atomic { broken && !down -> down = true; }
	/* the program takes a byte from the ring */
	:: atomic { entered && drop == 0 && mine < tail && (!back || ends) ->
		last++;
		assert(ring[mine] == last);
		mine++;
		if
		:: ANSWER(TAKEN(mine, epoch));
		:: true
		fi }
	/* the head of TCP in an epoch */
	:: atomic { ends && mine == ends - 1 -> ends = 0; leave(true); try_agree(); }
	:: atomic { entered && drop == 0 && !ends && nempty(tcp) ->
		tcp?<value>;
		if
		:: value >= 100 && value != FIN ->
			tcp?value; taken_tcp++;
			assert(value >= FRAME(epoch, 0) && value <= FRAME(epoch, tail));
			position = value - FRAME(epoch, 0);
			if
			:: position > mine -> ends = position + 1;
			:: else ->
#ifndef NO_SKIP
				drop = mine - position;
#endif
			fi;
			if
			:: ends -> skip;
			:: !ends && drop == 0 -> leave(true); try_agree();
			:: else
			fi
		:: value < 100 -> assert(!noticed); leave(false); try_agree();
		:: value == FIN -> assert(!noticed); leave(false);
		fi }
	:: atomic { drop > 0 && nempty(tcp) ->
		tcp?value; taken_tcp++; drop--;
		assert(value < 100);
		if
		:: drop == 0 -> leave(true); try_agree();
		:: else
		fi }
	/* the program, or another process after a fork, reads TCP */
	:: atomic { !entered && (!back || forked) && nempty(tcp) ->
		tcp?value;
		if
		:: value == FIN -> break
		:: else
		fi;
		taken_tcp++;
		assert(value < 100);
		last++;
		assert(value == last);
		if
		:: !forked -> try_agree();
		:: else
		fi }
	:: atomic { !back && (entered || wanted || taken_tcp > 0) -> back = true; ANSWER(BACK(0, 0)); }
	:: atomic { back && !forked && !entered && (backed || down || sender_over) -> forked = true; wanted = false; }
	od;
	assert(last == LAST);
	receiver_over = true;
}

init { atomic { run sender(); run receiver(); run breaker(); } }
