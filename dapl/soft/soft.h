/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft.h - the objects of the software RNIC and which lock guards which field. Only the files of
 * this directory include it; core sees device.h.
 *
 * Lock order, outermost first:
 *   progress_lock -> qp->lock -> region->lock (windows) -> srq->lock -> cq->lock -> channel->lock
 *   progress_lock -> the locks of shm/attach.c
 *   progress_lock -> stags_lock -> qp->lock (quiescing)
 *   stags_lock, qp->lock -> process->reach_lock
 *   progress_lock, qp->lock -> owner_lock
 * The progress lock guards the state of every connection, its place in the epoll sets, and
 * conn->qp. The stream of a connection (conn->tx, conn->rx) is guarded by the lock of the QP that
 * the connection is attached to, and without a QP by the progress lock. The service thread makes
 * upcalls with no lock held. doc/design/soft-progress.md argues why no thread sleeps while a
 * message waits. */
#ifndef SOFT_SOFT_H
#define SOFT_SOFT_H
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include "common/address.h"
#include "common/clock.h"
#include "common/container_of.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/core/conn/diag.h"
#include "dapl/core/base/lock.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "dapl/soft/shm/pending.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/shm/proto.h"
#include "dapl/soft/shm/desched.h"
#include "dapl/soft/shm/cma.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/rmem_map.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/rdmap/wire.h"
#include "dapl/soft/tunables.h"

enum {	/* bits of DAPL_DBG_TYPE in use */
	SOFT_LOG_ERR = 0x1, SOFT_LOG_WARN = 0x2,
};

enum {
	SOFT_UD_MTU = 4096,
	SOFT_GRH = 40,
	/* The credit window, which both peers must agree on. */
	SOFT_WINDOW = 1 << 20,		/* bytes of Sends that may wait for a receive, for each QP */
	SOFT_CHARGE = 64,		/* bytes of the window that a Send takes beyond its payload */
};
#define SOFT_MAX_MESSAGE 0x80000000u

/* What a region lets peers do. */
enum {
	SOFT_REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC,
};

struct soft_qp;
struct soft_region;

/* --- memory ------------------------------------------------------------------ */

struct soft_pd {
	struct ibv_pd pd;
	uint64_t id;			/* never 0, never reused */
	unsigned refs;			/* atomic: objects made in it */
};

enum soft_region_kind { SOFT_MR, SOFT_WINDOW_1, SOFT_WINDOW_2 };

/* The memory that an STag names. An MR's does not change; a window's is guarded by lock. */
struct soft_region {
	enum soft_region_kind kind;
	struct soft_pd *pd;
	struct dapl_spin lock;		/* windows: held during an access */
	bool valid;
	uint32_t stag;
	uint64_t first;			/* address of the first byte as peers count it */
	uint64_t length;
	char *base;			/* local address of the first byte */
	int file;			/* MR: the file that it maps, if peers may map it, too; else
					 * -1 */
	uint64_t offset;		/* of the region in the file */
	int access;			/* IBV_ACCESS_* */
	struct soft_qp *qp;		/* type 2: bound to this QP only */
	struct soft_region *parent;	/* windows: the MR bound to */
	unsigned windows;		/* MR, atomic: windows bound to it */
};

struct soft_mr {
	struct ibv_mr mr;
	struct soft_region region;
};

struct soft_mw {
	struct ibv_mw mw;
	struct soft_region region;
};

struct soft_stags;	/* mem.c: the table STag -> region */

/* Outcome of a check: codes of RDMAP Terminate type 1, so that they can be sent. */
enum soft_check {
	SOFT_BAD_STAG = 0, SOFT_BOUNDS = 1, SOFT_ACCESS = 2, SOFT_OTHER_STREAM = 3,
	SOFT_WRAP = 4, SOFT_FINE = 100,
};

/* --- completion -------------------------------------------------------------- */

struct soft_cq;

struct soft_channel {
	struct ibv_comp_channel channel;
	struct dapl_spin lock;		/* guards ready and the events of its CQs */
	TAILQ_HEAD(, soft_cq) ready;	/* CQs that have an event */
	unsigned refs;
};

enum { SOFT_ARMED = 1, SOFT_ARMED_SOLICITED = 2 };

/* An asynchronous event of an object. It is part of the object, so that no allocation can fail.
 * Guarded by dev->events_lock. */
