/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rnic.h - the software RNIC as all folders know it.
 *
 * The progress lock guards the state of every connection, its place in the epoll sets, and
 * conn->qp (obj/conn.h). The service thread makes upcalls with no lock held.
 * common/lock_rank.h has the order of the locks.
 * doc/design/soft-progress.md argues why no thread sleeps while a message waits. */
#ifndef SOFT_OBJ_RNIC_H
#define SOFT_OBJ_RNIC_H
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include "common/descriptors.h"
#include "common/lock.h"
#include "common/once.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/tunables.h"

struct dapl_conn;
struct dapl_device;
struct shm_conn;
struct shm_process;
struct shm_proto_tables;
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

/* A descriptor in data_epoll, the epoll set through which the progress owner finds what has come: the
 * socket of a connection, of datagrams, of a raw QP, the eventfd that peers on this host signal. */
struct soft_input {
	/* Called when the descriptor is ready, with the progress lock held. `events`: EPOLL*. `polling`: the caller
	 * is a polling thread, which comes back soon. */
	void (*serve)(struct soft_input *input, uint32_t events, bool polling);
};

/* Returns what epoll_ctl() needs to report `events` of the descriptor of `input`. */
static inline struct epoll_event soft_input_event(struct soft_input *input, uint32_t events)
{
	return (struct epoll_event){ .events = events, .data.ptr = input };
}

/* What the threads that drive progress keep (progress/). The progress lock guards what no comment says otherwise of. */
struct soft_progress {
	struct dapl_mutex owner_lock;	/* guards owner, suppressed and the service epoll set */
	int service_epoll;
	struct dapl_watch data_watch;
	struct dapl_timer owner_timer;
	enum progress_owner owner;	/* atomic */
	uint32_t polls, polls_seen;	/* atomic: polls that drove progress; their number when it was last
					 * looked at (owner.c) */
	uint32_t idle_polls;		/* empty polls in a row */
	long preemptions;		/* involuntary context switches seen */
	uint32_t keep_ms;		/* the service thread keeps progress for so long */
	uint64_t keep_until_ns;		/* until then the service thread does not hand over to polling
					 * threads */
	unsigned turns;			/* polls until one looks at all sockets */
	unsigned streams;		/* atomic: sockets of data, and rings. 0: polls need not look */
	struct dapl_conn *busy_conn;	/* its socket had input last */
	unsigned busy_run;		/* polls in a row in which it had input */
	struct dapl_conn *suppressed;	/* busy_conn, if its wake-ups are suppressed; or NULL.
					 * owner_lock; may be read without it */
	TAILQ_HEAD(, dapl_conn) acks;	/* connections that owe an acknowledgement over TCP */
	uint8_t *scratch;		/* SOFT_SCRATCH bytes, to receive into */
};

/* The rings of connections in shared memory (progress/rings.c). Guarded by the progress lock. */
struct soft_rings {
	TAILQ_HEAD(, shm_conn) list;	/* connections with rings; when there are many, those that had
					 * messages last are in front */
	struct shm_conn *next;		/* next in turn when there are many; NULL: the first */
	unsigned count;
	struct shm_conn **pending_conns;	/* by number; NULL: there were never many */
	unsigned pending_next;		/* word of the bitmap to look at first */
	unsigned numbered, unmarked;	/* rings with a number; those of them whose peers are not
					 * asked to mark */
};

/* Half-open connections (cm/half_open.c): those in WAIT_REQUEST. Guarded by the progress lock. */
struct soft_half_open {
	unsigned count, evicted;	/* connections in list; those that were closed in favour of others */
	uint64_t reported_ns;		/* when the last line about that was printed; 0: never */
	TAILQ_HEAD(, dapl_conn) list;	/* the oldest first */
};

/* Connection management (cm/). Guarded by the progress lock. */
struct soft_cm {
	int epoll;
	struct dapl_watch watch;
	struct dapl_timer sweep_timer;
	uint64_t sweep_ns;		/* when sweep_timer is due; 0: it is not */
	LIST_HEAD(, dapl_conn) conns;
	LIST_HEAD(, soft_port) ports;
};

/* Accesses of peers to the memory of this process, and revocations (shm/revoke.c). */
struct soft_accesses {
	struct dapl_spin lock;		/* guards list, and the fields of its elements; innermost */
	LIST_HEAD(, shm_access) list;
	struct dapl_timer timer;	/* looks for accesses of connections that are gone */
	uint64_t looks;			/* rounds of the timer; only its handler uses it */
	uint64_t revocations;		/* atomic: begun so far */
	struct dapl_timer flush_timer;	/* a flush waits for a revocation */
};

