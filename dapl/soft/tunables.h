/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tunables.h - the tuned constants of the software device: value, unit, what each trades.
 *
 * Each may be changed alone: peers need not agree on it. What peers must agree on (wire, ring
 * and shared-memory layouts, the credit window) stands with its format.
 *
 * How to measure a constant again: build the tree twice, with the old and the new value, and run
 * the benchmark that its group names in turn, old and new, on an idle machine:
 *   make bench-soft           latency, bandwidth, connections (test/bench/soft-run)
 *   make bench-openmpi        MPI latency, bandwidth, all-to-all
 *   make bench-instructions   instructions of one post and one poll
 * Where a group names a unit test (test/unit/soft), the constant is no matter of speed but a bound that the test
 * shows. What each mechanism gains as a whole stands in doc/design/soft-mechanisms.md. */
#ifndef SOFT_TUNABLES_H
#define SOFT_TUNABLES_H

/* --- limits that the device reports ----------------------------------------------------------
 * More costs memory for each object. test/conform shows them. Numbers of objects are reported only: a program runs out
 * of memory or descriptors first. */
enum {
	SOFT_MAX_SGE = 32,
	SOFT_MAX_INLINE = 1024,		/* bytes */
	SOFT_MAX_WR = 65536,		/* requests of a queue */
	SOFT_MAX_CQE = 1 << 22,
	SOFT_MAX_READS = 255,		/* IRD, ORD */
	SOFT_MAX_MR = 1 << 22,		/* regions, and as many windows */
	SOFT_MAX_AH = 1 << 20,
	SOFT_MAX_PD = 1 << 16,
	SOFT_MAX_SRQ = 1 << 16,
	SOFT_MAX_QP = 1 << 20,		/* and CQs, however many descriptors a process may have */
	SOFT_USUAL_FILES = 1024,	/* RLIMIT_NOFILE, if it cannot be read: QPs and CQs are reported by it */
};
#define SOFT_MAX_MESSAGE 0x80000000u	/* bytes; checked on both sides, and the same in each version */

/* --- memory objects (obj/) ------------------------------------------------------------------- */
enum {
	QP_BUCKETS = 1024,		/* of the table of QP numbers: 8 KiB for each device, against
					 * the length of a lookup for each datagram */
	STAGS_MIN = 64,			/* buckets of the first STag table; one that is full is
					 * replaced by one of four times the size */
	POPULATE_FRACTION = 4,		/* 1/N of the machine's memory: a larger region is not made present,
					 * since it is a reservation rather than memory in use */
	POPULATE_PROBES = 64,		/* pages of which one system call reads a byte when a region is
					 * registered: stack for system calls */
};

/* --- connection management (cm/) ---------------------------------------------------------------
 * Deadlines: shorter ones drop slow but sane peers, longer ones keep descriptors and threads
 * waiting for dead ones. test_foreign_peer, test_handshake and test_liveness show them. */
enum {
	SOFT_HANDSHAKE_S = 10,		/* s; for an MPA frame, once it may be expected */
	SOFT_LINGER_S = 5,		/* s; for the peer's FIN after this side's last frame */
	SOFT_FIRST_MS = 100,		/* ms; silence of an initiator of another implementation after
					 * which the acceptor sends first */
	SOFT_PATIENCE_MS = 60000,	/* ms; until a TCP peer that does not answer counts as lost, unless
					 * ack_timeout and ack_retry say otherwise */
	SOFT_PATIENCE_LEAST_MS = 1000,	/* ms; if they ask for less: TCP's keepalive counts in seconds */
	PATIENCE_SWEEPS = 4,		/* looks at a peer in this time: a lost one is noticed 1/N of it late */
	KEEPALIVE_IDLE_PART = 2,	/* 1/N of this time: silence before the first keepalive probe */
	KEEPALIVE_PROBES = 3,		/* in the rest of this time, evenly spaced */
	KEEPALIVE_MAX_S = 32767,	/* s; TCP takes no longer silence or interval */
	SOFT_ATTACH_S = 2,		/* s; for another process to share its memory */
	SOFT_ATTACH_RETRY_MS = 10,	/* ms; until a peer process whose backlog is full is asked again */
	HALF_OPEN_SILENCE_S = 60,	/* s; between two lines about closed half-open connections */
	CLOSE_FLUSH_MS = 1000,		/* ms; for last frames when the device is closed */
	CLOSE_POLL_MS = 10,		/* ms; until the sockets are tried again: more than CLOSE_SOCKETS may wait */
	CLOSE_SOCKETS = 64,		/* sockets watched meanwhile; bounds the stack */
	SWEEP_LEAST_US = 10000,		/* us; deadlines are not kept closer than that */
	RETRY_US = 250000,		/* us; until a listener without descriptors accepts again */
	FALLBACK_CAUSES = 64,		/* causes of connections over TCP that are remembered, so that
					 * each is reported once; more replace the oldest */
	CM_EVENTS = 64,			/* epoll events taken in one call */
	LISTEN_BACKLOG_MIN = 128,	/* of listen(2), if the program asks for less: connects of many peers at once */
	CM_ACCEPT_BATCH = 64,		/* connections accepted in one turn of a listener */
};

