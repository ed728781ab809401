/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* send.c - sends of raw Ethernet QPs: at once, together with those that follow, or by rate and launch time.
 *
 * A send completes when the kernel has copied the frame. One that has to wait, and all behind it, go to a
 * ring: completions have the order of the posts. So does one that tells when its frame left: it stays at the head, and
 * no other frame leaves, until its time is known. The ring is emptied by the service thread at a timer, and by each
 * post. Frames at its head that may leave at the same time leave in one system call. So a send with ETH_SEND_MORE
 * goes to the ring, too: it is held there until a post without the flag, a full batch or the timer. The memory of a
 * frame is looked up again when it leaves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/container_of.h"
#include "common/frame_layout.h"
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/eth/raw.h"
#include "dapl/soft/eth/receive.h"
#include "dapl/soft/eth/send.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/tunables.h"
#include "dapl/softeth/port.h"

/* --- one frame; qp->lock held ------------------------------------------------------------ */

static void complete_at(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status, uint64_t time)
{
	struct ibv_wc wc = { .wr_id = wr->wr_id, .opcode = IBV_WC_SEND, .status = status,
		.qp_num = qp->qp.qp_num, .src_qp = (uint32_t)(time >> 32), .imm_data = (uint32_t)time };

	assert_held(&qp->lock);
	if (status != IBV_WC_SUCCESS || soft_is_signaled(qp, wr->send_flags))
		soft_cq_add(soft_cq(qp->qp.send_cq), &wc, false);
}

static void complete(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	complete_at(qp, wr, status, 0);
}

static enum ibv_wc_status status_of(int err)
{
	switch (err) {
	case 0:
		return IBV_WC_SUCCESS;
	case EMSGSIZE:
		return IBV_WC_LOC_LEN_ERR;
	case EINVAL:
		return IBV_WC_LOC_QP_OP_ERR;
	default:
		return IBV_WC_GENERAL_ERR;	/* ETH-19 */
	}
}

/* The bytes of the frame, or of all frames that a message is cut into. The port refuses such a message
 * without a segment size. */
static uint64_t bytes_of(const struct ibv_send_wr *wr, const struct dapl_eth_send *how)
{
	uint64_t length = 0, frames = 1;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (how && (how->flags & ETH_SEND_TSO) && how->mss && length > how->header_length) {
		frames = (length - how->header_length + how->mss - 1) / how->mss;
		length += (frames - 1) * how->header_length;
	}
	return length + (how && (how->flags & ETH_SEND_VLAN) ? frames * 4 : 0);
}

/* Core lets a send exceed the limits of the device by a VLAN tag, which the frame must have. In memory that cannot be
 * read there is none. ETH-5. */
static bool is_too_long(const struct soft_eth *eth, const struct ibv_send_wr *wr, const struct dapl_eth_send *how)
{
	const uint32_t most = how && (how->flags & ETH_SEND_TSO) ? eth->config.max_tso : eth->config.max_frame;
	struct iovec iov[SOFT_MAX_SGE];
	uint64_t length = 0;
	int n;

	for (int i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length <= most)
		return false;
	if (how && (how->flags & ETH_SEND_VLAN))
		return true;
	n = soft_eth_pieces(eth->qp, wr->sg_list, wr->num_sge, 0, iov);
	return n < 0 || !eth_pieces_tagged(iov, n);
}

static void trace_wrong(const struct soft_qp *qp, const char *wrong)
{
	if (wrong)
		soft_trace(TRC_LVL_ERROR, "qp", qp, "send refused: %s", wrong);
}

static bool is_stamped(const struct dapl_eth_send *how)
{
	return how && (how->flags & ETH_SEND_STAMP);
}

/* A send with a time of departure is not held: the port reports that time for one frame at a time. */
static bool has_more(const struct dapl_eth_send *how)
{
	return how && (how->flags & (ETH_SEND_MORE | ETH_SEND_STAMP)) == ETH_SEND_MORE;
}