struct soft_event {
	TAILQ_ENTRY(soft_event) link;
	struct ibv_async_event event;
	unsigned times;			/* upcalls yet to be made; in dev->events unless 0 */
};

struct soft_cq {
	struct ibv_cq cq;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	struct ibv_wc *ring;
	uint32_t mask, head, tail;	/* may be read without the lock */
	uint8_t armed;			/* SOFT_ARMED*; may be read without the lock */
	bool overrun;			/* the overrun was reported */
	unsigned refs;			/* atomic: queues that complete here */

	unsigned events;		/* not consumed yet; guarded by channel->lock */
	TAILQ_ENTRY(soft_cq) ready_link;

	struct soft_event overran;
};

/* --- queues ------------------------------------------------------------------ */

struct soft_rwqe {
	uint64_t wr_id;
	uint64_t length;
	uint32_t sges;
	struct ibv_sge sge[];
};

struct soft_rq {			/* receives, of a QP or an SRQ */
	char *ring;
	uint32_t stride, size, max_sge;
	uint32_t head, tail;
};

struct soft_srq {
	struct ibv_srq srq;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	struct soft_rq rq;
	uint32_t limit;			/* armed when not 0 */
	TAILQ_HEAD(, soft_qp) waiting;	/* QPs with a message and no receive */
	unsigned refs;

	struct soft_event below_limit;
};

enum soft_swqe_state { SOFT_POSTED, SOFT_SENT, SOFT_DONE };

struct soft_swqe {
	uint64_t wr_id;
	uint64_t length;		/* of the message, as posted */
	uint64_t remote;
	uint32_t rkey;
	uint32_t word;			/* immediate, or STag to invalidate */
	uint32_t seq;			/* its number among acknowledged messages; reads: MSN */
	uint16_t sges;
	uint8_t opcode, flags;		/* IBV_WR_*, IBV_SEND_* */
	uint8_t state, status;
	bool bind_type1;
	union {
		struct {
			uint64_t compare_add, swap;
		} atomic;
		struct {
			struct soft_mw *mw;
			struct soft_mr *mr;
			uint64_t addr, length;
			int access;
		} bind;
		struct {		/* reads, writes and sends */
			uint8_t proto;	/* enum shm_proto */
			bool try;	/* it was selected in order to measure it */
			bool counts;	/* it belongs to a struct proto_series */
		} large;
	};
	struct ibv_sge sge[];		/* or inline data */
};

struct soft_qp {
	struct ibv_qp qp;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	enum ibv_qp_state state;	/* INIT, RTS, ERR */
	bool sig_all;
	struct dapl_conn *conn;		/* changes only with the progress lock held, too */

	char *sq;
	uint32_t sq_stride, sq_size;
	uint32_t sq_head, sq_tail;	/* counters; [head, tail) are not completed */
	uint32_t read_next;		/* no outstanding read or atomic before it */
	uint32_t max_send_sge, max_inline;

	struct soft_rq rq;		/* without SRQ */
	struct soft_srq *srq;
	bool taken_valid;
	struct soft_rwqe *taken;	/* the receive that a message is placed into */
	bool srq_waiting;		/* guarded by srq->lock */
	TAILQ_ENTRY(soft_qp) srq_link;	/* guarded by srq->lock */

	/* UD */
	uint32_t qkey;

	LIST_ENTRY(soft_qp) link;	/* dev->qps */
	LIST_ENTRY(soft_qp) number_link;	/* dev->by_number */

	struct soft_event last_receive;
};

/* True: a request with these flags generates a completion when it succeeds. */
static inline bool soft_is_signalled(const struct soft_qp *qp, unsigned send_flags)
{
	return qp->sig_all || (send_flags & IBV_SEND_SIGNALED);
}

static inline struct soft_swqe *soft_swqe(const struct soft_qp *qp, uint32_t index)
{
	return (struct soft_swqe *)(qp->sq + (size_t)(index & (qp->sq_size - 1)) *
				    qp->sq_stride);
}

static inline struct soft_rwqe *soft_rwqe(const struct soft_rq *rq, uint32_t index)
{
	return (struct soft_rwqe *)(rq->ring + (size_t)(index & (rq->size - 1)) * rq->stride);
}

struct soft_ah {
	struct ibv_ah ah;
	struct sockaddr_storage address;	/* of the peer's UDP socket */
};

/* --- connections ------------------------------------------------------------- */