/* --- size of an FPDU (cm/handshake.c, rdmap/requester.c) ---------------------------------------
 * Larger FPDUs cost fewer headers. bench-soft over TCP, bandwidth. */
enum {
	MULPDU_LARGE = 65490,		/* bytes; for peers of this implementation and siw: 64 KiB less
					 * a cache line of payload */
	MULPDU_LEAST = 128,		/* bytes; for others, where the MSS is smaller still */
	FPDU_ALIGN = 64,		/* bytes; a cache line. Payloads are cut at multiples of it */
	FPDU_ALIGN_MIN = 4096,		/* bytes; they are not if an FPDU holds no more payload than this */
	WINDOW_USE_MIN = 4096,		/* bytes; a Send is not begun with less of the peer's credit
					 * window, unless it is shorter */
};

/* --- half-open connections (cm/half_open.c) -----------------------------------------------------
 * More keeps slow clients during a flood, fewer leaves more descriptors. test_half_open. */
enum {
	HALF_OPEN_LOOKS_MAX = 16,	/* connections with unread input that are spared */
	HALF_OPEN_MAX = 4096,		/* of a process, however many descriptors it may have */
	HALF_OPEN_FRACTION = 4,		/* 1/N of RLIMIT_NOFILE: all sources together */
	HALF_OPEN_SOURCES = 2,		/* a source address gets the share divided by this */
	HALF_OPEN_RESERVE = 8,		/* the last 1/N of RLIMIT_NOFILE is left to the application */
	HALF_OPEN_RESERVE_MIN = 8,	/* descriptors; the least that is left to the application */
};

/* --- progress: what a poll looks at (progress/progress.c, rings.c) -----------------------------
 * A larger value makes polls cheaper, and delays what they leave out. bench-soft with many
 * connections; test_progress, test_rings. */
enum {
	PROGRESS_EVENTS = 32,		/* epoll events taken in one call */
	SOCKET_BUSY_TURNS = 4,		/* one poll in so many looks at all sockets, the others only at
					 * the one that had input last */
	SOCKET_ALONE_TURNS = 64,	/* the same interval when there is only one socket */
	SOCKET_MIXED_TURNS = 8,		/* the same interval when there are rings, too */
	RINGS_BUSY = 8,			/* rings at the front of the list: each poll looks at them */
	RINGS_IN_TURN = 8,		/* of the other rings, a poll looks at so many in turn */
	RINGS_FEW = RINGS_BUSY + RINGS_IN_TURN,	/* up to so many, each poll looks at all */
	RINGS_PENDING_POLLS = 8,	/* one poll in so many looks at the others in turn if all peers
					 * mark theirs in the pending bitmap */
	RINGS_WAIVE_HITS = 4,		/* messages found at the front until the peer need not mark */
};

/* --- progress: giving up the processor (progress/progress.c) -----------------------------------
 * Fewer polls let a peer on the same processor run earlier, more keep latency low where each
 * thread has a processor. bench-soft with taskset to one processor, and to two. */
enum {
	IDLE_POLLS = 500,		/* empty polls in a row until sched_yield() */
	IDLE_YIELD_INTERVAL = 16,	/* from then on, one empty poll in so many yields */
	REFUSED_POLLS = 16,		/* polls that found the progress lock held, until one yields */
};

/* --- progress: acknowledgements (progress/acks.c, receive/shm_rx.c) ---------------------------
 * More saves messages, fewer lets the sender go on earlier. bench-soft, message rates. */
enum {
	ACKS_MAX = 32,			/* messages that may wait for an acknowledgement of their own */
	ACK_WINDOW_FRACTION = 4,	/* 1/N of the credit window: so many bytes taken in do not wait for a message
					 * to ride on. A blocked sender has the rest of the window under way */
	ACKS_LATER = 4,			/* up to so many messages in a poll: what they acknowledge is
					 * evaluated after they were handed to the application */
};

/* --- progress: which thread (progress/owner.c) -------------------------------------------------
 * A shorter interval notices earlier that polling has stopped, and costs more timer wake-ups.
 * bench-soft with a target that computes; test_owner. */
