/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* soft.h - the objects of the software RNIC and which lock guards which field. Shared by
 * the files of this directory only; core sees device.h.
 *
 * Lock order, outermost first:
 *   engine -> qp->lock -> region->lock (windows) -> srq->lock -> cq->lock -> channel->lock
 *   engine -> shm.c's lock
 *   engine -> stags_lock -> qp->lock (quiescing)
 *   stags_lock, qp->lock -> station->reach_lock
 *   engine, qp->lock -> handover
 * The engine lock guards every connection's place in the epoll sets, its state, and
 * conn->qp. The stream of a connection (conn->tx, conn->rx) is guarded by the lock of the
 * QP it's attached to, and by the engine lock once it has none. Upcalls are made by the
 * service thread with no lock held. doc/design/soft-progress.md argues why nothing
 * sleeps forever. */
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
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/core/lock.h"
#include "dapl/core/service.h"
#include "dapl/core/settings.h"
#include "dapl/soft/calls.h"
#include "dapl/soft/choice.h"
#include "dapl/soft/lag.h"
#include "dapl/soft/direct.h"
#include "dapl/soft/gate.h"
#include "dapl/soft/mapped.h"
#include "dapl/soft/ring.h"
#include "dapl/soft/wire.h"

enum {	/* bits of DAPL_DBG_TYPE that we use */
	SOFT_LOG_ERR = 0x1, SOFT_LOG_WARN = 0x2,
};

enum {
	SOFT_MAX_SGE = 32,
	SOFT_MAX_INLINE = 1024,
	SOFT_MAX_WR = 65536,
	SOFT_MAX_CQE = 1 << 22,
	SOFT_MAX_READS = 255,		/* IRD, ORD */
	SOFT_UD_MTU = 4096,
	SOFT_GRH = 40,
	SOFT_WINDOW = 1 << 20,		/* bytes of Sends that wait for a receive, a QP */
	SOFT_CHARGE = 64,		/* what a Send costs of the window beyond its bytes */
	SOFT_SCRATCH = 64 << 10,
	SOFT_HANDSHAKES_MAX = 4096,	/* accepted sockets without a whole Request; then the
					 * oldest goes */
	SOFT_HANDSHAKE_S = 10,		/* time for a frame, once it may be expected */
	SOFT_LINGER_S = 5,
	SOFT_FIRST_MS = 100,		/* a foreign initiator's silence that ends ours */
	SOFT_PATIENCE_MS = 60000,	/* with a peer's TCP that should answer and does not */
	SOFT_ATTACH_S = 2,		/* time for another process to share its memory */
};
#define SOFT_MAX_MESSAGE 0x80000000u

/* What a region lets peers do. */
enum {
	SOFT_REMOTE_ACCESS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC,
};

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

struct soft_qp;
struct soft_region;

/* --- memory ------------------------------------------------------------------ */

struct soft_pd {
	struct ibv_pd pd;
	uint64_t id;			/* never 0, never used again */
	unsigned refs;			/* atomic: objects made in it */
};

enum soft_region_kind { SOFT_MR, SOFT_WINDOW_1, SOFT_WINDOW_2 };

/* What an STag names. Of an MR constant; of a window guarded by lock. */
struct soft_region {
	enum soft_region_kind kind;
	struct soft_pd *pd;
	struct dapl_spin lock;		/* windows: held while an access goes on */
	bool valid;
	uint32_t stag;
	uint64_t first;			/* address of the first byte as peers count it */
	uint64_t length;
	char *base;			/* where it is */
	int file;			/* MR: which it's a mapping of, that peers map, too; or -1 */
	uint64_t offset;		/* in the file */
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

/* What may have to be told of an object, asynchronously: part of it, so that there is always
 * room. Guarded by dev->events_lock. */
struct soft_event {
	TAILQ_ENTRY(soft_event) link;
	struct ibv_async_event event;
	unsigned times;			/* yet to be told; in dev->events unless 0 */
};

struct soft_cq {
	struct ibv_cq cq;
	struct dapl_device *dev;
	struct dapl_spin lock;		/* guards what follows */
	struct ibv_wc *ring;
	uint32_t mask, head, tail;	/* head and tail are peeked at without the lock, */
	uint8_t armed;			/* ... and so is this: SOFT_ARMED* */
	bool overrun;			/* told once */
	unsigned refs;			/* atomic: queues that complete here */

	unsigned events;		/* not taken yet; guarded by channel->lock */
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
			uint8_t way;	/* enum soft_way */
			bool try;	/* ... which is chosen to measure it */
			bool counts;	/* it belongs to its kind's series */
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
	struct dapl_conn *conn;		/* changes under the engine lock, too */

	char *sq;
	uint32_t sq_stride, sq_size;
	uint32_t sq_head, sq_tail;	/* counters; [head, tail) are not completed */
	uint32_t read_next;		/* no outstanding read or atomic before it */
	uint32_t max_send_sge, max_inline;

