/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_types.h - what the library keeps of a TCP socket of the program (struct conn), of an epoll instance (struct
 * epoll) and of a registration of the one with the other (struct reg).
 *
 * Locks, outermost first: sock_lock (the lists and the life of connections), conn->in_lock, conn->out_lock,
 * epoll->lock. No lock is held while a thread sleeps in the kernel. Objects are never given back to the allocator, so
 * that a thread that comes late finds a valid object, whose state tells that it is over. */
#ifndef SOCK_CONN_TYPES_H
#define SOCK_CONN_TYPES_H
#include <dat/dat_socket.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include "common/lock.h"
#include "sock/link.h"
#include "sock/polls.h"
#include "sock/ring.h"
#include "sock/timers.h"

/* How the calls of the program are carried out. */
enum conn_mode {
	CONN_PLAIN,    /* the kernel does them; bytes are counted */
	CONN_WATCHED,  /* over TCP, but no thread sleeps where a wake-up by the library cannot reach it */
	CONN_ATTACHED, /* there is a segment; each direction is on TCP or in its ring */
};

/* The shared memory of a connection. Ring 0 is that of the end that called connect(). The data follow. */
struct segment {
	struct ring ring[2];
};
enum { SEGMENT_DATA = 4096 }; /* offset of the data of ring 0 */
_Static_assert(sizeof(struct segment) <= SEGMENT_DATA, "the rings' headers fit");

struct reg;

struct conn {
	/* read by each call without a lock */
	uint8_t mode; /* enum conn_mode; changes with both locks held */
	bool closed;  /* the program has no descriptor of it any more */
	bool nonblock;
	int kernel_in, kernel_out; /* atomic: threads in calls of the kernel that may sleep */

	struct dapl_mutex in_lock, out_lock;
	void *in_owner, *out_owner; /* the thread that holds the lock, for signal handlers */
	int fd;                     /* one of the program's descriptors */
	int refs;                   /* descriptors of the program */
	uint64_t id;                /* never used again */

	/* counted in each direction: bytes by TCP alone */
	uint64_t tcp_in, tcp_out;
	uint64_t ring_in, ring_out;    /* bytes by the ring */
	uint64_t frames_in, frames_out; /* bytes by TCP that are not the program's: frames, and bytes that came twice */
	uint64_t reads, writes;        /* calls that moved bytes */
	uint64_t ask_bytes, ask_calls; /* when they are reached, the move is asked for */
	struct {
		uint64_t at, bytes, calls;
	} rate; /* since when the rate of traffic is measured, and the counts of that time */
	unsigned tries;
	uint64_t ask_at;   /* atomic: monotonic ns; before, traffic does not make it ask */
	unsigned pause_ms; /* the last pause of a connection between hosts, 0: none */
	uint64_t moved_at; /* monotonic ns; to a stream over DAT */
	bool other_host;   /* its peer is on another host, and knows of this library */

	bool connector; /* connect() was called: this end asks */
	bool acceptor;
	bool never;  /* not moved (again) */
	bool asked;  /* with the service thread */
	bool inherited_epoll; /* an epoll instance of the parent watches it, too */
	uint32_t *share;      /* counts the processes that have it (share.h); NULL: none but this one */
	unsigned forked;      /* number of the last fork that counted */
	bool not_for_child;   /* of that fork: for the child the connection is reset */
	uint8_t why; /* DAT_SOCKET_WHY_* */
	struct link_failure failure; /* of DAT_SOCKET_WHY_ADAPTER */
	bool logged;

	/* the segment; guarded by both locks */
	struct segment *segment;
	size_t segment_size;
	size_t memory; /* bytes taken of max_memory */
	int efd;       /* the peer writes it to wake this end; -1: none */
	int peer_efd;
	bool foreign; /* the peer has another user: efd and peer_efd are timers (foreign.h) */
	bool had_frames; /* frames, which are not the program's, may make the TCP socket readable */
	struct remote *remote; /* the rings are the ends of a stream over DAT (remote.h); NULL: shared memory */
	struct ring_sender tx;
	struct ring_receiver rx;
	uint64_t rx_left; /* bytes that TCP still carries before the epoch of rx */
	bool may_begin;   /* the peer reads the ring */
	bool peer_gone;
	bool look_at_tcp;     /* the kernel has told of the TCP socket: a read from the empty ring looks at it */
	uint32_t empty_reads; /* reads that found the ring empty */
	struct polls polls;   /* reads that did not wait; guarded by in_lock */
	uint8_t short_waits;  /* of threads for a stream over DAT, in a row; a hint */
	bool broken;         /* the peer has stored what cannot be */
	uint64_t begin_at;   /* tcp_out from which an epoch may begin */
	int pending_error;   /* atomic: of the socket; the library has seen it, and the program not yet */
	uint64_t full_count; /* writes that found the ring full */
	bool full_marked;    /* atomic: full_note() */
	uint64_t full_at;    /* claim of the ring + 1 when the service thread found little room, else 0 */
	bool streaming;      /* its sending ring is among those that share the cache */