enum soft_conn_state {
	SOFT_NEW,		/* neither listed nor connecting */
	SOFT_CONNECTING,	/* active: TCP is not up yet */
	SOFT_WAIT_REPLY,	/* active: Request sent */
	SOFT_ATTACHING,		/* active: has the Reply, attaches shared memory */
	SOFT_WAIT_REQUEST,	/* passive: TCP is up */
	SOFT_REQUESTED,		/* passive: core has the Request and has not answered */
	SOFT_WAIT_FIRST,	/* passive: Reply sent; first FPDU of a peer_is_dapl is due */
	SOFT_OPEN,		/* both streams carry FPDUs */
	SOFT_CLOSING,		/* this side's last frame is queued or sent */
	SOFT_CLOSED,		/* the socket is closed */
};

/* An unexpected message: it came before its receive. */
struct soft_unexpected {
	TAILQ_ENTRY(soft_unexpected) link;
	uint8_t op;
	bool complete;
	uint32_t word, length, capacity;
	uint32_t write_length;		/* of the write that the immediate belongs to */
	uint32_t writes_after;		/* writes that completed after it */
	uint8_t *data;
};

/* A read or an atomic of the peer that this side answers. */
struct soft_answer {
	bool atomic;
	uint32_t stag, length;		/* source */
	uint64_t from;
	uint32_t sink_stag;		/* atomic: request id */
	uint64_t sink_to;		/* atomic: the value before */
	uint32_t msn;
};

/* The position of the sender. Framing works on a copy, which becomes valid when the socket took the
 * bytes. All are counters that wrap. */
struct soft_tx_cursor {
	uint64_t charged;		/* bytes of the credit window used, if peer_is_dapl */
	uint64_t acked_consumed;
	uint32_t wqe;			/* the request to frame next */
	uint32_t offset;		/* bytes of it framed */
	uint32_t msn_send, msn_read, msn_atomic, msn_dapl;
	uint32_t seq;			/* messages framed that the peer acknowledges */
	uint32_t reads;			/* reads and atomics framed */
	uint32_t answer, answered;	/* the answer to frame next, bytes of it framed */
	uint32_t acked_seq;
	bool second;			/* write with immediate: the write is framed */
	bool first_sent, terminate_sent, close_sent;
};

struct soft_tx {
	struct soft_tx_cursor cursor;
	uint8_t *rest;			/* a copy of what the socket did not take */
	size_t rest_length, rest_sent;
	bool blocked;			/* waits for EPOLLOUT */
	bool open;			/* FPDUs may be sent */
	bool first;			/* active: a zero-length write comes first (peer_is_dapl) */
	bool ack_now;
	bool close_notice, terminate;	/* to be sent, and nothing after it */
	bool shut;			/* FIN sent, or nothing can be sent any more */
	bool busy, again;		/* soft_tcp_send() runs; it was called meanwhile */
	uint8_t term[WIRE_FPDU_LENGTH + WIRE_UNTAGGED + 64];	/* Terminate's payload */
	uint8_t term_length;
};

enum soft_sink { SOFT_SINK_NONE, SOFT_SINK_RECV, SOFT_SINK_UNEXPECTED, SOFT_SINK_WRITE,
	SOFT_SINK_READ };

enum soft_rx_phase { SOFT_RX_HEAD, SOFT_RX_PAYLOAD, SOFT_RX_TRAILER, SOFT_RX_WHOLE };

struct soft_rx {
	enum soft_rx_phase phase;
	uint32_t part_length, part_need;
	uint8_t part[WIRE_FPDU_LENGTH + WIRE_UNTAGGED + 64];
	uint8_t *whole;			/* CRC: a whole FPDU is collected here */
	uint32_t whole_length, whole_size;
	struct wire_segment seg;
	uint32_t payload_left, payload_done;	/* of the segment */
	uint32_t trailer_left;
	bool bulk;			/* recent messages were large */

	enum soft_sink sink;
	uint8_t tail[8];		/* last bytes of a write, placed last */
	uint32_t tail_length;		/* of this segment; 0: none */
	char *tail_at;			/* where they go; valid while they are placed */