	struct soft_rq rq;		/* without SRQ */
	struct soft_srq *srq;
	bool taken_valid;
	struct soft_rwqe *taken;	/* the receive that a message is going into */
	bool srq_waiting;		/* guarded by srq->lock */
	TAILQ_ENTRY(soft_qp) srq_link;	/* guarded by srq->lock */

	/* UD */
	uint32_t qkey;

	LIST_ENTRY(soft_qp) link;	/* dev->qps */
	LIST_ENTRY(soft_qp) number_link;	/* dev->by_number */

	struct soft_event last_receive;
};

/* Does a request with these flags tell of its success? */
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
	SOFT_CONNECTING,	/* active: TCP is not up yet */
	SOFT_WAIT_REPLY,	/* active: Request sent */
	SOFT_ATTACHING,		/* active: has the Reply, asks for shared memory */
	SOFT_WAIT_REQUEST,	/* passive: TCP is up */
	SOFT_REQUESTED,		/* passive: core has it and has not answered */
	SOFT_WAIT_FIRST,	/* passive: Reply sent; first FPDU of one of ours is due */
	SOFT_OPEN,		/* both streams carry FPDUs */
	SOFT_CLOSING,		/* our last frame is queued or sent */
	SOFT_CLOSED,		/* no socket any more */
};

/* A message that came before its receive. */
struct soft_late {
	TAILQ_ENTRY(soft_late) link;
	uint8_t op;
	bool complete;
	uint32_t word, length, capacity;
	uint32_t write_length;		/* immediate of a write: the write's */
	uint32_t writes_after;		/* writes that completed behind it */
	uint8_t *data;
};

/* A read or an atomic of the peer that we answer. */
struct soft_answer {
	bool atomic;
	uint32_t stag, length;		/* source */
	uint64_t from;
	uint32_t sink_stag;		/* atomic: request id */
	uint64_t sink_to;		/* atomic: the value before */
	uint32_t msn;
};

/* Where sending is. Framing works on a copy, and the copy counts once the socket took
 * the bytes. All are counters that wrap. */
struct soft_tx_cursor {
	uint64_t charged;		/* of the window (ours) */
	uint64_t told_consumed;
	uint32_t wqe;			/* the request to frame next */
	uint32_t offset;		/* bytes of it framed */
	uint32_t msn_send, msn_read, msn_atomic, msn_ours;
	uint32_t seq;			/* messages framed that are acknowledged */
	uint32_t reads;			/* reads and atomics framed */
	uint32_t answer, answered;	/* the answer to frame next, bytes of it framed */
	uint32_t told_seq;
	bool second;			/* write with immediate: the write is framed */
	bool first_sent, terminate_sent, goodbye_sent;
};

struct soft_tx {
	struct soft_tx_cursor cursor;
	uint8_t *rest;			/* a copy of what the socket did not take */
	size_t rest_length, rest_sent;
	bool blocked;			/* EPOLLOUT is asked for */
	bool open;			/* FPDUs may be sent */
	bool first;			/* ours, active: a zero-length write comes first */
	bool ack_now;
	bool goodbye, terminate;	/* to be sent, then nothing else */
	bool shut;			/* FIN sent, or nothing can be sent any more */
	bool busy, again;		/* soft_tcp_send is under way; was called meanwhile */
	uint8_t term[WIRE_FPDU_LENGTH + WIRE_UNTAGGED + 64];	/* Terminate's payload */
	uint8_t term_length;
};

enum soft_sink { SOFT_SINK_NONE, SOFT_SINK_RECV, SOFT_SINK_LATE, SOFT_SINK_WRITE,
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
	bool bulk;			/* messages are large of late */

	enum soft_sink sink;
	uint8_t tail[8];		/* last bytes of a write, placed last */
	uint32_t tail_length;		/* of this segment; 0: none */
	char *tail_at;			/* where they go; valid while they are placed */

	uint32_t msn_send, msn_read, msn_atomic, msn_ours;	/* expected next */
	bool send_open;			/* a Send's last segment has not come */
	uint8_t send_op;
	uint32_t send_offset, send_word;
	struct soft_late *late;		/* where it's collected, NULL: in qp->taken */
	bool write_open;
	uint32_t write_stag;
	uint64_t write_to;
	uint32_t write_length;		/* of the last write, for its immediate */
	uint32_t read_wqe, read_offset;	/* response under way */
	bool read_open;
	bool goodbye;
	bool paused;			/* no EPOLLIN: backpressure */
};

/* --- shared memory ----------------------------------------------------------- */

/* Where a device is woken. Our own, or one of another process. */
struct soft_station {
	uint64_t id;
	unsigned refs;			/* shm.c's lock */
	int bell;			/* eventfd */
	int file, calls_file;		/* of the board and the calls, our own: to be passed on */
	struct soft_board *board;
	struct soft_calls *calls;
	uint32_t *sleeps;		/* the board's */
	uint32_t rung;			/* atomic: the value of sleeps that it was rung for */

