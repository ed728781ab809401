/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.c - records the messages of a device during a capture (tap.h). Then the data path of the device's
 * context goes through the functions here, which record a message and call the functions that were there.
 * Without a capture the data path has no instruction for it. If a thread is within a verb when a capture
 * begins or ends, its message may be recorded or not.
 *
 * A request is recorded when it is posted: what the device sends, and when, is not known. A message that
 * arrives is recorded when its completion is polled. A peer's RDMA writes and reads are not seen here: the
 * capture of the peer shows them. Datagrams and raw Ethernet frames are left out.
 *
 * A post may name memory that does not exist; the device reports that by its completion. So payload is
 * read by process_vm_readv, which fails for such memory, and for memory of the device. */
#include "conn_types.h"
#include "hw.h"
#include "tap.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include "dapl/core/base/fork.h"
#include "dapl/core/base/tap.h"
#include "dapl/core/base/tap_posts.h"

enum {
	BUCKETS = 256,			/* of connections by QP number */
	SNAP_MAX = 4096,		/* bytes of payload in a record: they are read onto the stack of the caller */
	PIECES = 32,			/* segments of a post that are looked at */
};

struct tapped {				/* a connection */
	uint32_t qpn, shown;		/* shown: dapl_tap_show() */
	uint8_t flags;
	struct tap_ends ends;
	struct tapped *next;
};

struct hw_tap {				/* an open device that was captured once */
	struct ibv_context *verbs;
	struct ibv_context_ops below;	/* what the functions here call; constant while poll_wrapped */
	bool on, poll_wrapped;
	struct tapped *buckets[BUCKETS];
	struct hw_tap *next;
};

static struct dapl_spin lock = DAPL_SPIN_INIT(RANK_VERBS_TAP);	/* guards the list and what it holds */
static struct hw_tap *taps;

/* lock held. NULL: the device was never captured. */
static struct hw_tap *tap_of(const struct ibv_context *verbs)
{
	struct hw_tap *tap = taps;

	assert_held(&lock);
	while (tap && tap->verbs != verbs)
		tap = tap->next;
	return tap;
}

/* Returns the functions that those here call. *on: a capture runs. */
static struct ibv_context_ops below(const struct ibv_context *verbs, bool *on)
{
	struct ibv_context_ops ops;
	const struct hw_tap *tap;

	dapl_spin_lock(&lock);
	tap = tap_of(verbs);
	ops = tap->below;
	*on = tap->on;
	dapl_spin_unlock(&lock);
	return ops;
}

/* --- connections --------------------------------------------------------------------------------- */

/* lock held. */
static struct tapped **find(struct hw_tap *tap, uint32_t qpn)
{
	struct tapped **at = &tap->buckets[qpn % BUCKETS];

	assert_held(&lock);
	while (*at && (*at)->qpn != qpn)
		at = &(*at)->next;
	return at;
}

/* lock held. Returns `new` if it is not needed: the QP had another connection before. */
static struct tapped *put(struct hw_tap *tap, const struct tapped *is, struct tapped *new)
{
	struct tapped **at = find(tap, is->qpn), *before = *at, *next = before ? before->next : NULL;

	assert_held(&lock);
	if (!before)
		*at = new;
	**at = *is;
	(*at)->next = next;
	return before ? new : NULL;
}

/* conn->lock held. */
static struct tapped describe(const struct dapl_conn *conn)
{
	bool iwarp = conn->dev->attr.iwarp;
	struct tapped is = { .qpn = conn->qp->qp_num,
		.flags = (uint8_t)((conn->active ? TAP_ACTIVE : 0) | (iwarp ? 0 : TAP_ROCE)) };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_held(&conn->lock);
	dapl_tap_put_address(&is.ends.local, &conn->local);
	dapl_tap_put_address(&is.ends.remote, &conn->remote);
	if (!iwarp && !ibv_query_qp(conn->qp, &attr, IBV_QP_DEST_QPN | IBV_QP_PATH_MTU, &init)) {
		is.ends.remote_qpn = attr.dest_qp_num;
		is.ends.mtu = 128u << attr.path_mtu;
	}
	return is;
}

