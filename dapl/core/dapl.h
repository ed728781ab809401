/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dapl.h - the objects of core that several layers use (IA, PZ, LMR, SRQ, EVD, EP), field by field, with
 * the lock that guards each. Other objects are in the header of their file. common/lock_rank.h has the
 * order of the locks. Under evd->lock core takes no mutex: it records work that needs a mutex, and does it
 * after it has released evd->lock. */
#ifndef DAPL_DAPL_H
#define DAPL_DAPL_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <infiniband/verbs.h>
#include <dat/dat_ib_extensions.h>
#include <dat/dat_map_extensions.h>
#include <dat/dat_eth_extensions.h>
#include "common/address.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "common/log.h"
#include "common/once.h"
#include "common/post_lock.h"
#include "common/trace.h"
#include "dapl/core/device.h"
#include "dapl/core/eth_device.h"
#include "dapl/core/base/diag.h"
#include "dapl/core/base/object.h"
#include "dapl/core/ep/request.h"
#include "dapl/core/event/evq.h"
#include "dapl/core/event/wait_spin.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/status.h"

/* Bits of DAPL_DBG_TYPE (doc/spec/extensions.md 6). */
enum {
	DBG_ERR = 0x1, DBG_WARN = 0x2, DBG_EVD = 0x4, DBG_CM = 0x8, DBG_EP = 0x10,
	DBG_UTIL = 0x20, DBG_CALLBACK = 0x40, DBG_DTO_COMP_ERR = 0x80, DBG_API = 0x100,
	DBG_EXCEPTION = 0x400, DBG_SRQ = 0x800, DBG_CNTR = 0x1000, DBG_CM_EST = 0x8000,
	DBG_CM_WARN = 0x10000, DBG_EXTENSION = 0x20000, DBG_VER = 0x1000000,
};

/* Limits of our own, where a device's are larger or unknown. */
enum {
	DAPL_EVD_MAX = 1 << 20,		/* events of an EVD without a CQ */
	DAPL_CQ_SPARE = 64,		/* CQ entries beyond evd_qlen: the provider's markers */
	DAPL_POLL_BATCH = 16,
	DAPL_CONN_PDATA_MAX = 512,
	DAPL_EP_TUNED = 5,		/* members of struct dapl_conn_tuning */
};

struct dapl_named_attrs {
	DAT_NAMED_ATTR *attr;
	int count;
};

struct dapl_ia {
	struct dapl_object obj;
	struct dapl_device *dev;
	struct dapl_device_attr attr;	/* constant after the open, except mtu (atomic) */
	DAT_IA_ATTR ia_attr;		/* prepared at open (attr.c) */
	DAT_PROVIDER_ATTR provider_attr;
	struct dapl_named_attrs vendor, specific, transport;
	struct dapl_attr_text *text;	/* values of the named attributes (attr.c) */

	struct dapl_mutex lock;		/* guards objects, text, provider_attr's named attributes */
	struct dapl_object *objects[DAPL_KINDS];
	unsigned ending;		/* objects that were killed and are not buried yet; guarded by
					 * lock */
	struct dapl_spin qp_lock;	/* guards qps and their qpn_next; innermost */
	struct dapl_ep *qps[256];	/* by QP number: SRQ completions */

	struct dapl_evd *async_evd;	/* NULL: there is none (DAT_EVD_ASYNC_EXISTS) */
	bool async_ours;		/* this open of the adapter made async_evd, and its close ends it */
	bool dead;			/* IA_CATASTROPHIC was delivered */
	uint64_t counters[DCNT_IA_ALL_COUNTERS];	/* atomic adds */
	uint64_t port_base[DCNT_IA_ALL_COUNTERS];	/* values of the device's own counters at the last
							 * look (counters.c); guarded by lock */
	uint64_t freed_counters[DCNT_EP_ALL_COUNTERS];	/* of endpoints that were freed (ep_free.c); guarded by
							 * lock */
	unsigned counting;		/* groups DCNT_IA_* that count, as bits (counters.c); guarded by
					 * lock */
	pid_t pid;			/* the process that opened it; a forked child must not use the
					 * device */
	struct dapl_ia *next_ia;	/* list of open IAs (async.c) */
};

struct dapl_pz {
	struct dapl_object obj;
	struct ibv_pd *pd;
	bool zero_based;		/* atomic: the PZ has or will get an LMR whose addresses count from
					 * 0, so its endpoints send no inline data (zero_based.c) */
	bool inline_stopped;		/* atomic: the endpoints that existed then send no inline data any
					 * more */
};