	uint32_t msn_send, msn_read, msn_atomic, msn_dapl;	/* expected next */
	bool send_open;			/* a Send's last segment has not come */
	uint8_t send_op;
	uint32_t send_offset, send_word;
	struct soft_unexpected *unexpected;		/* where it is collected; NULL: in qp->taken */
	bool write_open;
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t write_length;		/* of the last write, for its immediate */
	uint32_t read_wqe, read_offset;	/* response under way */
	bool read_open;
	bool close_notice;
	bool paused;			/* backpressure: waits for EPOLLRDHUP instead of EPOLLIN */
};

/* --- shared memory ----------------------------------------------------------- */

struct attach_offer;	/* offers.c */

/* The rings of a connection whose data does not go over TCP. */
struct shm_conn {
	struct dapl_conn *conn;
	struct ring_rx rx;		/* changes with both locks held; each suffices to read it */
	bool rx_error;			/* a malformed message is at the head; locks as for rx */
	bool rx_stalled;			/* the message at the head waits for its payload;
						 * locks as for rx */
	uint32_t seen;			/* count of the last ring_ack read; progress lock */
	bool ack_owed;			/* an acknowledgement is to be sent or read; progress lock */
	struct ring_tx tx;		/* guarded as conn->tx, and so are the fields below */
	bool ack_waits;			/* the acknowledgement in the last message is not read yet */
	uint32_t ack_delivered, ack_consumed;
	struct shm_segment *segment;
	struct shm_process *peer, *own;	/* of the segment */
	uint8_t *fallback_out;		/* of the segment */
	const uint8_t *fallback_in;
	const struct ring_grant *grant;	/* what the peer grants */
	uint32_t pending_nr;			/* number in the pending bitmap, and 1; 0: none.
						 * Progress lock */
	bool pending_asked;			/* the peer was asked to mark this ring. Progress
						 * lock */
	uint32_t hits;			/* messages found since the ring came to the front */
	bool granted;			/* the peer may access the memory of this process */
	bool revoke_timed_out;			/* the peer was within a write for too long */
	struct proto_series reads, writes;	/* large requests that are measured */
	enum shm_proto proto;		/* of the last large write */
	bool probing;			/* the last large write was to measure its protocol */
	uint64_t looked_ns;		/* when the poll count of the peer was last read */
	uint32_t polls;			/* the poll count read then */
	bool polls_often;		/* the peer polled often before that */
	struct shm_desched desched;
	uint32_t direct;		/* accesses made by CMA */
	uint32_t mapped;		/* accesses made to mapped regions */
	struct rmem_view *views;	/* mapped regions of the peer; NULL: none */
	uint32_t unmapped;		/* the last STag that could not be mapped */
	/* Payloads sent by rendezvous, which the peer copies, by slot. */
	struct rndv_slot {
		uint32_t slot, wqe, length;
		uint64_t offset;	/* in the request */
	} *rndv_slots;			/* NULL: none yet */
	bool fallback_request;			/* the peer cannot copy: no more rendezvous */
	uint32_t fallback_done;			/* fallbacks given */
	/* Payloads of the peer sent by rendezvous, which this side copies. */
	uint32_t fetched;
	uint32_t asked;			/* fallbacks requested */
	struct ring_message waiting;	/* the message at the head while rx_stalled is set */
	bool lost;			/* a payload was withdrawn: only the end of the stream may
					 * follow */
	struct iovec *window;		/* mapped window of the peer (revoke.c) */
	uint64_t window_at;		/* offset of the window; 0: it has no iovec */
	char *bounce;			/* CMA_SHORT_MAX bytes, which the iovec names; NULL: none
					 * yet */
	TAILQ_ENTRY(shm_conn) link;	/* dev->shm_conns */
};

/* Upcalls that the service thread owes to core, in this order. */
enum {
	SOFT_UP_ESTABLISHED = 1, SOFT_UP_FAILED = 2, SOFT_UP_CLOSED = 4, SOFT_UP_BROKEN = 8,
	SOFT_UP_RELEASED = 16, SOFT_UP_DEAD = 32, SOFT_UP_CLOSE_SENT = 64,
};