void hw_tap_connection(const struct dapl_conn *conn)
{
	struct tapped is, *new;
	struct hw_tap *tap;
	bool on;

	assert_held(&conn->lock);
	dapl_spin_lock(&lock);
	tap = tap_of(conn->dev->verbs);
	on = tap && tap->on;
	dapl_spin_unlock(&lock);
	if (!on || conn->ud || !conn->qp || !(new = malloc(sizeof *new)))
		return;
	is = describe(conn);
	dapl_spin_lock(&lock);
	if (tap->on)	/* else the capture has ended meanwhile, and its connections were forgotten */
		new = put(tap, &is, new);
	dapl_spin_unlock(&lock);
	free(new);
}

static void put_connections(struct dapl_device *dev)
{
	dapl_mutex_lock(&dev->lock);
	for (struct dapl_conn *c = dev->conns; c; c = c->next) {
		dapl_mutex_lock(&c->lock);
		if (c->state == CONN_ESTABLISHED || c->state == CONN_ACCEPTING)
			hw_tap_connection(c);
		dapl_mutex_unlock(&c->lock);
	}
	dapl_mutex_unlock(&dev->lock);
}

/* lock held, or no call in the device. */
static void forget_connections(struct hw_tap *tap)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (tap->buckets[i]) {
			struct tapped *gone = tap->buckets[i];

			tap->buckets[i] = gone->next;
			free(gone);
		}
}

/* --- records -------------------------------------------------------------------------------------- */

/* Copies the first bytes of a payload. Returns how many could be read. */
static uint32_t read_payload(const struct ibv_sge *sge, uint32_t sges, uint32_t length, char to[SNAP_MAX])
{
	uint32_t room = dapl_tap_snap() < SNAP_MAX ? dapl_tap_snap() : SNAP_MAX, pieces = 0, bytes = 0;
	struct iovec here = { .iov_base = to }, there[PIECES];
	ssize_t n;

	if (room > length)
		room = length;
	for (; pieces < sges && pieces < PIECES && bytes < room; pieces++) {
		uint32_t piece = sge[pieces].length < room - bytes ? sge[pieces].length : room - bytes;

		there[pieces] = (struct iovec){ (void *)(uintptr_t)sge[pieces].addr, piece };
		bytes += piece;
	}
	here.iov_len = bytes;
	n = bytes ? process_vm_readv(getpid(), &here, 1, there, pieces, 0) : 0;
	return n > 0 ? (uint32_t)n : 0;
}

/* Called with the lock held. Returns NULL if the message is not recorded, since the connection is not known, or no
 * capture runs, or there is no room; else an entry to publish. */
static struct tap_entry *reserve(const struct ibv_context *verbs, uint32_t qpn, uint32_t size, struct tapped **of)
{
	assert_held(&lock);
	*of = tap_of(verbs)->on ? *find(tap_of(verbs), qpn) : NULL;
	if (!*of || (!dapl_tap_is_shown((*of)->shown) &&
		     !dapl_tap_show(qpn, (*of)->flags, &(*of)->ends, &(*of)->shown)))
		return NULL;
	return dapl_tap_reserve(size, (*of)->shown);
}

/* Completes an entry that has all but time, QP, flags of the connection and payload. */
static void complete(struct tap_entry *entry, uint32_t behind, const struct tapped *of, const char *payload,
		     uint32_t captured, uint64_t now)
{
	entry->time = now;
	entry->qpn = of->qpn;
	entry->state = TAP_VALID;
	entry->message.captured = captured;
	memcpy(behind ? (uint8_t *)(entry + 1) : entry->message.payload, payload, captured);
}