	/* direct access; a peer's: until it is reached nothing of it is open */
	struct dapl_spin reach_lock;	/* guards what follows, and our own gate */
	enum { SOFT_REACH_UNTRIED, SOFT_REACH_YES, SOFT_REACH_NO } reach;	/* peeked at */
	int gate_file;			/* constant once it is reached, or our own; else -1 */
	int process;			/* pidfd */
	pid_t pid;			/* constant once it is reached */
	uint64_t seen_ns;		/* when it was alive */

	LIST_ENTRY(soft_station) link;
};

struct soft_segment {
	unsigned refs;			/* atomic */
	struct ring_memory *memory;
	bool here;			/* both ends are in this process */
	struct soft_station *station[2];	/* the initiator's, the acceptor's */
};

struct soft_offer;	/* shm.c */

/* The rings of a connection whose data does not go over TCP. */
struct soft_pair {
	struct dapl_conn *conn;
	struct ring_rx rx;		/* changes under both locks; either may look */
	bool spoiled;			/* a malformed message is at the head; likewise */
	bool halted;			/* ... or one that can't be executed yet; ditto */
	uint32_t seen;			/* what was told last, engine lock */
	bool owing;			/* an acknowledgement waits, here or ours; ditto */
	struct ring_tx tx;		/* like conn->tx, and so is what follows */
	bool ack_waits;			/* the last message's is not taken note of */
	uint32_t ack_delivered, ack_consumed;
	struct soft_segment *segment;
	struct soft_station *peer, *own;	/* the segment's */
	uint8_t *aid_out;		/* likewise */
	const uint8_t *aid_in;
	const struct ring_door *door;	/* ... the peer's */
	uint32_t call;			/* our number and 1, while there are many; 0: none. Engine lock, */
	bool called;			/* ... that the peer is asked to call, */
	uint32_t hits;			/* ... and messages found in front since it came there */
	bool door_open;			/* the peer may access our memory */
	bool unsettled;			/* it was within a write for too long */
	struct soft_series reads, writes;	/* large ones that are measured */
	enum soft_way way;		/* of the last large write, */
	bool trying;			/* ... which was a try */
	uint64_t looked_ns;		/* when we last looked how much the peer polls, */
	uint32_t polls;			/* ... how often it had, */
	bool polls_much;		/* ... and whether that was much since the time before */
	struct soft_lag lag;		/* ... or answers in time */
	uint32_t direct;		/* accesses made in the peer's, by the kernel, */
	uint32_t mapped;		/* ... and by ourselves */
	struct soft_view *views;	/* regions of the peer's that are mapped; NULL: none */
	uint32_t unmapped;		/* the last STag that could not be */
	/* Our own payloads that the peer is to copy, by slot. */
	struct soft_loan {
		uint32_t slot, wqe, length;
		uint64_t offset;	/* in the request */
	} *loans;			/* NULL: none yet */
	bool wanted;			/* the peer asked for one: it gets no more of them */
	uint32_t given;			/* as often as it asked */
	/* The peer's, that we are to copy. */
	uint32_t fetched;
	uint32_t asked;			/* it was to give what could not be copied */
	struct ring_message waiting;	/* halted: the message at the head */
	bool lost;			/* the peer recalled it: nothing but its end is to come */
	struct iovec *window;		/* of the peer's gate, mapped; what it says is at bounce */
	uint64_t window_at;		/* its offset; 0: it says nothing */
	char *bounce;			/* DIRECT_MAX bytes; NULL: not yet */
	TAILQ_ENTRY(soft_pair) link;	/* dev->pairs */
};

/* What the service thread has to tell core about a connection, in this order. */
enum {
	SOFT_UP_ESTABLISHED = 1, SOFT_UP_FAILED = 2, SOFT_UP_CLOSED = 4, SOFT_UP_BROKEN = 8,
	SOFT_UP_RELEASED = 16, SOFT_UP_DEAD = 32, SOFT_UP_GOODBYE = 64,
};

struct dapl_conn {
	struct dapl_device *dev;
	/* guarded by the engine lock */
	enum soft_conn_state state;
	int fd;
	bool in_cm;			/* the cm epoll set has fd */
	bool in_data;			/* the data set has it, or of a pair, its ring is served */
	uint32_t interest;		/* EPOLL* asked for */
	struct soft_qp *qp;
	void *owner;
	struct soft_port *port;		/* WAIT_REQUEST: which it came in by */
	struct wire_mpa mpa;		/* the peer's Request or Reply */
	bool passive, ud;
	bool ours;			/* the peer is one of us */
	bool swaps;			/* the peer is siw (Terminate's bit order) */
	bool crc;
	bool released;
	uint64_t deadline_ns;		/* 0: none */
	bool wakes_late;		/* its socket waits for more than a byte */
	bool unwatched;			/* no epoll set took its socket: nobody sees its input */
	uint64_t silent_ns;		/* since when the peer's TCP should have answered; 0: it did */
	struct sockaddr_storage local, remote;
	uint8_t reads_out, reads_in;
	uint8_t rev;			/* MPA revision in use */
	bool fell_back;			/* tried with revision 1 */
	enum dapl_qos qos;
	uint8_t *frame;			/* MPA frame: being received, or our Request */
	uint32_t frame_length, frame_need;
	uint8_t *pdata;			/* our private data, until sent */
	uint32_t pdata_length;
	uint32_t mulpdu;
	struct soft_offer *offer;	/* passive: memory is offered until the first FPDU */
	int attach_fd;			/* ATTACHING: where memory comes from, else -1 */
	struct soft_pair *pair;		/* data goes this way, not over TCP; constant when open */
	struct dapl_conn *acceptor;	/* of this device, to be told of the pair; else by a frame */