/* What the device has for peers on this host (shm/). */
struct soft_shm {
	struct shm_proto_tables *protocols;	/* selection of protocols (proto_table.h); constant */
	struct shm_process *process;	/* atomic: NULL until it is needed, then constant */
	struct soft_input wake_input;	/* its eventfd in data_epoll */
	bool uses_server;		/* guarded by server_lock (attach_server.c) */
	uint64_t dm_size, dm_used;	/* bytes of device memory (dm.c): all; those in use (atomic) */
};

/* Asynchronous events (async_event.c). Guarded by lock. */
struct soft_async {
	struct dapl_mutex lock;
	struct dapl_cond done;
	TAILQ_HEAD(, soft_event) list;
	const void *running;		/* the object that an upcall runs for */
	struct dapl_task task;
};

/* The socket of datagrams, and multicast groups (rdmap/ud.c, rdmap/mcast.c). */
struct soft_datagrams {
	int fd;				/* -1 until the first UD QP */
	struct soft_input input;	/* fd, and the epoll set of groups, in data_epoll */
	uint16_t port;
	struct soft_mcast *mcast;	/* NULL until the first group is joined */
};

enum soft_detour {
	SOFT_GUARDED = 1,		/* memory is checked again before each access of a peer */
	SOFT_TAPPED = 2,		/* what arrives is recorded (tap_record.h) */
};

struct dapl_device {
	struct ibv_context verbs;	/* first: ibv_context * is dapl_device * */
	struct ibv_device identity;
	void *ia;
	struct sockaddr_storage address;
	char netdev[IF_NAMESIZE];	/* as it was named when the device was opened */
	int netdev_index;		/* 0: none */
	unsigned mtu;
	bool want_crc, want_shm, want_direct, want_map;
	bool eth_bypass;		/* raw Ethernet QPs do not send through the queueing discipline */
	uint8_t detours;		/* enum soft_detour: what keeps messages of peers off the fast path; atomic */
	bool dead;			/* a forked child's copy */
	LIST_ENTRY(dapl_device) link;

	const struct soft_directory *directory;
	struct soft_stags *stags;	/* the table of STags; a thread that holds a QP lock reads it without
					 * stags_lock */
	struct dapl_mutex stags_lock;	/* held to change the table */
	unsigned objects;		/* atomic: PDs, channels, CQs */

	struct dapl_mutex qps_lock;	/* guards qps and by_number */
	LIST_HEAD(, soft_qp) qps;
	LIST_HEAD(soft_number_head, soft_qp) by_number[QP_BUCKETS];

	struct dapl_mutex progress_lock;
	unsigned progress_waiters;	/* atomic: threads that wait for the lock */
	int data_epoll;

	struct soft_progress progress;
	struct soft_rings rings;
	struct soft_half_open half_open;
	struct soft_cm cm;
	struct soft_accesses accesses;
	struct soft_shm shm;
	struct soft_async async;
	struct soft_datagrams datagrams;
};

static inline struct dapl_device *soft_device(struct ibv_context *context)
{
	return (struct dapl_device *)context;
}

/* HOT: one comparison with 0 tells that there are none. */
static inline unsigned soft_detours(const struct dapl_device *dev)
{
	return READ_ONCE(dev->detours);
}

#define soft_trace(level, kind, object, ...) \
	trace(level, (level) == TRC_LVL_ERROR ? TRC_DAPL_ERROR : TRC_DAPL_EVENT, kind, object, \
	      NULL, __VA_ARGS__)

/* Reports that `what` failed, in one line, if `err` is an errno value of a shortage. */
void soft_report_shortage(const struct dapl_device *dev, int err, const char *what);

/* --- the lock under which progress is made, and connections are managed ----------------------- */

void soft_progress_lock(struct dapl_device *dev);
/* The same for a thread that may hold the progress locks of other devices: before a fork all are taken. */
void soft_progress_lock_another(struct dapl_device *dev);

/* Each poll calls the functions from here on, so they are inline. */

static inline void soft_progress_unlock(struct dapl_device *dev)
{
	dapl_mutex_unlock(&dev->progress_lock);
}

/* Takes the progress lock, unless another thread holds it or waits for it: polling threads give way
 * to waiting ones. */
static inline bool soft_progress_try(struct dapl_device *dev)
{
	return !__atomic_load_n(&dev->progress_waiters, __ATOMIC_RELAXED) &&
	       dapl_mutex_try(&dev->progress_lock);
}

/* --- inputs ------------------------------------------------------------------------------------ */

/* The functions from here on are called with the progress lock held. */

/* Adds to the number of inputs that polls look for. */
void soft_input_count(struct dapl_device *dev, int inputs);
/* Adds the input to those that are served when they are readable, and counts it. Returns 0 or an errno value. */
int soft_input_watch(struct dapl_device *dev, struct soft_input *input, int fd);
void soft_input_unwatch(struct dapl_device *dev, int fd);

#endif