struct dapl_conn {
	struct dapl_device *dev;
	/* guarded by the progress lock */
	enum soft_conn_state state;
	int fd;
	bool in_cm;			/* the cm epoll set has fd */
	bool in_data;			/* data_epoll has fd, or the ring is polled */
	uint32_t interest;		/* EPOLL* that data_epoll reports */
	struct soft_qp *qp;
	void *owner;
	struct soft_port *port;		/* WAIT_REQUEST: that accepted it */
	struct wire_mpa mpa;		/* the peer's Request or Reply */
	bool passive, ud;
	bool peer_is_dapl;			/* the peer is of this implementation */
	bool swaps;			/* the peer is siw (Terminate's bit order) */
	bool crc;
	bool released;
	uint64_t deadline_ns;		/* 0: none */
	bool wakes_late;		/* SO_RCVLOWAT of its socket is more than 1 */
	bool unwatched;			/* no epoll set took its socket: its input is not noticed */
	uint64_t silent_ns;		/* since when an answer of the peer's TCP is due; 0: none is */
	struct sockaddr_storage local, remote;
	uint8_t reads_out, reads_in;
	uint8_t rev;			/* MPA revision in use */
	bool fell_back;			/* tried with revision 1 */
	enum dapl_qos qos;
	uint8_t *frame;			/* MPA frame: being received, or the Request to be sent */
	uint32_t frame_length, frame_need;
	uint8_t *pdata;			/* private data, until it is sent */
	uint32_t pdata_length;
	uint32_t mulpdu;
	struct attach_offer *offer;	/* passive: memory is offered until the first FPDU */
	int attach_fd;			/* ATTACHING: socket that the memory comes by, else -1 */
	uint8_t attach_token[16];	/* the acceptor's offer */
	uint64_t attach_end_ns;		/* ATTACHING: no retry after this */
	struct shm_conn *shm;		/* data goes through its rings, not over TCP; constant when
					 * open */
	struct dapl_conn *acceptor;	/* set if the acceptor is of this device: it is given the
					 * segment directly, not by a frame */

	/* upcalls owed, which the service thread makes */
	uint32_t up;			/* atomic: SOFT_UP_* */
	bool free_in_task;			/* the next run of the task frees it */
	struct dapl_conn_cause cause;	/* first cause of its end, without addresses; guarded as the
					 * stream */
	bool caused;			/* cause is set */
	int io_error;			/* errno of the socket, until the end is noticed; 0: none */
	enum dapl_conn_failure failure;
	const uint8_t *up_pdata;	/* points into frame */
	uint32_t up_pdata_length;
	struct dapl_ud_peer peer;
	struct dapl_task task;
	LIST_ENTRY(dapl_conn) link;	/* dev->conns */
	TAILQ_ENTRY(dapl_conn) half_open_link;	/* dev->half_open */

	/* the stream */
	struct soft_tx tx;
	struct soft_rx rx;
	uint32_t delivered;		/* messages delivered, to be acknowledged */
	uint64_t consumed;		/* bytes of the window consumed, to be acknowledged */
	uint64_t peer_consumed;		/* acknowledged by the peer */
	uint32_t peer_delivered;
	uint32_t peer_ready;		/* reported by the peer: Sends up to this one have a receive */
	uint32_t reads_done;		/* reads and atomics of this side that were answered */
	uint32_t sink_key;		/* makes the STags of read sinks */
	uint32_t arrived;		/* messages received that are to be acknowledged */
	struct soft_answer *answers;	/* ring of reads_in */
	uint32_t answer_tail;		/* counter; head is tx.cursor.answer */
	TAILQ_HEAD(soft_unexpected_head, soft_unexpected) unexpected;
	uint32_t unexpected_bytes;
	bool over;			/* atomic: the end was reported to core */
	bool ack_listed;
	TAILQ_ENTRY(dapl_conn) ack_link;	/* dev->acks */
};

/* A listening socket. RC and UD listeners of one port share it. */
struct soft_port {
	struct dapl_device *dev;
	int fd;
	uint16_t number;
	struct sockaddr_storage local;	/* of the connections it accepts; AF_UNSPEC: ask the socket */
	bool paused;			/* out of descriptors: not in the epoll set */
	bool shortage_reported;		/* since the last connection was accepted */
	struct dapl_listener *rc, *ud;
	struct dapl_task task;		/* frees it */
	LIST_ENTRY(soft_port) link;
};

struct dapl_listener {
	struct soft_port *port;
	void *sp;
	bool ud;
};

/* --- device ------------------------------------------------------------------ */

enum { SOFT_NUMBERS = 1024 };	/* buckets of the QP number table */