	/* upcalls owed; the service thread makes them */
	uint32_t up;			/* atomic: SOFT_UP_* */
	bool buried;			/* the task's next run frees it */
	enum dapl_conn_failure failure;
	const uint8_t *up_pdata;	/* points into frame */
	uint32_t up_pdata_length;
	struct dapl_ud_peer peer;
	struct dapl_task task;
	LIST_ENTRY(dapl_conn) link;	/* dev->conns */
	TAILQ_ENTRY(dapl_conn) stranger_link;	/* dev->strangers */

	/* the stream */
	struct soft_tx tx;
	struct soft_rx rx;
	uint32_t delivered;		/* messages delivered, told to ours */
	uint64_t consumed;		/* window bytes taken, told to ours */
	uint64_t peer_consumed;		/* told by ours */
	uint32_t peer_delivered;
	uint32_t peer_ready;		/* told by ours: Sends up to this one have a receive */
	uint32_t reads_done;		/* our reads and atomics answered */
	uint32_t sink_key;		/* makes the STags of our read sinks */
	uint32_t arrived;		/* acknowledged messages that came in */
	struct soft_answer *answers;	/* ring of reads_in */
	uint32_t answer_tail;		/* counter; head is tx.cursor.answer */
	TAILQ_HEAD(soft_late_head, soft_late) late;
	uint32_t late_bytes;
	bool over;			/* atomic: core was told the end */
	bool ack_listed;
	TAILQ_ENTRY(dapl_conn) ack_link;	/* dev->acks */
};

/* A listening socket. RC and UD listeners of one port share it. */
struct soft_port {
	struct dapl_device *dev;
	int fd;
	uint16_t number;
	struct sockaddr_storage local;	/* of what it accepts; AF_UNSPEC: the socket tells */
	bool paused;			/* out of descriptors: not in the epoll set */
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
	bool want_crc, want_shm, want_direct;
	struct soft_choice reads, writes;	/* how large ones go; sends are like writes */
	bool dead;			/* a forked child's copy */
	LIST_ENTRY(dapl_device) link;

	struct soft_stags *stags;	/* read without lock by holders of a qp lock */
	pthread_mutex_t stags_lock;	/* writers */
	unsigned objects;		/* atomic: PDs, channels, CQs */

	pthread_mutex_t qps_lock;
	LIST_HEAD(, soft_qp) qps;
	LIST_HEAD(soft_number_head, soft_qp) by_number[SOFT_NUMBERS];

	/* the engine */
	struct dapl_spin engine;
	unsigned engine_waiting;	/* atomic: those who will not be refused */
	int data_epoll, service_epoll, cm_epoll;
	struct dapl_watch data_watch, cm_watch;
	struct dapl_timer handover_timer, sweep_timer;
	uint32_t polls, polls_seen;	/* atomic */
	bool polled;			/* atomic: pollers serve, the service thread does not */
	long preemptions;		/* engine lock: involuntary switches seen */
	uint32_t grip_ms;		/* engine lock: nobody hands over to pollers */
	uint64_t hold_until_ns;		/* ... before */
	struct dapl_spin handover;	/* guards polled, led, watched, quiet and the service epoll set */
	bool led;			/* a sleeper watches data_epoll, and serves; it's his to clear */
	bool watched;			/* the service thread does */
	uint64_t sweep_ns;		/* engine lock: when sweep_timer is due; 0: it is not */
	unsigned turns;			/* polls until one looks at all sockets */
	unsigned streams;		/* sockets in data_epoll, and pairs */
	unsigned handshakes;		/* in `strangers` */
	TAILQ_HEAD(, dapl_conn) strangers;	/* WAIT_REQUEST, the oldest first */
	struct dapl_conn *hot;		/* had input last, */
	unsigned hot_run;		/* ... so often in a row */
	struct dapl_conn *quiet;	/* handover: hot, whose socket wakes nobody; or NULL. Peeked at */
	TAILQ_HEAD(, soft_pair) pairs;	/* of streams: rings to look at; when there are many,
					 * those that had something last are in front */
	struct soft_pair *next_pair;	/* whose turn it is among many; NULL: the first's */
	unsigned pair_count;
	struct soft_pair **callers;	/* engine lock: by number; NULL: there were never many */
	unsigned next_call;		/* ... where to look for calls first */
	unsigned numbered, uncalled;	/* ... who has one, and of them, whose peers are not asked */
	uint32_t idle_polls;		/* that found nothing, in a row */
	struct soft_station *station;	/* atomic: NULL until it is needed, then constant */
	bool uses_server;		/* shm.c's lock */
	TAILQ_HEAD(, dapl_conn) acks;	/* owe an acknowledgement */
	uint8_t *scratch;
	LIST_HEAD(, dapl_conn) conns;
	LIST_HEAD(, soft_port) ports;