	/* bytes that came back from the ring and are not in TCP yet; guarded by out_lock */
	char *resend;
	size_t resend_at, resend_end;
	bool resend_watched; /* the service thread sends them on */
	bool shut;           /* the program has shut its sending direction */
	bool shutdown_late;  /* SHUT_WR waits for them */
	bool frame_kept;     /* `resend` is but a frame (remote.h), which the next write sends */

	int waiters_in, waiters_out; /* atomic: threads that sleep for it outside of epoll */
	struct reg *regs;            /* guarded by out_lock */
	struct reg *dead_regs;       /* to be freed when no lock is held */
	struct reg *spare_reg;

	/* the channel to the peer's library; the service thread's */
	enum {
		LINK_NONE,
		LINK_QUEUED,  /* to be started by the service thread */
		LINK_RETRY,   /* the peer was not ready: again when `timer` is due */
		LINK_LISTEN,  /* waits for the peer to connect to `listener` */
		LINK_OPENING, /* waits for its OPEN */
		LINK_ASKED,   /* waits for its OPENED */
		LINK_HOST,    /* waits for datsockd (hosts.h) */
		LINK_REMOTE,  /* waits for a stream over DAT (remote.h) */
		LINK_UP,
	} link;
	uint32_t host_id;        /* of its question to datsockd, 0: none */
	struct conn *next_host;  /* that has asked datsockd */
	int control, listener;
	uint32_t peer_inode; /* of the peer's TCP socket, as the kernel tells */
	uint32_t peer_uid;   /* its user */
	unsigned strangers;  /* processes that have come to the listener, and are not the peer */
	struct timer timer;  /* of a link that waits */
	unsigned retries;
	struct conn *next_queued;
	struct segment *offered; /* what this end has sent with OPEN */
	uint32_t back_wait;      /* 1: a thread waits for the peer to end its epoch; futex */

	uint64_t wakeups, moves, backs;
	uint64_t since;          /* monotonic ns of the last change of mode */
	uint64_t idle_at, idle_bytes; /* when the service thread saw a change of the bytes moved, and their number */
	struct conn *next, *prev;     /* of all connections by their ids; next: of free ones */
	struct conn *next_closed;     /* waits for the service thread to recycle it */
};

struct reg {
	struct conn *conn; /* NULL: free */
	struct epoll *epoll;
	int epoll_fd;            /* the descriptor of the instance that was used */
	int fd;                  /* as registered */
	struct epoll_event wish; /* the program's */
	bool attached;           /* the kernel tells the library of it, not the program */
	bool disabled;           /* EPOLLONESHOT has fired */
	bool parked;             /* attached, and the program has deleted it: only the kernel still has it */
	bool listed;             /* in epoll->attached. If not, the peer's wake-up brings it back */
	bool on_tcp;             /* counted in epoll->on_tcp */
	uint8_t empty_scans;     /* in a row */
	uint32_t kernel_events;  /* as registered with the kernel while attached */
	uint64_t seen_in;        /* position of the ring at the last report; edge-triggered */
	uint64_t seen_full;      /* conn->full_count */
	struct reg *next;        /* of conn->regs, or of free ones */
	struct reg *next_attached, *prev_attached;
};

struct epoll {
	struct dapl_mutex lock;
	int refs;     /* descriptors */
	int sleepers; /* threads in epoll_wait() */
	bool nested;  /* watched by another poll or epoll: holds no attached connection */
	bool used;    /* it has had attached registrations */
	bool waits_for_tcp; /* a registration may wait for room on TCP, of which only the kernel can tell */
	int on_tcp;          /* atomic: registrations of connections that are not attached */
	unsigned turn;
	int spin_miss;
	struct reg *attached; /* list of the attached registrations that are scanned */
	struct epoll *next;
};

#endif
