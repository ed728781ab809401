/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock_rank.h - the order of all locks of the libraries, outermost first. A thread takes a lock only
 * if its rank is above the ranks of all locks that the thread holds; a lock that is only tried may
 * come in any order. lock_check.h checks this. doc/design/locking.md has the same list
 * (test/lint/locks). */
#ifndef COMMON_LOCK_RANK_H
#define COMMON_LOCK_RANK_H

enum lock_rank {
	RANK_NONE,		/* the lock was not initialized */

	/* the BTL of Open MPI: the mutexes of contrib/openmpi/lock.h; held over DAT calls */
	RANK_BTL_ENDPOINT,	/* e->lock: state, waiting requests and connections of an endpoint */
	RANK_BTL_MODULE,	/* m->lock: lists of a module: connections, endpoints by name, rings */
	RANK_BTL_RECV,		/* m->recv_lock: receives of a module that are posted */

	/* libdat2: the mutexes of dat/lock.h */
	RANK_DAT_FORKS,		/* dat/forks.c: libraries that take part in a fork; held over the fork */
	RANK_DAT_FILES,		/* dat/registry.c: reading dat.conf */
	RANK_DAT_REGISTRY,		/* registry.lock: entries, providers, which are busy */
	RANK_DAT_IA_HANDLES,		/* dat/ia_handle.c: the table of open IAs */
	RANK_DAT_QUERIES,		/* dat/ia.c: open queries of the list of adapters */
	RANK_DAT_LMRS,		/* dat/lmr_table.c: LMRs by context */
	RANK_DAT_CLOSED,		/* dat/closed.c: objects of providers that were unloaded */

	/* libdatsock */
	RANK_SOCK,		/* sock/conn.c: the lists and the life of connections */
	RANK_SOCK_RECEIVE,	/* sock/link.c: taking messages, and the lists of links and streams */
	RANK_SOCK_IN,		/* conn->in_lock: what a connection receives */
	RANK_SOCK_OUT,		/* conn->out_lock: what it sends, and its registrations with epoll */
	RANK_SOCK_EPOLL,	/* epoll->lock: the attached registrations of an epoll instance */
	RANK_SOCK_LINK,		/* sock/link.c: one DAT connection: its window and its queue */

	RANK_FORK,		/* fork.c: the fork handlers, from before a fork until after it */

	/* core: control calls */
	RANK_SERVICE_USERS,	/* service.c: start and stop of the service thread */
	RANK_CONTROL_USERS,	/* control.c: start and stop of the control socket */
	RANK_TAP_CLIENT,	/* ia/tap.c: the client that captures messages */
	RANK_ENTRIES,		/* provider.c: the ia_names that the registry has opened */
	RANK_ETH_MOVE,		/* eth/rule.c: endpoints of rules of raw Ethernet endpoints */
	RANK_EP,		/* ep->lock: state, connection and configuration of an endpoint */
	RANK_RMR,		/* rmr->lock: what a memory window is bound to */
	RANK_SRQ_CHANGE,	/* srq->change: the size of an SRQ and of its device's queue */
	RANK_EVD_CHANGE,	/* evd->change: CNO of an EVD, watch of its channel */
	RANK_NET_WATCH,		/* net_events.h: IAs whose network changes are told */
	RANK_IAS,		/* async.c: the list of open IAs and their asynchronous EVDs */
	RANK_EVD,		/* evd->mutex: waiter, flags and feeding streams of an EVD */
	RANK_IA,		/* ia->lock: the lists of an IA's objects */
	RANK_CNO,		/* cno->mutex: waiters and triggered EVDs of a CNO */

	/* core: data path; spin locks, of queues locks of posts */
	RANK_EVD_QUEUE,		/* evd->lock: polling and taking events; held over ibv_poll_cq */
	RANK_SQ,		/* ep->sq.lock: posting of requests; held over ibv_post_send */
	RANK_RQ,		/* ep->rq.lock: posting of receives; held over ibv_post_recv */
	RANK_SRQ,		/* srq->lock: records of an SRQ; held over ibv_post_srq_recv */
	RANK_EVD_POST,		/* evd->post_lock: producers of an EVD's event ring */
	RANK_IA_QPS,		/* ia->qp_lock: endpoints by QP number */