struct dapl_lmr {
	struct dapl_object obj;
	struct ibv_mr *mr;
	struct dapl_pz *pz;
	struct dapl_object *base;	/* DAT_MEM_TYPE_LMR: the LMR it was made from;
					 * DAT_DM_MEM_TYPE: the device memory; else NULL */
	DAT_LMR_PARAM param;
	char cookie[DAT_LMR_COOKIE_SIZE];
};

struct dapl_srq {
	struct dapl_object obj;
	struct ibv_srq *srq;
	struct dapl_pz *pz;
	int max_iov;			/* constant; atomic for a late post */
	struct dapl_mutex change;	/* held over a resize */
	uint32_t room;			/* buffers that the device's queue can hold; guarded by change */
	struct dapl_post_lock lock;	/* guards what follows */
	struct dapl_srq_chunk *chunks;	/* the memory of the records */
	struct dapl_dto *free;		/* records not posted */
	uint32_t records, max, posted;	/* records that exist; the consumer's limit; records in use */
	int low_watermark;		/* 0: off */
	DAT_SRQ_STATE state;
};

/* The lock and the flags of an EVD as one word. */
#ifdef DAPL_LOCK_CHECK
typedef uint64_t dapl_gate;
#else
typedef uint32_t dapl_gate;
#endif
_Static_assert(sizeof(struct dapl_spin) + 3 * sizeof(bool) <= sizeof(dapl_gate),
	       "the gate is the lock and three flags");

struct dapl_evd {
	struct dapl_object obj;

	/* --- the consumer side: dequeue, polling. Guarded by lock unless said --- */
	union {
		struct {
			struct dapl_spin lock;
			bool waiting;	/* a thread is in dat_evd_wait; written under lock
					 * and mutex both, read under either */
			bool inspect;	/* each completion is inspected when it is polled */
			bool queued;	/* atomic. The ring is not empty: producers set it */
		};
		dapl_gate gate;		/* lock and flags as one atomic word. If all are clear, the fast
					 * path takes the lock by one compare-and-exchange */
	};
	bool solicited;			/* the CQ is armed for solicited completions only */
	bool skip_unsignaled;		/* unsignaled completions do not notify */
	bool fresh_notice;		/* inspect: a notification event was polled since the last CQ event
					 * was reported */
	bool awaits_established;			/* a receive waits for its endpoint's ESTABLISHED */
	bool armed;			/* the CQ was armed and has not notified yet */
	bool polled_new;		/* completions were polled, not by the fast path, since dapl_evd_has_news() */
	struct ibv_cq *cq;		/* NULL: the EVD takes no completions */
	struct ibv_wc *wc;		/* completions that were polled and not dequeued: [wc_head,
					 * wc_tail) */
	uint32_t wc_head, wc_tail, wc_size;
	struct dapl_evq evq;
	uint32_t notices;		/* inspect: notification events among the polled */
	uint64_t polls_told;		/* DEQUEUE_POLL_FOUND at the last dapl_evd_has_news() */
	uint64_t counters[DCNT_EVD_ALL_COUNTERS];	/* guarded by lock; some by atomic adds */
	uint64_t polled_empty;		/* polls that found nothing; DEQUEUE_POLL is the sum with
					 * DEQUEUE_POLL_FOUND (counters.c) */

	struct dapl_spin post_lock;	/* producers of ring */
	bool notified, wait_blocked;		/* atomic: see wake_waiter in evd_notify.c */
	bool channel_lost;			/* atomic: the channel cannot be read any more */

