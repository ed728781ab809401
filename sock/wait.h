/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait.h - waits for bytes or room on one connection: first by looking at its ring, then asleep in poll() on the TCP
 * socket and the descriptor that the peer wakes. */
#ifndef SOCK_WAIT_H
#define SOCK_WAIT_H
#include "sock/conn_types.h"

/* A spinning thread's decision to go on. */
struct spin {
	uint64_t end;
	unsigned rounds;
	bool off;
};
/* Begins to spin, unless that has not paid lately or the processors are busy. */
void spin_begin(struct spin *s);
/* Gives the processor away for a moment. Returns false when the time is over. */
bool spin_again(struct spin *s);
/* Notes whether the spinning has ended with what it waited for. */
void spin_end(struct spin *s, bool found);

/* Waits until the connection may have bytes (in) or room (out). Returns 0, EAGAIN when the time that SO_RCVTIMEO or
 * SO_SNDTIMEO gives is over, or EINTR. *deadline is 0 at the first call of an operation. */
int wait_for(struct conn *c, int fd, bool in, uint64_t *deadline);
/* Marks threads of this process as waiting, so that the peer wakes them: the flags of the rings. */
void wait_announce(struct conn *c, bool in, bool out);
/* Empties the wake-up descriptor after poll() has found it readable, on behalf of all waiters. */
void wait_drain(struct conn *c);
/* Whether a blocking call goes on after EINTR: all handlers were installed with SA_RESTART. */
bool wait_restarts(void);

#endif