/* How late the turn of a frame may be, in ns. One with a launch time cannot have left before that, so the wait for it
 * is no delay of the queue. ETH-25. */
static uint64_t lag_of(const struct dapl_eth_send *how, bool waited)
{
	uint64_t now;

	if (!waited)
		return 0;
	if (!how || !(how->flags & ETH_SEND_LAUNCH))
		return UINT64_MAX;
	now = clock_read_ns(CLOCK_REALTIME);
	return now > how->launch ? now - how->launch : 0;
}

static void charge(struct soft_eth *eth, const struct ibv_send_wr *wr, const struct dapl_eth_send *how, bool waited)
{
	if (eth->pace.rate)
		pace_charge(&eth->pace, clock_now_ns(), bytes_of(wr, how), lag_of(how, waited));
}

/* Returns an errno value if the frame did not leave: EAGAIN or ENOBUFS, it may later; EINVAL, the frame is wrong.
 * EINPROGRESS: it left, and its time is to come. */
static int send_frame(struct soft_qp *qp, const struct ibv_send_wr *wr, const struct dapl_eth_send *how, bool waited)
{
	struct iovec iov[SOFT_MAX_SGE];
	int n = soft_eth_pieces(qp, wr->sg_list, wr->num_sge, 0, iov), err;
	const char *wrong = NULL;

	if (n < 0) {
		complete(qp, wr, IBV_WC_LOC_PROT_ERR);	/* ETH-5 */
		return 0;
	}
	err = soft_eth_ports->send(qp->eth->port, iov, n, how, &wrong);
	trace_wrong(qp, wrong);
	if (err == EAGAIN || err == ENOBUFS || err == EINVAL)
		return err;
	if (!err)
		charge(qp->eth, wr, how, waited);
	if (!err && is_stamped(how))
		return EINPROGRESS;
	complete(qp, wr, status_of(err));
	return 0;
}

/* Nanoseconds until the frame may leave; 0: now. ETH-26. */
static uint64_t wait_of(const struct soft_eth *eth, const struct dapl_eth_send *how)
{
	uint64_t due = pace_due(&eth->pace), now, wait = 0, launch;

	if (due) {
		now = clock_now_ns();
		wait = due > now ? due - now : 0;
	}
	if (how && (how->flags & ETH_SEND_LAUNCH)) {
		now = clock_read_ns(CLOCK_REALTIME);
		launch = how->launch > now ? how->launch - now : 0;
		wait = launch > wait ? launch : wait;
	}
	return wait;
}

/* --- the ring; qp->lock held -------------------------------------------------------------- */

static struct eth_pending *pending(const struct soft_eth *eth, uint32_t index)
{
	return &eth->pending[index & (eth->qp->sq_size - 1)];
}

static const struct dapl_eth_send *how_of(const struct eth_pending *p)
{
	return p->has_how ? &p->how : NULL;
}

static void set_timer(struct soft_eth *eth, uint64_t wait)
{
	struct itimerspec when = { .it_value.tv_nsec = 0 };

	if (wait > ETH_LONGEST_WAIT_NS)
		wait = ETH_LONGEST_WAIT_NS;
	when.it_value.tv_sec = (time_t)(wait / 1000000000);
	when.it_value.tv_nsec = (long)(wait % 1000000000) + !wait;
	timerfd_settime(eth->timer, 0, &when, NULL);
	eth->hold_timing = false;
}

/* Completes a frame that has left, once its time is known or will not be. ETH-36. */
static bool complete_stamped(struct soft_eth *eth, struct eth_pending *p)
{
	uint64_t time = 0;

	if (soft_eth_ports->stamp(eth->port, &time) && clock_now_ns() < p->give_up_ns)
		return false;
	complete_at(eth->qp, &p->wr, IBV_WC_SUCCESS, time);
	return true;
}