enum {
	OWNER_CHECK_US = 1000,		/* us; no poll for that long: the service thread takes over */
	OWNER_LAZY_POLLS = 50,		/* fewer polls in that time, and data waits: it takes over, too */
	SERVICE_HOLD_MS_MIN = 4,	/* ms; then it drives progress for so long at least. The time doubles
					 * whenever it has to take over again */
	SERVICE_HOLD_MS_MAX = 64,	/* ms; the longest such time */
};

/* --- progress: wake-ups (progress/progress.c, wakeup.c) ----------------------------------------
 * bench-soft over TCP, latency and bandwidth; test_wakeup. */
enum {
	SUPPRESS_AFTER = 32,		/* messages in a row from one socket until its wake-ups are
					 * suppressed: two system calls that must pay */
	SUPPRESS_LOWAT = 256 << 10,	/* bytes; SO_RCVLOWAT meanwhile. More delays a thread that the
					 * data has to wake, less wakes one that polls */
};

/* --- sending over TCP (tcp/fpdu.h, rdmap/transmit.c) -----------------------------------------
 * One sendmsg(2) takes a batch. More saves system calls, and takes stack: a batch is 18 KiB.
 * bench-soft over TCP, message rate and bandwidth. */
enum {
	BATCH_FRAMES = 32,		/* FPDUs */
	BATCH_IOV = 160,		/* pieces of memory: 5 for each FPDU; below IOV_MAX */
	BATCH_BYTES = 12 << 10,		/* bytes of headers, and of payloads that are copied */
	BATCH_PAYLOAD = 1 << 20,	/* bytes; more does not fit a socket's buffer */
	BATCH_COPY_MAX = 256,		/* bytes; shorter payloads are copied beside their header: one
					 * piece of memory less for the kernel */
};

/* --- receiving over TCP (rdmap/segment.c, unexpected.c, ud.c, receive/fpdu_rx.c) -------------------------
 * Payload that is received in place is not copied, but takes system calls of its own. bench-soft
 * over TCP, bandwidth. */
enum {
	RX_BULK_MIN = 8 << 10,		/* bytes of payload of a segment; the next ones are expected to
					 * be as large, and received in place */
	RX_BULK_HEAD = 2048,		/* bytes that one recv(2) asks for when large segments are
					 * expected: what comes before the place is known is copied */
	RX_IN_PLACE_MIN = 2048,		/* bytes of payload still due, to be received in place */
	RX_BEYOND = 4096,		/* bytes read beyond such a payload, unless the next is large */
	RX_BUDGET = 1 << 20,		/* bytes that one poll takes from a socket: others have their
					 * turn then */
	UNEXPECTED_RESUME_PART = 2,	/* 1/N of the window: a socket that is not read, because messages
					 * wait for receives, is read again when no more wait */
	SOFT_SCRATCH = 64 << 10,	/* bytes that one recv(2) asks for, of a device; also the longest
					 * datagram. bench-soft over TCP, bandwidth */
};

/* --- datagrams (rdmap/ud.c, mcast.c) -----------------------------------------------------------
 * test_ud, test_mcast. */
enum {
	UD_BATCH = 16,			/* datagrams received in one poll */
	MCAST_BUCKETS = 256,		/* of the table of multicast groups, which a device has from its
					 * first one on: 2 KiB */
	MCAST_SOCKET_GROUPS = 256,	/* groups of a socket, where the kernel allows as many: a datagram
					 * is matched against the list of its sockets */
};

/* --- shared memory: protocol selection (shm/proto.c, proto_table.c) ----------------------------
 * bench-soft, bandwidth over message size; test_proto. */
enum {
	PROTO_MIN = 8 << 10,		/* bytes; shorter requests take the ring: no system call */
	PROTO_MAX = 4 << 20,		/* bytes; longer requests, too: CMA copies with locks held */
	PROTO_SERIES = 4,		/* requests in a row that are measured together, at most */
	PROTO_TRIES = 64,		/* requests of a measurement, half for each protocol: eight series, of
					 * which some are not disturbed */
	PROTO_CLEAR_TRIES = 16,		/* requests, after which a measurement ends if one protocol takes */
	PROTO_CLEAR_PERCENT = 150,	/* more than so many percent of the time of the other */
	PROTO_VALID_TICKS = 56,		/* 2^30 ns, so one minute; then a size class is measured again */
};

/* --- shared memory: CMA for short requests (shm/proto.c, reach.c) --------------------------------
 * A copy by the kernel takes 1 to 3 us. It pays if the target is idle. bench-soft with idle
 * targets; test_large. */