	/* device over libibverbs */
	RANK_VERBS_DEVICE,	/* dev->lock: the list of connections */
	RANK_VERBS_CONN,	/* conn->lock: state of one connection, or membership, and its id */
	RANK_VERBS_ETH_GROUPS,	/* eth_types.h: groups of raw QPs, their tables and flows */
	RANK_VERBS_ETH_LIST,	/* eth_cq.c: raw QPs that are polled with the CQs of EVDs */
	RANK_VERBS_ETH_QP,	/* eth_types.h: rules, receives and ring of a raw QP */
	RANK_VERBS_ETH_GROUP,	/* eth_group.c: the list of a group's rules */
	RANK_VERBS_ETH_DEVICE,	/* eth_types.h: what the flows of a device can do, and its clock */
	RANK_OBJECT_TABLE,	/* object_table.c: verbs object to what the provider keeps of it; segments.c, flush.c */
	RANK_SIW_CQ,		/* siw.c: requests that are held back, of the QPs of one CQ */
	RANK_VERBS_TAP,		/* verbs/tap.c: connections that are captured; spin lock */

	/* software device */
	RANK_SOFT_DEVICES,	/* device.c: the list of open devices */
	RANK_SOFT_PROGRESS,	/* dev->progress_lock: states of connections, epoll sets, rings */
	RANK_SOFT_SERVER,	/* attach_server.c: the server that peers attach to, its users */
	RANK_SOFT_OFFERS,	/* offers.c: offers of shared memory to peers */
	RANK_SOFT_STAGS,	/* dev->stags_lock: writers of the STag table and the MR directory */
	RANK_SOFT_QPS,		/* dev->qps_lock: the list of QPs */
	RANK_SOFT_QP,		/* qp->lock: queues of a QP and the stream of its connection */
	RANK_SOFT_ETH_GROUPS,	/* softeth: groups of packet sockets, and changes of their rules */
	RANK_SOFT_ETH,		/* softeth: rules and ring of a raw endpoint's packet socket */
	RANK_SOFT_ETH_CHANGE,	/* softeth: an instant at which rules and tables of several sockets change */
	RANK_SOFT_WINDOW,	/* region->lock: a memory window, during an access */
	RANK_SOFT_SRQ,		/* srq->lock: receives of an SRQ; spin lock */
	RANK_SOFT_CQ,		/* cq->lock: completions of a CQ; spin lock */
	RANK_SOFT_CHANNEL,	/* channel->lock: CQs with an event */
	RANK_SOFT_ACCESS,	/* dev->accesses.lock: accesses of peers to memory here; spin lock */
	RANK_SOFT_REACH,	/* process->reach_lock: direct access to a peer's memory */
	RANK_SOFT_OWNER,	/* dev->progress.owner_lock: which thread drives progress */
	RANK_SOFT_PROCESSES,	/* process.c: the list of processes with shared memory */
	RANK_SOFT_SPARES,	/* shm_segment.c: memory of segments, kept for reuse */
	RANK_SOFT_EVENTS,	/* dev->async.lock: asynchronous events of objects */
	RANK_SOFT_FALLBACK,	/* shm_fallback.c: why peers use TCP instead of shared memory */
	RANK_SOFT_RANDOM,	/* random.c: the pool of random numbers */

	/* leaves that any code may take */
	RANK_CONTROL,		/* control.c: descriptors of the control socket and its clients */
	RANK_TAP_POSTS,		/* base/tap_posts.c: memory of posts, for a capture; spin lock */
	RANK_TAP,		/* base/tap.c: the ring of captured messages; spin lock */
	RANK_DIAG,		/* diag_limit.c: limits of the lines about failed connections */
	RANK_SERVICE,		/* service.c: watches, timers and tasks */
	RANK_DEAD_OBJECTS,	/* object.c: dead objects, kept by kind */
	RANK_JOURNAL,		/* journal.c: the connection to the journal */
	RANK_TRACE,		/* trace.c: the list of trace rings */
};

#endif
