/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - the software RNIC as all folders know it.
 *
 * The progress lock guards the state of every connection, its place in the epoll sets, and
 * conn->qp (rdmap/conn.h). The service thread makes upcalls with no lock held.
 * common/lock_rank.h has the order of the locks.
 * doc/design/soft-progress.md argues why no thread sleeps while a message waits. */
#ifndef SOFT_OBJ_DEVICE_H
#define SOFT_OBJ_DEVICE_H
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include "common/lock.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/obj/input.h"
#include "dapl/soft/shm/proto_table.h"
#include "dapl/soft/tunables.h"

struct dapl_conn;
struct shm_conn;
struct shm_process;
struct soft_directory;
struct soft_event;
struct soft_mcast;
struct soft_port;
struct soft_qp;
struct soft_stags;

/* Which thread is woken for data, and drives progress (progress/owner.h). */
enum progress_owner {
	OWNER_SERVICE_THREAD,		/* of a new device */
	OWNER_BLOCKED_THREAD,		/* one that watches data_epoll in a wait */
	OWNER_POLLING_THREADS,		/* owner_timer is due */
};

struct dapl_device {
	struct ibv_context verbs;	/* first: ibv_context * is dapl_device * */
	struct ibv_device identity;
	void *ia;
	struct sockaddr_storage address;
	char netdev[IF_NAMESIZE];
	unsigned mtu;
	bool want_crc, want_shm, want_direct, want_map;
	bool eth_bypass;		/* raw Ethernet QPs do not send through the queueing discipline */
	bool guards;			/* memory is checked again before each access of a peer */
	struct shm_proto_table reads, writes;	/* protocol selection of large requests; sends count
						 * as writes */
	bool dead;			/* a forked child's copy */
	LIST_ENTRY(dapl_device) link;

	const struct soft_directory *directory;
	struct soft_stags *stags;	/* the table of STags; a thread that holds a QP lock reads it without
					 * stags_lock */
	struct dapl_mutex stags_lock;	/* held to change the table */
	unsigned objects;		/* atomic: PDs, channels, CQs */
	uint64_t dm_size, dm_used;	/* bytes of device memory (shm/dm.c): all; those in use (atomic) */

	struct dapl_mutex qps_lock;	/* guards qps and by_number */
	LIST_HEAD(, soft_qp) qps;
	LIST_HEAD(soft_number_head, soft_qp) by_number[QP_BUCKETS];

	/* progress */
	struct dapl_mutex progress_lock;
	unsigned progress_waiters;	/* atomic: threads that wait for the lock */
	int data_epoll, service_epoll, cm_epoll;
	struct dapl_watch data_watch, cm_watch;
	struct dapl_timer owner_timer, sweep_timer;
	uint32_t polls, polls_seen;	/* atomic: polls that drove progress; their number when it was last
					 * looked at (owner.c) */
	enum progress_owner owner;	/* atomic */
	long preemptions;		/* involuntary context switches seen; progress lock */
	uint32_t service_hold_ms;	/* the service thread keeps progress for so long; progress lock */
	uint64_t hold_until_ns;		/* until then the service thread does not hand over to polling
					 * threads; progress lock */
	struct dapl_mutex owner_lock;	/* guards owner, suppressed and the service epoll set */
	uint64_t sweep_ns;		/* when sweep_timer is due; 0: it is not. Progress lock */
	unsigned turns;			/* polls until one looks at all sockets */
	unsigned streams;		/* atomic: sockets of data, and rings. 0: polls need not look */
	unsigned half_open_count;	/* connections in half_open */
	unsigned half_open_evicted;	/* those that were closed in favour of others (half_open.c) */
	uint64_t half_open_said_ns;	/* when the last line about that was printed; 0: never */
	TAILQ_HEAD(, dapl_conn) half_open;	/* connections in WAIT_REQUEST, the oldest first */
	struct dapl_conn *busy_conn;	/* its socket had input last */
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
	struct soft_input wake_input;	/* its eventfd in data_epoll */
	bool uses_server;		/* guarded by server_lock (attach_server.c) */
	struct dapl_spin access_lock;	/* guards accesses, and their fields; innermost */
	LIST_HEAD(, shm_access) accesses;	/* of peers to the memory of this process */
	struct dapl_timer access_timer;	/* looks for accesses of connections that are gone */
	uint64_t access_looks;		/* rounds of access_timer; only its handler uses it */
	uint64_t revocations;		/* atomic: begun so far */
	struct dapl_timer flush_timer;	/* a flush waits for a revocation */
	TAILQ_HEAD(, dapl_conn) acks;	/* connections that owe an acknowledgement over TCP */
	uint8_t *scratch;		/* SOFT_SCRATCH bytes, to receive into; progress lock */
	LIST_HEAD(, dapl_conn) conns;
	LIST_HEAD(, soft_port) ports;

	/* async events */
	struct dapl_mutex events_lock;
	struct dapl_cond events_done;
	TAILQ_HEAD(, soft_event) events;
	const void *event_running;	/* the object that an upcall runs for */
	struct dapl_task event_task;

	int udp;			/* -1 until the first UD QP */
	struct soft_input ud_input;	/* udp, and the epoll set of groups, in data_epoll */
	uint16_t udp_port;
	struct soft_mcast *mcast;	/* NULL until the first group is joined */
};

static inline struct dapl_device *soft_device(struct ibv_context *context)
{
	return (struct dapl_device *)context;
}

#define soft_trace(level, kind, object, ...) \
	trace(level, (level) == TRC_LVL_ERROR ? TRC_DAPL_ERROR : TRC_DAPL_EVENT, kind, object, \
	      NULL, __VA_ARGS__)

#endif