	/* async events */
	pthread_mutex_t events_lock;
	pthread_cond_t events_told;
	TAILQ_HEAD(, soft_event) events;
	const void *event_running;		/* the object an upcall is about */
	struct dapl_task event_task;

	int udp;			/* -1 until the first UD QP */
	uint16_t udp_port;
};

static inline struct dapl_device *soft_device(struct ibv_context *context)
{
	return (struct dapl_device *)context;
}

#define soft_trace(level, kind, object, ...) \
	trace(level, TRC_DAPL_EVENT, kind, object, NULL, __VA_ARGS__)

/* --- device.c ---------------------------------------------------------------- */
uint32_t soft_random(void);
socklen_t soft_address_length(const struct sockaddr *address);
uint16_t soft_address_port(const struct sockaddr *address);
void soft_address_set_port(struct sockaddr_storage *address, uint16_t port);
uint64_t soft_now_ns(void);
/* ... or a few ms earlier, but cheaper. */
uint64_t soft_lately_ns(void);
/* Queues the asynchronous event of an object, which always is of the same type. */
void soft_event_post(struct dapl_device *dev, struct soft_event *event, enum ibv_event_type type,
		     void *object);
/* No upcall about its object comes, or runs, afterwards. */
void soft_event_forget(struct dapl_device *dev, struct soft_event *event, const void *object);

/* --- mem.c -------------------------------------------------------------------- */
int soft_mem_init(struct dapl_device *dev);
void soft_mem_fini(struct dapl_device *dev);
/* The device has its station from now on, and its regions stand there. Engine lock held. */
void soft_mem_station(struct dapl_device *dev, struct soft_station *station);
int soft_pd_alloc(struct dapl_device *dev, struct ibv_pd **pd);
int soft_pd_dealloc(struct ibv_pd *pd);
int soft_mr_reg(struct ibv_pd *pd, void *addr, size_t length, int access, const void *name,
		struct ibv_mr **mr);
int soft_mr_dereg(struct ibv_mr *mr);
int soft_mw_alloc(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw);
int soft_mw_dealloc(struct ibv_mw *mw);
struct ibv_mw *soft_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
/* With a lock of a QP held, until which is dropped the memory stays registered: */
/* Local memory; *at is where it is. */
enum soft_check soft_mem_local(const struct dapl_device *dev, const struct ibv_pd *pd,
			       const struct ibv_sge *sge, int access, char **at);
/* Memory that the peer of `qp` names. A window comes back locked in *held (else NULL)
 * and is given back with soft_mem_done. */
enum soft_check soft_mem_remote(struct soft_qp *qp, uint32_t stag, uint64_t addr,
				uint64_t length, int access, char **at,
				struct soft_region **held);
static inline void soft_mem_done(struct soft_region *held)
{
	if (held)
		dapl_spin_unlock(&held->lock);
}
/* Bytes [offset, offset + length) of a segment list as at most `max` iovecs. Returns how
 * many, or -1 when the memory is not registered (any more) for this access. */
int soft_mem_slice(const struct dapl_device *dev, const struct ibv_pd *pd,
		   const struct ibv_sge *sge, uint32_t sges, uint64_t offset, uint32_t length,
		   int access, struct iovec *iov, int max);
bool soft_mem_check_all(const struct dapl_device *dev, const struct ibv_pd *pd,
			const struct ibv_sge *sge, uint32_t sges, int access);
/* Executes a bind or a local invalidate; a completion status. */
enum ibv_wc_status soft_mw_bind(struct soft_qp *qp, const struct soft_swqe *wqe);
enum ibv_wc_status soft_mw_invalidate(struct soft_qp *qp, uint32_t stag);
/* The QP goes: windows of type 2 that are bound to it become invalid. */
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

/* Of a thread: where, while it polls, it takes completions of one CQ without putting them into
 * that CQ first: two locks and a copy less on a message's way. */
struct soft_poller {
	bool tired;			/* it has long polled in vain */
	unsigned refused;		/* polls in a row that could not serve */
	const struct soft_cq *cq;	/* NULL: does not poll */
	struct ibv_wc *wc;
	int n, room;
};
extern __thread struct soft_poller soft_poller __attribute__((tls_model("initial-exec")));