enum {
	CMA_SHORT_MAX = 16 << 10,	/* bytes; the longest such request */
	PEER_ALIVE_NS = 10000000,	/* ns; how long a peer process counts as alive after a look. The
					 * kernel does not use a process id again so soon */
	PEER_LOOK_NS = 100000,		/* ns; between two looks at how often a peer polls */
	PEER_POLL_NS = 20000,		/* ns; a peer that polls so often drives progress itself */
};

/* --- shared memory: rings (shm/shm_ring.h) ---------------------------------------------------------
 * Of the ring, the part after which its consumer reports slots and bulk as free. Less costs
 * cache-line transfers, more makes the producer wait. bench-soft, bandwidth. */
enum {
	RING_ACK_FRACTION = 4,
};

/* --- shared memory: mapped regions and revocation (shm/rmem_map.c, revoke.c, mr_dir.c) ---------
 * test_rmem_map, test_revoke. */
enum {
	RMEM_VIEWS = 4,			/* regions of a peer that a connection maps; a lookup is linear */
	REVOKE_SPINS = 1000,		/* looks at the peer's flag before the first sleep */
	REVOKE_NAP_US = 50,		/* us; between two looks from then on */
	REVOKE_CUT_OFF_NS = 500000000,	/* ns; then a stopped peer's access window is closed */
	REVOKE_GIVE_UP_NS = 1000000000,	/* ns; from the start: no longer waited for */
	REVOKE_ORPHAN_US = 100000,	/* us; between two looks at accesses whose connection is gone and whose
					 * peer was within a write: 0.01 % of a processor while it is
					 * stopped */
};
#define WINDOW_FILE_SIZE (1ull << 40)	/* bytes, sparse: 2^24 windows, each cut off once at most */

/* --- shared memory: attaching (shm/attach_server.c, attach_socket.c, shm_segment.c) ----------------
 * test_attach_server; the spares: bench-soft, connections a second. */
enum {
	FETCHES_MAX = 256,		/* connections from other processes without a request yet */
	FETCH_US = 2000000,		/* us; for such a request to come */
	ATTACH_ACCEPT_BATCH = 64,	/* connections accepted in one run of the service thread */
	ATTACH_PAUSE_US = 10000,	/* us; until a listener for shared memory without descriptors
					 * accepts again: short against SOFT_ATTACH_S */
	ATTACH_BACKLOG = 4096,		/* of listen(2) */
	ATTACH_FILE_FRESH_S = 60,	/* s; a socket file made or checked so recently is left alone */
	SPARES_MAX = 64,		/* segments kept for new connections within the process: memory
					 * (most of a segment's bulk is given back) for page faults */
};

/* --- device memory (device.c) -----------------------------------------------------------------
 * test_dm. */
enum {
	DM_KIB = 16384,			/* KiB for each adapter, DAPL_SOFT_DM: a hundred times what an
					 * RDMA adapter has on its chip, and no burden to a host */
	DM_KIB_MAX = 1 << 30,		/* KiB: 1 TiB, more than a process is given */
};

/* --- raw Ethernet endpoints (eth/send.c, eth/pace.c, eth/eth.c) ----------------------------------
 * make bench-eth; test_eth_send, test_eth_hold, test_eth_receive, test_pace. */
enum {
	ETH_BATCH = 64,			/* frames that leave before other work of the service thread has its
					 * turn, and that are held at most */
	ETH_BATCH_PIECES = 4 * ETH_BATCH,	/* their segments; a batch of frames with more is smaller */
	ETH_HOLD_NS = 1000000,		/* ns; that a frame is held: long for a program that posts, short for
					 * one that waits */
	ETH_RETRY_NS = 100000,		/* ns; after the device's queue was full, and for a time of departure */
	ETH_MAX_LAG_NS = 10000000,	/* ns; a longer delay of a turn is not made up for: it would become a
					 * long burst */
	ETH_RECEIVE_BATCH = 64,		/* frames taken before other inputs have their turn */
	ETH_PURGE_US = 1000000,		/* us; between two looks at what is left of rules that were moved
					 * (softeth/port.h) */
};
#define ETH_STAMP_NS 1000000000ull	/* ns; a time of departure that is not told by then is not known */
#define ETH_LONGEST_WAIT_NS 1000000000ull	/* ns; then the clocks are read again: CLOCK_REALTIME may be set */
#define ETH_RATE_MIN 8000ull		/* bit/s: a frame of 1500 bytes takes 1.5 s */
#define ETH_RATE_MAX 100000000000ull	/* bit/s; beyond what a process can send */

#endif