struct dapl_device {
	struct ibv_context verbs;	/* first: ibv_context * is dapl_device * */
	struct ibv_device identity;
	void *ia;
	struct sockaddr_storage address;
	char netdev[IF_NAMESIZE];
	unsigned mtu;
	bool want_crc, want_shm, want_direct, want_map;
	bool guards;			/* memory is checked again before each access of a peer */
	struct shm_proto_table reads, writes;	/* protocol selection of large requests; sends count
						 * as writes */
	bool dead;			/* a forked child's copy */
	LIST_ENTRY(dapl_device) link;

	struct soft_stags *stags;	/* read without this lock by holders of a QP lock */
	pthread_mutex_t stags_lock;	/* writers */
	unsigned objects;		/* atomic: PDs, channels, CQs */

	pthread_mutex_t qps_lock;
	LIST_HEAD(, soft_qp) qps;
	LIST_HEAD(soft_number_head, soft_qp) by_number[SOFT_NUMBERS];

	/* progress */
	struct dapl_spin progress_lock;
	unsigned progress_waiters;	/* atomic: threads that wait for the lock */
	int data_epoll, service_epoll, cm_epoll;
	struct dapl_watch data_watch, cm_watch;
	struct dapl_timer owner_timer, sweep_timer;
	uint32_t polls, polls_seen;	/* atomic */
	bool polled;			/* atomic: polling threads drive progress, not the service
					 * thread */
	long preemptions;		/* involuntary context switches seen; progress lock */
	uint32_t service_hold_ms;		/* the service thread keeps progress for so long;
						 * progress lock */
	uint64_t hold_until_ns;		/* until then it hands over to no polling thread */
	struct dapl_spin owner_lock;	/* guards polled, led_by_waiter, watched_by_service,
					 * suppressed and the service epoll set */
	bool led_by_waiter;			/* a blocked thread watches data_epoll and drives
						 * progress; that thread clears it */
	bool watched_by_service;			/* the service thread watches data_epoll */
	uint64_t sweep_ns;		/* when sweep_timer is due; 0: it is not. Progress lock */
	unsigned turns;			/* polls until one looks at all sockets */
	unsigned streams;		/* sockets in data_epoll, and rings */
	unsigned half_open_count;	/* half_open.c; in `half_open` */
	unsigned half_open_evicted;	/* half_open.c */
	uint64_t half_open_said_ns;	/* when the last line was printed; 0: never */
	TAILQ_HEAD(, dapl_conn) half_open;	/* WAIT_REQUEST, the oldest first */
	struct dapl_conn *busy_conn;		/* had input last */
	unsigned busy_run;		/* polls in a row in which it had input */
	struct dapl_conn *suppressed;	/* busy_conn, if its wake-ups are suppressed; or NULL.
					 * owner_lock; may be read without it */
	TAILQ_HEAD(, shm_conn) shm_conns;	/* connections with rings; when there are many,
						 * those that had messages last are in front */
	struct shm_conn *next_shm;	/* next in turn when there are many; NULL: the first */
	unsigned shm_count;
	struct shm_conn **pending_conns;	/* by number; NULL: there were never many. Progress
						 * lock */
	unsigned pending_next;		/* word of the bitmap to look at first */
	unsigned numbered, unasked;	/* rings with a number; those of them whose peers are not
					 * asked to mark */
	uint32_t idle_polls;		/* empty polls in a row */
	struct shm_process *process;	/* atomic: NULL until it is needed, then constant */
	bool uses_server;		/* guarded by server_lock (attach_server.c) */
	TAILQ_HEAD(, dapl_conn) acks;	/* connections that owe an acknowledgement */
	uint8_t *scratch;
	LIST_HEAD(, dapl_conn) conns;
	LIST_HEAD(, soft_port) ports;

	/* async events */
	pthread_mutex_t events_lock;
	pthread_cond_t events_told;
	TAILQ_HEAD(, soft_event) events;
	const void *event_running;		/* the object that an upcall runs for */
	struct dapl_task event_task;

	int udp;			/* -1 until the first UD QP */
	uint16_t udp_port;
};

static inline struct dapl_device *soft_device(struct ibv_context *context)
{
	return (struct dapl_device *)context;
}

#define soft_trace(level, kind, object, ...) \
	trace(level, (level) == TRC_LVL_ERROR ? TRC_DAPL_ERROR : TRC_DAPL_EVENT, kind, object, \
	      NULL, __VA_ARGS__)

/* --- async_event.c ----------------------------------------------------------- */
/* Queues the asynchronous event of an object. All events of one object have the same type. */
void soft_event_post(struct dapl_device *dev, struct soft_event *event, enum ibv_event_type type,
		     void *object);