/* Returns 0 if the head of the ring is done, else the time until the next try. */
static uint64_t try_head(struct soft_eth *eth)
{
	struct eth_pending *p = pending(eth, eth->head);
	uint64_t wait;
	int err;

	if (!p->give_up_ns) {
		wait = wait_of(eth, how_of(p));
		if (wait)
			return wait;
		err = send_frame(eth->qp, &p->wr, how_of(p), p->waited);
		if (err == EAGAIN || err == ENOBUFS) {
			p->waited = true;
			return ETH_RETRY_NS;
		}
		if (err && err != EINPROGRESS)	/* the program has changed the frame since it was posted */
			complete(eth->qp, &p->wr, status_of(err));
		if (err != EINPROGRESS)
			return 0;
		p->give_up_ns = clock_now_ns() + ETH_STAMP_NS;
	}
	return complete_stamped(eth, p) ? 0 : ETH_RETRY_NS;
}

/* Finds the memory of the frames at the head of the ring that may leave now, `most` at most, and
 * charges them to the rate. Returns their number. A frame that try_head() has to send, for a time of
 * departure or because its memory is not registered, ends the batch. */
static int gather_batch(struct soft_eth *eth, int most, struct eth_out *out, struct iovec *iov)
{
	const struct soft_qp *qp = eth->qp;
	int n = 0, used = 0;

	for (; n < most && eth->head + (uint32_t)n != eth->tail; n++) {
		struct eth_pending *p = pending(eth, eth->head + (uint32_t)n);

		if (is_stamped(how_of(p)) || used + p->wr.num_sge > ETH_BATCH_PIECES || wait_of(eth, how_of(p)) ||
		    soft_eth_pieces(qp, p->wr.sg_list, p->wr.num_sge, 0, iov + used) < 0)
			break;
		out[n] = (struct eth_out){ iov + used, p->wr.num_sge, how_of(p) };
		used += p->wr.num_sge;
		charge(eth, &p->wr, how_of(p), p->waited);
	}
	return n;
}

/* Sends frames at the head together. Returns how many are done. *wait is the time until the next try,
 * or 0. */
static int try_batch(struct soft_eth *eth, int most, uint64_t *wait)
{
	struct eth_out out[ETH_BATCH];
	struct iovec iov[ETH_BATCH_PIECES];
	struct pace before = eth->pace;
	int n = gather_batch(eth, most, out, iov), sent, err;
	const char *wrong;

	*wait = 0;
	if (n < 2) {
		eth->pace = before;
		*wait = try_head(eth);
		return !*wait;
	}
	err = soft_eth_ports->send_batch(eth->port, out, n, &sent, &wrong);
	trace_wrong(eth->qp, wrong);
	if (sent < n)
		eth->pace = before;
	for (int i = 0; i < sent; i++) {
		struct eth_pending *p = pending(eth, eth->head + (uint32_t)i);

		if (sent < n)
			charge(eth, &p->wr, how_of(p), p->waited);
		complete(eth->qp, &p->wr, IBV_WC_SUCCESS);
	}
	if (err == EAGAIN || err == ENOBUFS)
		*wait = ETH_RETRY_NS;
	else if (err)
		complete(eth->qp, &pending(eth, eth->head + (uint32_t)sent)->wr, status_of(err));
	return sent + (err && !*wait);
}

/* Sends what may leave, and sets the timer for the rest. */
static void drain(struct soft_eth *eth)
{
	uint64_t wait = 0;
	int done = 0, n;

	if (eth->qp->state == IBV_QPS_ERR)
		soft_eth_flush_sends(eth);
	for (; !wait && eth->head != eth->tail && done < ETH_BATCH; done += n) {
		n = try_batch(eth, ETH_BATCH - done, &wait);
		eth->head += (uint32_t)n;
	}
	for (uint32_t i = eth->head; eth->holding && i != eth->tail; i++)
		pending(eth, i)->waited = true;
	eth->holding = false;
	if (eth->head != eth->tail)
		set_timer(eth, wait);
}