/* Where one more completion is to be stored, which is then the poller's; NULL: it goes into
 * the CQ, by soft_cq_add. A queue's completions are made in order and under its lock: so one
 * that went into the ring before is seen there, and the next goes behind it. */
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
int soft_srq_create(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **srq);
int soft_srq_modify(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_srq_destroy(struct ibv_srq *srq);
int soft_srq_post(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
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
/* All with qp->lock held. */
/* A receive for a message: in qp->taken. False: there is none; an SRQ then calls back. */
bool soft_qp_take_receive(struct soft_qp *qp);
/* Completes the taken receive. */
void soft_qp_received(struct soft_qp *qp, enum ibv_wc_status status, const struct ibv_wc *is,
		      bool solicited);
/* The next receive of the QP's own queue holds `length` bytes of a plain Send. */
void soft_qp_received_next(struct soft_qp *qp, uint32_t length, bool solicited);
/* Completes a write of one segment that was executed when it was posted, before it had a place
 * in the queue, which is empty. */
void soft_qp_executed(struct soft_qp *qp, const struct ibv_send_wr *wr);
/* Completes, in order, what is done at the head of the send queue. */
void soft_qp_complete_sends(struct soft_qp *qp);
/* To ERR: request `culprit` (an SQ counter; with status SUCCESS nobody) completes with
 * `status`, all else flushes. */
void soft_qp_flush(struct soft_qp *qp, uint32_t culprit, enum ibv_wc_status status);
struct soft_qp *soft_qp_by_number(struct dapl_device *dev, uint32_t number);	/* qps_lock */

/* --- engine.c ----------------------------------------------------------------- */
int soft_engine_open(struct dapl_device *dev);
void soft_engine_close(struct dapl_device *dev);
void soft_engine_lock(struct dapl_device *dev);
void soft_engine_unlock(struct dapl_device *dev);
/* Called by who polls and finds nothing: moves data. False: nothing has changed. */
bool soft_engine_poll(struct dapl_device *dev);
/* Called by who found nothing, with no lock held: may let others run. */
void soft_engine_idle(void);
void soft_engine_want_ack(struct dapl_conn *conn);
void soft_engine_srq_posted(struct soft_srq *srq);
/* Takes the engine lock, unless somebody has it or waits for it. */
bool soft_engine_try(struct dapl_device *dev);
/* engine lock held */
bool soft_engine_serve(struct dapl_device *dev, bool polling);	/* true: there was something */
bool soft_engine_pairs_ready(struct dapl_device *dev);	/* a ring has something */
void soft_engine_flush(struct dapl_device *dev);	/* acknowledgements that are owed */
bool soft_engine_add(struct dapl_conn *conn);	/* false: nobody would see its input */
void soft_engine_del(struct dapl_conn *conn);
void soft_engine_end(struct dapl_conn *conn);	/* of a pair: its socket says something */
/* qp->lock held, or the engine lock without QP */
void soft_engine_interest(struct dapl_conn *conn);

/* --- execute.c ---------------------------------------------------------------- */
/* The target's side of a message; qp->lock held. Term codes, or -1: fine. */
int soft_target_send_begin(struct soft_qp *qp, struct dapl_conn *conn);
int soft_target_send_end(struct soft_qp *qp, struct dapl_conn *conn);
int soft_target_write_begin(struct soft_qp *qp, struct dapl_conn *conn);
void soft_target_write_end(struct dapl_conn *conn);
int soft_target_read(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_target_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_target_immediate(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
/* The common case of a small message. False: it's not that, and nothing was done. */
bool soft_target_quick(struct soft_qp *qp, struct dapl_conn *conn,
		       const struct ring_message *message);
/* Where the next bytes of the segment's payload go: iovecs for at most `length`. Returns
 * their number and the region to give back, or -1 and *term. */
int soft_target_place(struct soft_qp *qp, struct dapl_conn *conn, uint32_t length,
		      struct iovec *iov, int max, struct soft_region **held, int *term);
void soft_target_placed(struct dapl_conn *conn, uint32_t length);

/* Both kinds of atomics, at an aligned place; the value that was there. `compare`: for a swap. */
static inline uint64_t soft_execute_atomic(char *at, bool swap, uint64_t data, uint64_t compare)
{
	if (!swap)
		return __atomic_fetch_add((uint64_t *)at, data, __ATOMIC_SEQ_CST);
	__atomic_compare_exchange_n((uint64_t *)at, &compare, data, false, __ATOMIC_SEQ_CST,
				    __ATOMIC_SEQ_CST);
	return compare;
}

/* The end of a write, up to 8 bytes: visible after all before, and at once where it's an
 * aligned word. */
static inline void soft_store_tail(char *at, const void *bytes, uint32_t length)
{
	uint64_t word;

	__atomic_thread_fence(__ATOMIC_RELEASE);
	if (likely(length == 8) && likely((uintptr_t)at % 8 == 0)) {
		memcpy(&word, bytes, 8);
		__atomic_store_n((uint64_t *)at, word, __ATOMIC_RELEASE);
		return;
	}
	for (uint32_t i = 0; i < length; i++)
		__atomic_store_n(at + i, ((const char *)bytes)[i], __ATOMIC_RELEASE);
}

/* The number of the last Send that surely finds a receive, or of one that has come. */
uint32_t soft_target_ready(const struct dapl_conn *conn);
/* Receives were posted: messages that wait go into them. */
void soft_target_receives(struct soft_qp *qp);
/* The initiator's side. */
int soft_initiator_response_begin(struct soft_qp *qp, struct dapl_conn *conn);
void soft_initiator_response_end(struct soft_qp *qp, struct dapl_conn *conn);
int soft_initiator_atomic(struct soft_qp *qp, struct dapl_conn *conn, const uint8_t *body);
int soft_initiator_acked(struct soft_qp *qp, struct dapl_conn *conn, uint32_t delivered,
			 uint64_t consumed);
void soft_initiator_terminated(struct soft_qp *qp, struct dapl_conn *conn,
			       const uint8_t *body, uint32_t length);
/* The connection is over: tells the peer why, flushes, tells core. Because of the message
 * that is coming in; of the answer that the cursor is at; of a request of our own. */
void soft_stream_fail(struct soft_qp *qp, struct dapl_conn *conn, int term,
		      const char *check);
void soft_stream_answer_fail(struct soft_qp *qp, struct dapl_conn *conn, int term,
			     const char *check);
void soft_stream_abort(struct soft_qp *qp, struct dapl_conn *conn, const char *check);
/* The peer's stream is at its end, or broken. Engine lock held. */
void soft_stream_over(struct soft_qp *qp, struct dapl_conn *conn, bool orderly);
void soft_stream_free(struct dapl_conn *conn);

/* --- handover.c --------------------------------------------------------------- */
int soft_handover_open(struct dapl_device *dev);	/* errno; the service thread serves */
void soft_handover_close(struct dapl_device *dev);
/* Called by who may sleep from now on: the service thread takes over. */
void soft_handover_sleep(struct dapl_device *dev);
/* ... and by who does: the descriptor that he has to watch meanwhile, for he serves in its stead
 * if it's completions that he sleeps for; or -1. When it's readable he calls work; false: he does not any more, others serve. Otherwise,
 * awake afterwards: the service thread takes over. */
int soft_handover_lead(struct dapl_device *dev, bool for_data);
bool soft_handover_work(struct dapl_device *dev);
void soft_handover_awake(struct dapl_device *dev);

/* --- quiet.c ------------------------------------------------------------------ */
/* Engine lock held: the socket of dev->hot wakes nobody, while there are pollers. */
void soft_quiet_begin(struct dapl_device *dev);
/* Likewise: it does again. */
void soft_quiet_end(struct dapl_device *dev);
/* The same, by who holds dev->handover. */
void soft_quiet_over(struct dapl_device *dev);

/* --- shm.c -------------------------------------------------------------------- */
enum soft_attach { SOFT_ATTACH_DONE, SOFT_ATTACH_WAIT, SOFT_ATTACH_NO };
void soft_shm_close(struct dapl_device *dev);
void soft_shm_fork_prepare(void);
void soft_shm_fork_done(void);
void soft_shm_fork_child(void);
/* The bytes that a file of this process may have: more is answered by a deadly signal. */
uint64_t soft_file_limit(void);
/* A nameless file of so many bytes, with these seals (F_SEAL_*). -1: it can't be had. */
int soft_sealed_file(uint64_t size, int seals);
/* Engine lock held. The acceptor offers memory to who knows the token; NULL: it can't. */
struct soft_offer *soft_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				  uint8_t token[16]);
/* Ends the offer; what it led to is the caller's. NULL: nobody came. */
struct soft_segment *soft_offer_end(struct soft_offer *offer);
/* Engine lock held. The initiator takes the offer: *segment is the caller's, or *fd is to
 * be waited for. *acceptor, if not NULL, is a connection of this very device, whose offer it was. */
enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct soft_segment **segment, struct dapl_conn **acceptor);
enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct soft_segment **segment);
void soft_segment_put(struct soft_segment *segment);
void soft_bell_ring(struct soft_station *station, uint32_t sleeps);
/* Our own: the service thread looks at the rings once more. */
void soft_bell_again(struct soft_station *station);
/* Engine lock held: a bell that was rung is silent again. */
void soft_bell_clear(struct dapl_device *dev);

static inline bool soft_is_asleep(const struct soft_station *station)
{
	return __atomic_load_n(station->sleeps, __ATOMIC_RELAXED) & 1;
}

/* qp->lock held. Is the peer better not woken? Who polls looks asleep, too, while nothing comes through
 * his rings; when something does, the service thread hands over to him. */
static inline bool soft_direct_at_rest(struct soft_pair *pair)
{
	return unlikely(soft_is_asleep(pair->peer)) && soft_direct_nobody_polls(pair);
}

/* What was stored for the peer before is seen by it: it polls, or has been woken. */
static inline void soft_bell(const struct soft_pair *pair)
{
	struct soft_station *station = pair->peer;
	uint32_t sleeps, call;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleeps = __atomic_load_n(station->sleeps, __ATOMIC_RELAXED);
	call = ONCE(pair->door->call);
	if (unlikely(call))
		soft_call(station->calls, call);
	if (unlikely(sleeps & 1))
		soft_bell_ring(station, sleeps);
}

static inline struct ring_door *soft_own_door(const struct soft_pair *pair)
{
	return &pair->segment->memory->door[!pair->conn->passive];
}

/* What we, and what the peer says of writes to the other's memory (gate.h). */
static inline struct ring_writer *soft_own_writer(const struct dapl_conn *conn)
{
	return &conn->pair->segment->memory->writer[conn->passive];
}

static inline const struct ring_writer *soft_peers_writer(const struct dapl_conn *conn)
{
	return &conn->pair->segment->memory->writer[!conn->passive];
}

/* --- pair.c ------------------------------------------------------------------- */
/* Takes over the reference to the segment, also when it fails. */
struct soft_pair *soft_pair_new(struct dapl_conn *conn, struct soft_segment *segment);
void soft_pair_free(struct soft_pair *pair);
/* Locks like soft_tcp_send's. */
void soft_pair_put(struct dapl_conn *conn, const struct wire_segment *segment,
		   const void *body, uint32_t body_length, const struct iovec *payload,
		   int pieces, uint32_t length);
/* Puts a message whose payload, this part of the request from the offset on, the peer is to copy. It
 * may be lent, and there is room for a message without a payload. */
bool soft_pair_may_lend(struct soft_pair *pair);
void soft_pair_lend(struct dapl_conn *conn, const struct wire_segment *segment, uint32_t wqe,
		    uint64_t offset, const struct iovec *payload);
/* qp->lock held: what was lent may change from now on. */
void soft_pair_recall(struct dapl_conn *conn);
void soft_pair_tell(struct dapl_conn *conn);
/* The common case of posting: one request of one segment, nothing before it, room in the
 * ring: it's sent. False: it's not that, and nothing was done. conn->pair is there. */
bool soft_pair_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* The request just posted is a write or a read that nothing is before, and was executed in
 * the memory of a peer who sleeps. False: it's not that, and nothing was done. */
bool soft_pair_direct(struct soft_qp *qp, struct dapl_conn *conn);
/* qp->lock held; over a ring: requests have become complete. */
void soft_pair_done(const struct soft_qp *qp, struct dapl_conn *conn);
/* Engine lock held. */
static inline bool soft_pair_ready(const struct soft_pair *pair)
{
	return (ring_ready(&pair->rx) && !(pair->spoiled | pair->halted)) ||
	       __atomic_load_n(&pair->tx.told->count, __ATOMIC_RELAXED) != pair->seen;
}
/* Executes what is in the ring, up to a budget, and takes note of what was told. `later`: an
 * acknowledgement that came along may stay behind in ack_waits, so that what was received
 * is handed up first; then pair->owing must be set. Locks like soft_tcp_receive's. False:
 * nothing of it lets us send more. */
bool soft_pair_receive(struct dapl_conn *conn, bool later);

/* --- tcp.c -------------------------------------------------------------------- */
/* A message that came whole and in order begins: like the first half of what is done for
 * an FPDU. Then payload is placed, then it ends. Term codes, or -1: fine. */
int soft_segment_arrived(struct soft_qp *qp, struct dapl_conn *conn,
			 const struct ring_message *message, const char **check);
int soft_segment_end(struct soft_qp *qp, struct dapl_conn *conn, const char **check);
/* What comes in is not executed any more. */
static inline bool soft_stream_dropping(const struct dapl_conn *conn)
{
	return !conn->qp || conn->qp->state != IBV_QPS_RTS || conn->tx.terminate ||
	       conn->tx.goodbye || conn->rx.goodbye;
}
/* Sends what can be sent. qp->lock held (engine lock when conn has no QP). */
void soft_tcp_send(struct dapl_conn *conn);
/* The common case of posting: one small request of one segment, nothing before it: it's sent. False:
 * it's not that, or the socket takes nothing, and nothing was done. No conn->pair. */
bool soft_tcp_post(struct soft_qp *qp, struct dapl_conn *conn, const struct ibv_send_wr *wr);
/* Receives what is there, up to a budget. Engine lock and qp->lock held. False: the
 * stream is over (soft_stream_over was called). *came: it may have changed something. */
bool soft_tcp_receive(struct dapl_conn *conn, bool *came);

/* --- cm.c --------------------------------------------------------------------- */
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
/* engine lock held: takes the QP away from its connection, if any. */
void soft_cm_detach(struct soft_qp *qp);
/* engine lock held: the peer's stream ended; the socket is closed. */
void soft_cm_stream_over(struct dapl_conn *conn);
/* The service thread will tell core: SOFT_UP_*. Any locks may be held. */
void soft_cm_tell(struct dapl_conn *conn, uint32_t what);

/* --- ud.c --------------------------------------------------------------------- */
int soft_ud_open(struct dapl_device *dev);	/* for the first UD QP */
void soft_ud_close(struct dapl_device *dev);
int soft_ud_send(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status *status);
void soft_ud_receive(struct dapl_device *dev);	/* engine lock held */
int soft_ah_create(struct ibv_pd *pd, const struct sockaddr *address, uint16_t port,
		   struct ibv_ah **ah);
int soft_ah_destroy(struct ibv_ah *ah);

#endif