	/* --- control --- */
	struct dapl_mutex change;		/* held to change `cno` and `watched`, also while the thread
						 * waits for a callback: no callback takes it */
	struct dapl_mutex mutex;		/* guards all that follows */
	DAT_EVD_FLAGS flags;
	int qlen;
	bool disabled, unwaitable, dying;
	bool discard;			/* a discard EVD: takes the completions of an endpoint that lacks an
					 * EVD */
	bool spill;			/* the service thread empties the CQ, because the device cannot
					 * resize it */
	bool has_watermarks;		/* an endpoint with a watermark receives into it; guarded by
					 * change */
	bool watched;			/* atomic. The watch is started; written under change */
	struct dapl_cno *cno;		/* written under change, mutex and cno->mutex */
	struct dapl_evd *next_attached;		/* of the CNO; guarded by cno->mutex */
	struct dapl_evd *next_triggered;	/* guarded by cno->mutex */
	bool triggered;				/* guarded by cno->mutex */
	struct ibv_comp_channel *channel;
	int wake_fd;			/* wakes the waiter */
	struct dapl_wait_spin spin;	/* of the waiter */
	struct dapl_watch watch;	/* of the channel: see dapl_evd_watch() */
	int pins;			/* atomic: dapl_evd_pin */
	/* Number of endpoint streams that feed the EVD, by their completion flags (doc/spec/calls.md 5). */
	struct {
		int all, unsignaled, solicited, threshold;
	} feeds;
	uint64_t dequeue_offset;	/* DEQUEUE minus its parts, which resets change (counters.c);
					 * guarded by lock */
};

static inline bool dapl_flag(const bool *flag)
{
	return __atomic_load_n(flag, __ATOMIC_RELAXED);
}

static inline void dapl_flag_set(bool *flag, bool to)
{
	__atomic_store_n(flag, to, __ATOMIC_RELAXED);
}

/* The last failure of an endpoint's connection (failure.c). */
struct dapl_failure {
	DAT_EVENT_NUMBER event;		/* the event that the consumer got for it; 0: there was no
					 * failure */
	struct dapl_diag diag;
};

/* Fields that only a raw Ethernet endpoint has (eth/). */
struct dapl_eth {
	struct dapl_eth_frame *frames;	/* frames of receives that completed; the device writes them */
	uint32_t frame_mask;		/* number of frames - 1 */
	struct dapl_dto ready;		/* the record of a DAT_ETH_READY_EVENT */
	bool ring;			/* ring receive: nothing is posted */
	bool xdp;			/* by AF_XDP */
	uint32_t max_tso;		/* of the device */
	uint64_t caps;
	struct dapl_rule *rules;	/* guarded by ep->lock */
};

struct dapl_ep {
	struct dapl_object obj;

	/* --- posting --- */
	struct ibv_qp *qp;		/* written under lock and both queue locks */
	DAT_EP_STATE state;		/* written by ep_state.c under lock; read by posters */
	bool up;			/* ESTABLISHED was delivered and the connection has not ended:
					 * completions may take the fast path. Written under lock */
	/* Limits of posts. Written under lock and both queue locks. A fast path reads them under its
	 * queue's lock. A slow path reads them with READ_ONCE before it takes the lock: each limit is
	 * checked by itself, and a concurrent dat_ep_modify may take effect before or after the check. */
	uint32_t max_message, max_rdma;
	uint32_t max_inline;		/* written under lock and sq.lock, read under either */
	uint16_t max_send_iov, max_recv_iov, max_read_iov, max_write_iov;
	uint8_t request_flags, recv_flags;	/* completion flags that a post must not have */
	bool deferred;			/* atomic. A terminal event waits for completions (terminate.c) */
	struct dapl_queue sq, rq;
	uint64_t counters[DCNT_EP_ALL_COUNTERS];	/* posts: queue locks; receives: recv_evd->lock;
						 * connections: lock */