/* The timer that runs for what was held before is left alone: it is set again when it fires, if need be. So frames
 * are held for ETH_HOLD_NS at least and twice that at most, unless they leave with others, and a batch costs no
 * system call for it. ETH-37. */
static void hold(struct soft_eth *eth)
{
	assert_held(&eth->qp->lock);
	if (!eth->holding) {
		eth->holding = true;
		eth->hold_first = eth->head;
	}
	if (eth->tail - eth->head == ETH_BATCH || eth->tail - eth->head == eth->qp->sq_size) {
		drain(eth);
	} else if (!eth->hold_timing) {
		set_timer(eth, ETH_HOLD_NS);
		eth->hold_timing = true;
		eth->hold_timed = eth->hold_first;
	}
}

/* The timer has fired: frames that were held since it was set leave, and younger ones get their time. */
static void end_hold(struct soft_eth *eth)
{
	bool young = eth->holding && eth->hold_timing && eth->hold_timed != eth->hold_first;

	assert_held(&eth->qp->lock);
	eth->hold_timing = false;
	if (young)
		hold(eth);
	else
		drain(eth);
}

static void timer_fired(struct dapl_watch *watch)
{
	struct soft_eth *eth = container_of(watch, struct soft_eth, timer_watch);
	uint64_t times;

	dapl_mutex_lock(&eth->qp->lock);
	if (read(eth->timer, &times, sizeof times) == sizeof times)
		end_hold(eth);
	dapl_mutex_unlock(&eth->qp->lock);
}

static int need_ring(struct soft_eth *eth)
{
	int err;

	if (!eth->pending)
		eth->pending = calloc(eth->qp->sq_size, sizeof *eth->pending);
	if (!eth->sges)
		eth->sges = calloc((size_t)eth->qp->sq_size * eth->qp->max_send_sge, sizeof *eth->sges);
	if (!eth->pending || !eth->sges)
		return ENOMEM;
	if (eth->timer >= 0)
		return 0;
	eth->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (eth->timer < 0)
		return errno;
	err = dapl_watch_start(&eth->timer_watch, eth->timer, timer_fired);
	if (err) {
		close(eth->timer);
		eth->timer = -1;
	}
	return err;
}

static int check_frame(struct soft_eth *eth, const struct ibv_send_wr *wr, const struct dapl_eth_send *how)
{
	struct iovec iov[SOFT_MAX_SGE];
	int n = soft_eth_pieces(eth->qp, wr->sg_list, wr->num_sge, 0, iov);
	const char *wrong = n < 0 ? NULL : soft_eth_ports->check(eth->port, iov, n, how);

	trace_wrong(eth->qp, wrong);
	return wrong ? EINVAL : 0;
}