/* Discards the event and waits for an upcall about the object that is running. */
void soft_event_forget(struct dapl_device *dev, struct soft_event *event, const void *object);

/* --- mem.c -------------------------------------------------------------------- */
int soft_mem_init(struct dapl_device *dev);
void soft_mem_fini(struct dapl_device *dev);
/* The device has an MR directory from now on: publishes its regions there. Called with the progress lock
 * held. */
void soft_mem_publish_all(struct dapl_device *dev, struct shm_process *process);
int soft_pd_alloc(struct dapl_device *dev, struct ibv_pd **pd);
int soft_pd_dealloc(struct ibv_pd *pd);
int soft_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
		struct ibv_mr **mr);
int soft_mr_dereg(struct ibv_mr *mr);
int soft_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int soft_mw_dealloc(struct ibv_mw *mw);
struct ibv_mw *soft_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
/* The functions from here on are called with the lock of a QP held. The memory that they find stays
 * registered until that lock is released. */
/* Checks local memory. Sets *at to its address. */
enum soft_check soft_mem_local(const struct dapl_device *dev, const struct ibv_pd *pd,
			       const struct ibv_sge *sge, int access, char **at);
/* Checks memory that the peer of `qp` names. Sets *at to its address, and *held to the window, locked, or to
 * NULL for a region. The caller passes *held to soft_mem_done(). */
enum soft_check soft_mem_remote(struct soft_qp *qp, uint32_t stag, uint64_t addr,
				uint64_t length, int access, char **at,
				struct soft_region **held);
static inline void soft_mem_done(struct soft_region *held)
{
	if (held)
		dapl_spin_unlock(&held->lock);
}
/* Returns false if the guard finds that the memory is unmapped or cannot be written. */
bool soft_mem_guard(const struct dapl_device *dev, uint32_t stag, const char *at, uint64_t length);
/* Finds bytes [offset, offset + length) of a segment list, as at most `max` iovecs. Returns the number of
 * iovecs, or -1 if the memory is not registered for this access. */
int soft_mem_slice(const struct dapl_device *dev, const struct ibv_pd *pd,
		   const struct ibv_sge *sge, uint32_t sges, uint64_t offset, uint32_t length,
		   int access, struct iovec *iov, int max);
bool soft_mem_check_all(const struct dapl_device *dev, const struct ibv_pd *pd,
			const struct ibv_sge *sge, uint32_t sges, int access);
/* Execute a bind or a local invalidate. Return the completion status. */
enum ibv_wc_status soft_mw_bind(struct soft_qp *qp, const struct soft_swqe *wqe);
enum ibv_wc_status soft_mw_invalidate(struct soft_qp *qp, uint32_t stag);
/* The QP is destroyed: invalidates the windows of type 2 that are bound to it. */
void soft_mem_forget_qp(struct soft_qp *qp);

/* --- cq.c --------------------------------------------------------------------- */
int soft_channel_create(struct dapl_device *dev, struct ibv_comp_channel **channel);
int soft_channel_destroy(struct ibv_comp_channel *channel);
int soft_channel_get(struct ibv_comp_channel *channel, struct ibv_cq **cq);
int soft_cq_create(struct dapl_device *dev, int cqe, void *context,
		   struct ibv_comp_channel *channel, struct ibv_cq **cq);
int soft_cq_resize(struct ibv_cq *cq, int cqe);
int soft_cq_destroy(struct ibv_cq *cq);
int soft_cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int soft_cq_arm(struct ibv_cq *cq, int solicited_only);
void soft_cq_add(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited);

/* The polling state of a thread. While a thread polls a CQ, completions of that CQ go straight to the
 * thread's array: two locks and a copy less for each message. */
struct soft_poller {
	bool should_yield;			/* many empty polls in a row */
	unsigned refused;		/* polls in a row that could not drive progress */
	const struct soft_cq *cq;	/* NULL: does not poll */
	struct ibv_wc *wc;
	int n, room;
};
extern __thread struct soft_poller soft_poller __attribute__((tls_model("initial-exec")));

/* Reserves the place of the next completion in the polling thread's array. Returns NULL if the completion is
 * to be added by soft_cq_add(). A queue's completions are made in order and under its lock: so one that
 * went into the ring before is seen there, and the next is added behind it. */
