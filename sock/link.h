/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - the DAT connection between this process and a peer process, which carries all of their streams: messages of
 * 32 bytes, which may have a few bytes of a stream behind them, and RDMA writes.
 * One link for each pair of processes, IA and direction of asking, whatever the number of
 * streams. Not responsible for: what the messages mean (remote.h), how processes find each other (service.h).
 *
 * libdat2 is loaded at the first use. If the device of an IA fails or is removed, its links end, and the IA is closed;
 * the next use of that IA opens it again. Only the service thread calls these functions, but for those of which it is
 * said that any thread may. */
#ifndef SOCK_LINK_H
#define SOCK_LINK_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "sock/link_message.h"

enum {
	LINK_KEY = 16,     /* bytes of a key, which also is the token of a DAT connection */
	LINK_PIECES = 2,   /* RDMA writes that precede a message, at most: a ring's end and its beginning */
};

struct link;

/* Registered memory. */
struct link_memory {
	void *lmr;
	uint32_t lmr_context, rmr_context;
	unsigned adapter, generation; /* where it was registered: link.c */
};

/* A call of DAT that failed, and its DAT_RETURN. error 0: `call` is the whole text. */
struct link_failure {
	const char *call;
	uint32_t error;
};

/* An RDMA write. */
struct link_piece {
	uint32_t lmr_context, rmr_context;
	uint64_t from, to; /* addresses */
	size_t length;
};

/* What the user of links does; called by the service thread without a lock. */
struct link_user {
	/* Whether a peer that connects with this token is expected. It is not expected again then. */
	bool (*knows)(const unsigned char token[LINK_KEY]);
	void (*up)(struct link *link);
	/* The connection was refused, or has broken: nothing is sent or received any more. */
	void (*down)(struct link *link);
	void (*message)(struct link *link, const struct link_message *m);
	/* link_write() refused before; now there is room. */
	void (*room)(struct link *link);
	/* In any thread: does what message() would do, if that needs no lock of a connection. Returns false if not: the
	 * service thread does it. */
	bool (*fast)(struct link *link, const struct link_message *m);
};
void link_set_user(const struct link_user *user);

/* Opens the IA and makes the service point of this process on it, once. Stores where peers connect to. Returns 0 or an
 * errno. */
int link_listen(const char *ia, struct sockaddr_storage *address, uint64_t *qualifier);
/* Returns the link to the process behind that qualifier; begins to connect if there is none. NULL: errno. It is up, or
 * user->up() or down() will be called. */
struct link *link_connect(const char *ia, const struct sockaddr *peer, uint64_t qualifier,
			  const unsigned char token[LINK_KEY]);
/* Why link_listen() or link_connect() has returned EIO. */
struct link_failure link_failure(void);
void link_failure_text(const struct link_failure *failure, char *text, size_t size);
bool link_is_up(const struct link *link);
/* Whether it has broken, or was refused. */
bool link_is_over(const struct link *link);
const char *link_ia(const struct link *link);
/* Whether this end asked for the connection. Streams that it opens have odd numbers. */
bool link_is_asker(const struct link *link);
/* Ends a link whose peer breaks the protocol. user->down() is called. */
void link_break(struct link *link, const char *what);
/* A stream waits for something of the peer; to be called each second while that is so. A peer that sends nothing is
 * asked for a sign of life, and the link of one that does not answer is ended: user->down() is called. Returns false
 * then. */
bool link_watch(struct link *link, uint64_t now);

/* Any thread. A stream refers to the link: its object stays after its end, until the stream releases it. */
void link_hold(struct link *link);
void link_release(struct link *link);

/* Any thread. Sends a message, or queues it. Messages arrive in their order. Nothing happens on a broken link. */
void link_send(struct link *link, struct link_message m);
/* Any thread. Writes the pieces, then sends the message; pieces that are short together come with the message. Returns
 * false, and does nothing, if the queue is full or the link is broken. */
bool link_write(struct link *link, const struct link_piece *pieces, int count, struct link_message m);

/* A thread of the program that waits for a stream takes messages itself, so that no other thread is woken for each. The
 * service thread lends it the link when it asks, and takes it back when it has not called for a moment. A link that
 * has other streams is not lent.
 *
 * Any thread, no lock held, between link_borrow() and link_give_back(). Takes messages; if there are none, sleeps until
 * one comes, for `sleep_us` at most. */
enum link_taken {
	LINK_SERVED,      /* not lent: the service thread takes messages */
	LINK_NOTHING,     /* none has come */
	LINK_TAKEN,       /* some were taken */
	LINK_INTERRUPTED, /* by a signal */
};
enum link_taken link_take(struct link *link, unsigned sleep_us);
/* Asks the service thread to lend the link. */
void link_ask(struct link *link);
/* The thread will sleep elsewhere: the service thread takes the link back now. */
void link_return(struct link *link);
/* Any thread: link_hold() and link_release() for a thread that takes messages. */
void link_borrow(struct link *link);
void link_give_back(struct link *link);
/* The service thread: lends links and takes them back. Returns the time until the next call in ms, -1: never. */
int link_run(void);
/* The service thread: keeps other threads from link_take() meanwhile; calls nest. */
void link_pause(void);
void link_resume(void);

/* Registers memory; peers may write it if `exposed`. Returns 0 or an errno. */
int link_register(struct link *link, void *memory, size_t size, bool exposed, struct link_memory *out);
void link_unregister(struct link_memory *memory);

/* Calls `fork` before a fork, ahead of the handlers of the DAT libraries, which hold their locks over it; `end` at the
 * end of the process, while messages can still be sent. */
void link_set_process(void (*fork)(void), void (*end)(void));
/* The descriptor that is readable when link_dispatch() has something to do; -1: there is none. */
int link_fd(void);
void link_dispatch(void);
/* Any thread. The process ends: nothing is sent from now on. */
void link_end(void);
/* Whether this thread is in a call of link_send() or link_write(): a signal handler runs. */
bool link_is_interrupted(void);
/* In a child: the parent's adapter is not this process's. It is left alone. */
void link_after_fork(void);
/* Any thread. Whether code at that address belongs to the DAT libraries, whose sockets are not the program's. */
bool link_is_caller(const void *code);

#endif