static int enqueue(struct soft_eth *eth, const struct ibv_send_wr *wr, const struct dapl_eth_send *how, uint64_t wait)
{
	struct soft_qp *qp = eth->qp;
	struct eth_pending *p;
	int err = check_frame(eth, wr, how);

	if (err || (err = need_ring(eth)))
		return err;
	if (eth->tail - eth->head == qp->sq_size)
		return ENOMEM;
	p = pending(eth, eth->tail);
	p->wr = *wr;
	p->wr.sg_list = eth->sges + (size_t)(p - eth->pending) * qp->max_send_sge;
	memcpy(p->wr.sg_list, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
	p->has_how = how != NULL;
	p->waited = wait || (eth->head != eth->tail && !eth->holding);
	p->give_up_ns = 0;
	if (how)
		p->how = *how;
	eth->tail++;
	return 0;
}

/* A send that waits, that is held, or that is behind others. */
static int post_behind(struct soft_eth *eth, const struct ibv_send_wr *wr, const struct dapl_eth_send *how,
		       uint64_t wait)
{
	bool holds = has_more(how) && !wait && (eth->holding || eth->head == eth->tail);
	bool first = eth->head == eth->tail;
	int err = enqueue(eth, wr, how, wait);

	assert_held(&eth->qp->lock);
	if (err)
		return err;
	if (holds)
		hold(eth);
	else if (eth->holding || (!wait && is_stamped(how)))
		drain(eth);
	else if (first)
		set_timer(eth, wait);
	return 0;
}

/* Returns an errno value if the frame is not accepted: the post fails. */
static int post_one(struct soft_eth *eth, const struct ibv_send_wr *wr)
{
	struct soft_qp *qp = eth->qp;
	const struct dapl_eth_send *how = wr->opcode == IBV_WR_DRIVER1 ?
		&((const struct dapl_eth_wr *)wr)->how : NULL;
	bool late = how && (how->flags & ETH_SEND_LAUNCH) && how->launch <= clock_read_ns(CLOCK_REALTIME);
	uint64_t wait;
	int err;

	if ((wr->opcode != IBV_WR_SEND && !how) || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->max_send_sge)
		return EINVAL;
	if (is_too_long(eth, wr, how))
		return EMSGSIZE;
	if (qp->state == IBV_QPS_ERR) {
		soft_eth_flush_sends(eth);
		complete(qp, wr, IBV_WC_WR_FLUSH_ERR);
		return 0;
	}
	if (eth->head != eth->tail && !eth->holding)
		drain(eth);
	wait = wait_of(eth, how);
	eth->stamps |= is_stamped(how);
	if (wait || eth->head != eth->tail || is_stamped(how) || has_more(how))
		err = post_behind(eth, wr, how, wait);
	else
		err = send_frame(qp, wr, how, false);
	eth->late += late && !err;	/* ETH-26 */
	return err;
}

int soft_eth_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct soft_qp *qp = soft_qp(ibqp);
	int err = 0;

	dapl_mutex_lock(&qp->lock);
	for (; wr && !(err = post_one(qp->eth, wr)); wr = wr->next)
		;
	dapl_mutex_unlock(&qp->lock);
	*bad = wr;
	return err;
}

/* --- rate, and the end ---------------------------------------------------------------------- */

int soft_eth_pace(struct ibv_qp *ibqp, const struct dapl_eth_pace *pace)
{
	struct soft_qp *qp = soft_qp(ibqp);

	dapl_mutex_lock(&qp->lock);
	pace_set(&qp->eth->pace, pace->bits_per_s, pace->burst);
	if (qp->eth->head != qp->eth->tail)
		drain(qp->eth);
	dapl_mutex_unlock(&qp->lock);
	return 0;
}

/* ETH-26, 36, 37 */
void soft_eth_flush_sends(struct soft_eth *eth)
{
	eth->holding = false;
	for (; eth->head != eth->tail; eth->head++)
		complete(eth->qp, &pending(eth, eth->head)->wr,
			 pending(eth, eth->head)->give_up_ns ? IBV_WC_SUCCESS : IBV_WC_WR_FLUSH_ERR);
}

/* Takes a time that comes too late, too: else the socket would stay readable. */
void soft_eth_collect_stamp(struct soft_eth *eth)
{
	uint64_t late;

	assert_held(&eth->qp->lock);
	if (eth->head != eth->tail && pending(eth, eth->head)->give_up_ns)
		drain(eth);
	else if (eth->stamps)
		soft_eth_ports->stamp(eth->port, &late);
}

void soft_eth_drop_sends(struct soft_eth *eth)
{
	dapl_mutex_lock(&eth->qp->lock);
	eth->head = eth->tail = 0;
	eth->holding = false;
	pace_set(&eth->pace, 0, 0);
	dapl_mutex_unlock(&eth->qp->lock);
}

void soft_eth_end_sends(struct soft_eth *eth)
{
	soft_eth_drop_sends(eth);
	dapl_watch_stop(&eth->timer_watch);
	if (eth->timer >= 0)
		close(eth->timer);
	free(eth->pending);
	free(eth->sges);
}