static bool record_request(const struct ibv_qp *qp, const struct ibv_send_wr *wr, uint64_t now, struct tap_place *place)
{
	uint8_t op = dapl_tap_operation(wr->opcode);
	uint32_t length, captured = 0, behind;
	struct tap_message fetch = { .length = 0 };
	struct tap_entry *entry;
	char payload[SNAP_MAX];
	struct tapped *of;

	if (qp->qp_type != IBV_QPT_RC || op == DAPL_TAP_NO_MESSAGE)
		return false;
	length = dapl_tap_length(wr);
	if (!tap_fetches(op) && wr->num_sge > 0)
		captured = read_payload(wr->sg_list, (uint32_t)wr->num_sge, length, payload);
	behind = tap_payload_size(op, captured);
	dapl_spin_lock(&lock);
	entry = reserve(qp->context, qp->qp_num, TAP_LINE + behind, &of);
	if (entry) {
		dapl_tap_describe(entry, wr, op, length);
		complete(entry, behind, of, payload, captured, now);
		if (tap_fetches(op))
			fetch = entry->message;
		*place = dapl_tap_publish(TAP_LINE + behind);
	}
	dapl_spin_unlock(&lock);
	if (entry && tap_fetches(op))
		dapl_tap_remember(wr->wr_id, wr->sg_list, wr->num_sge, &fetch);
	return entry;
}

static void record_completion(const struct ibv_context *verbs, const struct ibv_wc *wc, uint64_t now)
{
	uint8_t op = dapl_tap_completed(wc);
	uint32_t length, captured, behind;
	struct dapl_tap_sink sink;
	struct tap_entry *entry;
	char payload[SNAP_MAX];
	struct tapped *of;

	if (!dapl_tap_recall(wc, &sink))
		return;
	length = dapl_tap_came(wc, &sink);
	captured = read_payload(sink.sge, sink.sges, length, payload);
	behind = tap_payload_size(op, captured);
	dapl_spin_lock(&lock);
	entry = reserve(verbs, wc->qp_num, TAP_LINE + behind, &of);
	if (entry) {
		dapl_tap_describe_completion(entry, wc, op, length, &sink);
		complete(entry, behind, of, payload, captured, now);
		dapl_tap_publish(TAP_LINE + behind);
	}
	dapl_spin_unlock(&lock);
}

/* --- in place of the device's functions ------------------------------------------------------------ */

/* Posts a list request by request, since each may be refused; a refused request is not recorded. */
static int tap_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	bool on;
	struct ibv_context_ops ops = below(qp->context, &on);
	uint64_t now = dapl_tap_now();
	int err = 0;

	if (!on)
		return ops.post_send(qp, wr, bad);
	for (; wr && !err; wr = wr->next) {
		struct ibv_send_wr one = *wr, *refused;
		struct tap_place place;
		bool recorded = record_request(qp, wr, now, &place);

		one.next = NULL;
		err = ops.post_send(qp, &one, &refused);
		if (err && recorded)
			dapl_tap_cancel(&place);
		*bad = wr;
	}
	return err;
}

static int tap_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool on;
	struct ibv_context_ops ops = below(qp->context, &on);

	if (on)
		dapl_tap_remember_receives(wr);
	return ops.post_recv(qp, wr, bad);
}

static int tap_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	bool on;
	struct ibv_context_ops ops = below(srq->context, &on);

	if (on)
		dapl_tap_remember_receives(wr);
	return ops.post_srq_recv(srq, wr, bad);
}

static int tap_poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	bool on;
	struct ibv_context_ops ops = below(cq->context, &on);
	int n = ops.poll_cq(cq, entries, wc), i = 0;
	uint64_t now;

	while (i < n && !dapl_tap_is_recorded(&wc[i]))
		i++;
	if (!on || i >= n)
		return n;
	now = dapl_tap_found();
	for (; i < n; i++)
		if (dapl_tap_is_recorded(&wc[i]))
			record_completion(cq->context, &wc[i], now);
	return n;
}

/* --- begin and end ---------------------------------------------------------------------------------- */