static inline struct ibv_wc *soft_cq_place(const struct soft_cq *cq)
{
	if (soft_poller.cq != cq || soft_poller.n == soft_poller.room ||
	    __atomic_load_n(&cq->head, __ATOMIC_RELAXED) !=
	    __atomic_load_n(&cq->tail, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&cq->armed, __ATOMIC_RELAXED))
		return NULL;
	return &soft_poller.wc[soft_poller.n++];
}
void soft_cq_purge(struct soft_cq *cq, uint32_t qp_num);

/* --- qp.c --------------------------------------------------------------------- */
int soft_qp_create(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		   struct ibv_qp **qp);
int soft_qp_reset(struct dapl_device *dev, struct ibv_qp *qp);
int soft_qp_error(struct ibv_qp *qp);
int soft_qp_map_remote(struct ibv_qp *qp, uint32_t rkey, uint64_t remote, uint64_t length,
		       struct dapl_mapping *mapping);
int soft_qp_destroy(struct ibv_qp *qp);
int soft_qp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int soft_qp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int soft_qp_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
/* The functions from here on are called with qp->lock held. */
/* Takes a receive for a message into qp->taken. Returns false if there is none; after the next post to an
 * SRQ soft_responder_receives() is called. */
bool soft_qp_take_receive(struct soft_qp *qp);
/* Completes the taken receive. */
void soft_qp_received(struct soft_qp *qp, enum ibv_wc_status status, const struct ibv_wc *is,
		      bool solicited);
/* Completes the next receive of the QP's own queue, which holds a Send of `length` bytes. */
void soft_qp_received_next(struct soft_qp *qp, uint32_t length, bool solicited);
/* Completes a write of one segment that was executed while it was posted. It has no place in the send
 * queue, which is empty. */
void soft_qp_executed(struct soft_qp *qp, const struct ibv_send_wr *wr);
/* Completes, in order, the finished requests at the head of the send queue. */
void soft_qp_complete_sends(struct soft_qp *qp);
/* Moves the QP to ERR. Request `culprit` (a counter of the send queue) completes with `status`, all others
 * are flushed. With status SUCCESS all are flushed. */
void soft_qp_flush(struct soft_qp *qp, uint32_t culprit, enum ibv_wc_status status);
struct soft_qp *soft_qp_by_number(struct dapl_device *dev, uint32_t number);	/* qps_lock */

/* --- cm/conn.c -------------------------------------------------------------------------------- */
int soft_cm_open(struct dapl_device *dev);
void soft_cm_close(struct dapl_device *dev);
int soft_cm_listen(struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
		   bool ud, int backlog, void *sp, struct dapl_listener **listener);
void soft_cm_unlisten(struct dapl_listener *listener);
int soft_cm_connect(struct dapl_device *dev, const struct dapl_conn_params *params,
		    struct dapl_conn **conn);
int soft_cm_accept(struct dapl_conn *conn, const struct dapl_conn_params *params);
int soft_cm_reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len);
int soft_cm_disconnect(struct dapl_conn *conn);
void soft_cm_release(struct dapl_conn *conn);
/* Detaches the QP from its connection, if any. Progress lock held. */
void soft_cm_detach(struct soft_qp *qp);
/* The stream of the peer has ended; the socket is closed. Progress lock held. */
void soft_cm_stream_over(struct dapl_conn *conn);
/* Queues an upcall (SOFT_UP_*), which the service thread makes. Any locks may be held. */
void soft_cm_tell(struct dapl_conn *conn, uint32_t what);
/* Records why the connection fails or breaks; the first cause stays. Progress lock or qp->lock
 * held. */
void soft_cm_caused(struct dapl_conn *conn, int err, enum dapl_code_kind kind, unsigned code,
		    const char *text);
/* Records the error of the socket as the cause. */
void soft_cm_socket_error(struct dapl_conn *conn);
void soft_cm_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause);

/* --- ud.c --------------------------------------------------------------------- */
int soft_ud_open(struct dapl_device *dev);	/* for the first UD QP */
void soft_ud_close(struct dapl_device *dev);
int soft_ud_send(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status *status);
void soft_ud_receive(struct dapl_device *dev);	/* progress lock held */
int soft_ah_create(struct ibv_pd *pd, const struct sockaddr *address, uint16_t port,
		   struct ibv_ah **ah);
int soft_ah_destroy(struct ibv_ah *ah);

#endif