	/* --- control --- */
	struct dapl_mutex lock;		/* guards what follows, and every state change */
	DAT_EP_ATTR attr;
	struct dapl_pz *pz;
	struct dapl_evd *recv_evd, *connect_evd;
	struct dapl_evd *request_evd;	/* with request_discard: written under lock and sq.lock, read under
					 * either */
	struct dapl_evd *recv_discard, *request_discard;	/* discard EVDs in place of
								 * missing ones */
	struct dapl_srq *srq;
	struct dapl_conn *conn;		/* NULL: there is none */
	struct dapl_cr *cr;		/* in the states PASSIVE and TENTATIVE: the connection request that
					 * the endpoint is for */
	struct dapl_sp *rsp;		/* RESERVED */
	bool is_ud;			/* datagrams or raw Ethernet frames; as the limits of posts */
	bool is_raw;			/* raw Ethernet frames; as the limits of posts */
	uint32_t min_message;		/* bytes that a send has at least; 0 unless raw; as the limits of
					 * posts */
	struct dapl_eth *eth;		/* NULL unless the endpoint is raw and has begun */
	bool delayed_ack;
	bool changing;			/* a call changes its configuration, and releases the lock meanwhile
					 * (dapl_ep_lock_settled). Written under lock and rq.lock, read
					 * under either */
	struct sockaddr_storage local, remote;	/* with ports; family 0: unknown */
	DAT_CONN_QUAL remote_qual;	/* active: the qualifier that the consumer connects to; passive: the
					 * peer's port */
	DAT_EVENT_NUMBER terminal;	/* terminal event that is delivered when the completions before it
					 * are dequeued; 0: there is none */
	bool owes_last_buffer;		/* SRQ: EP_BROKEN is due when the endpoint has returned its
					 * buffers */
	uint32_t qpn;			/* number of qp; stays after qp was destroyed */
	DAT_COMM comm;
	char pdata[DAPL_CONN_PDATA_MAX];	/* of the ESTABLISHED or reject event */
	int pdata_len;
	/* Guarded by the lock of the EVD of receives, or without one by lock. */
	int soft_hw, hard_hw;		/* watermarks of an endpoint on an SRQ; -1: there is none */
	int srq_polled;			/* SRQ buffers whose completions were polled and not dequeued */
	struct dapl_timer timer;	/* connect timeout; drain of a graceful disconnect */
	struct dapl_task task;		/* reports a passed watermark (watermark.c) */
	uint32_t marks;			/* atomic: MARK_*, watermarks that were passed */
	struct dapl_ep *qpn_next;	/* ia->qps */
	struct dapl_known_peer *known_peers;	/* UD (ud.c) */
	struct dapl_mcast_group *groups;	/* UD (mcast.c) */
	struct dapl_map *maps;		/* mappings of the peer's memory (rmr_map.c) */
	struct dapl_conn_tuning tuning;	/* ep_attr.c */
	DAT_NAMED_ATTR provider_attr[1 + DAPL_EP_TUNED];	/* array that dat_ep_query returned last */
	char tuned_value[DAPL_EP_TUNED][4];
	struct dapl_saved_recv *saved_recvs, *saved_recvs_last;	/* receives posted so far
								 * (recv_repost.h); rq.lock */
	uint64_t began_ns;		/* clock when the state became pending or CONNECTED */
	struct dapl_failure failure;	/* of its last connection */
	bool counters_kept;		/* they are in ia->freed_counters; guarded by ia->lock */
};

/* dapl_NAME_enter() returns NULL unless the handle is a live one of its kind. The caller leaves the object
 * (DAPL_ENTERED). */
#define DAPL_ENTER(name, type, kind) \
	static inline struct type *dapl_##name##_enter(DAT_HANDLE handle) \
	{ \
		return dapl_object_enter(handle, kind); \
	} \
	/* HOT: of a handle that the registry has looked into, so it is not NULL. Not entered: \
	 * it may be freed at any time. Acquire: a call with a stale handle may find another \
	 * object of the kind, and then finds it complete. */ \
	static inline bool dapl_##name##_is_live(const struct type *object) \
	{ \
		return __atomic_load_n(&object->obj.magic, __ATOMIC_ACQUIRE) == DAPL_MAGIC(kind); \
	}
DAPL_ENTER(ia, dapl_ia, DAPL_IA)
DAPL_ENTER(pz, dapl_pz, DAPL_PZ)
DAPL_ENTER(lmr, dapl_lmr, DAPL_LMR)
DAPL_ENTER(srq, dapl_srq, DAPL_SRQ)
DAPL_ENTER(evd, dapl_evd, DAPL_EVD)
DAPL_ENTER(ep, dapl_ep, DAPL_EP)

#define BAD_PARAM(n) DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define BAD_HANDLE(what) DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##what)
#define BAD_STATE(what) DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_##what)
#define NO_RESOURCE(what) DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_##what)
#define NOT_SUPPORTED DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE)

static inline void dapl_count(struct dapl_ia *ia, unsigned counter)
{
	__atomic_add_fetch(&ia->counters[counter], 1, __ATOMIC_RELAXED);
}

/* The endpoint's EVDs as completions see them: the consumer's, or the discard EVD. */
static inline struct dapl_evd *dapl_ep_recv_evd(const struct dapl_ep *ep)
{
	return ep->recv_evd ? ep->recv_evd : ep->recv_discard;
}
static inline struct dapl_evd *dapl_ep_request_evd(const struct dapl_ep *ep)
{
	return ep->request_evd ? ep->request_evd : ep->request_discard;
}

#endif