/* lock held. The inline functions of verbs.h load these pointers without atomics, at the same time: a thread calls
 * the old function or the new one, and both work. A thread sanitizer must not compare such loads with these
 * stores. */
__attribute__((no_sanitize_thread))
static void wrap(struct hw_tap *tap)
{
	struct ibv_context_ops *ops = &tap->verbs->ops;

	assert_held(&lock);
	if (!tap->poll_wrapped)
		tap->below = *ops;
	tap->poll_wrapped = true;
	__atomic_store_n(&ops->post_send, tap_post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_recv, tap_post_recv, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_srq_recv, tap_post_srq_recv, __ATOMIC_RELEASE);
	if (ops->poll_cq == tap->below.poll_cq)
		__atomic_store_n(&ops->poll_cq, tap_poll_cq, __ATOMIC_RELEASE);
}

/* lock held. Raw Ethernet endpoints, which poll with the CQs of others (eth_cq.c), may have been made meanwhile, and
 * call the function here: then it stays. */
__attribute__((no_sanitize_thread))
static void unwrap(struct hw_tap *tap)
{
	struct ibv_context_ops *ops = &tap->verbs->ops;

	assert_held(&lock);
	__atomic_store_n(&ops->post_send, tap->below.post_send, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_recv, tap->below.post_recv, __ATOMIC_RELEASE);
	__atomic_store_n(&ops->post_srq_recv, tap->below.post_srq_recv, __ATOMIC_RELEASE);
	if (ops->poll_cq != tap_poll_cq)
		return;
	__atomic_store_n(&ops->poll_cq, tap->below.poll_cq, __ATOMIC_RELEASE);
	tap->poll_wrapped = false;
}

static void before_fork(void)
{
	dapl_spin_lock(&lock);
}

static void after_fork(void)
{
	dapl_spin_unlock(&lock);
}

static void watch_forks(void)
{
	static struct dapl_fork_part part = { .rank = RANK_VERBS_TAP, .before = before_fork,
		.parent = after_fork, .child = after_fork };

	dapl_fork_register(&part);
}

static void begin(struct dapl_device *dev, struct hw_tap *new)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct hw_tap *tap;

	pthread_once(&once, watch_forks);
	dapl_spin_lock(&lock);
	tap = tap_of(dev->verbs);
	if (!tap && new) {
		tap = new;
		tap->verbs = dev->verbs;
		tap->next = taps;
		taps = tap;
		new = NULL;
	}
	if (tap) {
		wrap(tap);
		tap->on = true;
	}
	dapl_spin_unlock(&lock);
	free(new);
}

static void end(struct dapl_device *dev)
{
	struct hw_tap *tap;

	dapl_spin_lock(&lock);
	tap = tap_of(dev->verbs);
	if (tap && tap->on) {
		tap->on = false;
		unwrap(tap);
		forget_connections(tap);
	}
	dapl_spin_unlock(&lock);
}

void hw_tap(struct dapl_device *dev, bool on)
{
	if (!on) {
		end(dev);
		return;
	}
	begin(dev, calloc(1, sizeof(struct hw_tap)));
	put_connections(dev);
}

void hw_tap_close(struct dapl_device *dev)
{
	struct hw_tap *gone = NULL;

	dapl_spin_lock(&lock);
	for (struct hw_tap **at = &taps; *at; at = &(*at)->next)
		if ((*at)->verbs == dev->verbs) {
			gone = *at;
			*at = gone->next;
			break;
		}
	dapl_spin_unlock(&lock);
	if (gone)
		forget_connections(gone);
	free(gone);
}

int (*hw_tap_poll_below(const struct ibv_context *verbs))(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int (*poll)(struct ibv_cq *cq, int n, struct ibv_wc *wc) = verbs->ops.poll_cq;
	const struct hw_tap *tap;

	dapl_spin_lock(&lock);
	tap = tap_of(verbs);
	if (tap && tap->poll_wrapped)
		poll = tap->below.poll_cq;
	dapl_spin_unlock(&lock);
	return poll;
}
