/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.c - see receive.h. The port's descriptor is an input of the device's progress (obj/rnic.h) while there are
 * receives to fill, or a ring is armed; until then frames wait in the kernel. So frames are received by the progress
 * owner: a thread that polls, one that blocks, or the service thread. qp->lock is held while a frame is copied, so that
 * the memory stays registered (obj/mem.h). */
#include "dapl/soft/eth/receive.h"
#include <errno.h>
#include <sys/socket.h>
#include "common/container_of.h"
#include "common/lock.h"
#include "common/once.h"
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/eth/raw.h"
#include "dapl/soft/eth/send.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/softeth/port.h"

int soft_eth_pieces(const struct soft_qp *qp, const struct ibv_sge *sge, int n, int access, struct iovec *iov)
{
	char *at;

	for (int i = 0; i < n; i++) {
		if (soft_mem_local(qp->dev, qp->qp.pd, &sge[i], access, &at) != SOFT_FINE)
			return -1;
		iov[i] = (struct iovec){ at, sge[i].length };
	}
	return n;
}

static void stop_watching(struct soft_eth *eth)
{
	assert_held(&eth->qp->lock);
	if (eth->watching)
		soft_input_unwatch(eth->qp->dev, soft_eth_ports->descriptor(eth->port));
	WRITE_ONCE(eth->watching, false);
}

/* Fills the next posted receive. Returns an errno value if there is no frame. */
static int receive_one(struct soft_eth *eth)
{
	struct soft_qp *qp = eth->qp;
	struct ibv_wc wc = { .opcode = IBV_WC_RECV };
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	struct iovec iov[SOFT_MAX_SGE];
	struct dapl_eth_frame frame;
	int n = soft_eth_pieces(qp, qp->taken->sge, qp->taken->sges, IBV_ACCESS_LOCAL_WRITE, iov);
	int err;

	if (n < 0) {
		status = IBV_WC_LOC_PROT_ERR;
	} else {
		err = soft_eth_ports->receive(eth->port, iov, n, &frame);
		if (err)
			return err;
		wc.byte_len = frame.length;
		eth->config.frames[eth->received & eth->config.mask] = frame;
	}
	wc.src_qp = eth->received++;
	soft_qp_received(qp, status, &wc, false);
	return 0;
}

/* A completion for dat_eth_arm(). */
static void report_ready(struct soft_eth *eth)
{
	const struct ibv_qp *qp = &eth->qp->qp;
	struct ibv_wc wc = { .wr_id = eth->armed_wr, .opcode = IBV_WC_RECV, .qp_num = qp->qp_num };

	eth->armed = false;
	soft_cq_add(soft_cq(qp->recv_cq), &wc, false);
}

/* A receive is taken from an SRQ only for a frame that is there. Without one, srq_posted() is called after the
 * next post. */
static void receive_shared(struct soft_eth *eth)
{
	for (int i = 0; i < ETH_RECEIVE_BATCH && soft_eth_ports->has_frame(eth->port); i++) {
		if (!soft_qp_take_receive(eth->qp)) {
			stop_watching(eth);
			return;
		}
		receive_one(eth);
	}
}

/* Takes the error of the socket, as when the link goes down: until it is taken, the socket stays ready. Returns
 * whether there was one, or it cannot be taken. */
static bool take_error(int fd)
{
	socklen_t size = sizeof(int);
	int err = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) || err;
}

/* Returns false if the socket has neither frames nor an error. It is also ready for times of departure, which may
 * have been taken already: that is EPOLLERR, too. The descriptor of AF_XDP is an epoll set. ETH-19, 36. */
static bool is_ready(const struct soft_eth *eth, uint32_t events)
{
	bool failed;

	if (eth->config.xdp)
		return soft_eth_ports->has_frame(eth->port);
	failed = (events & ~EPOLLIN) && take_error(soft_eth_ports->descriptor(eth->port));
	return failed || (events & EPOLLIN);
}

/* Fills the receives of the QP's own queue. */
static void receive_own(struct soft_eth *eth)
{
	int err = 0;

	for (int i = 0; i < ETH_RECEIVE_BATCH && !err && soft_qp_take_receive(eth->qp); i++)
		err = receive_one(eth);
	if (!soft_qp_take_receive(eth->qp))
		stop_watching(eth);
}

/* The program polls the frames of a ring itself. */
static void wake_poller(struct soft_eth *eth, uint32_t events)
{
	if (eth->armed && is_ready(eth, events))
		report_ready(eth);
	if (!eth->armed)
		stop_watching(eth);
}

/* Progress lock held. The socket reports ENETDOWN once, and works again when the device is up. */
static void serve(struct soft_input *input, uint32_t events, bool polling)
{
	struct soft_eth *eth = container_of(input, struct soft_eth, input);
	struct soft_qp *qp = eth->qp;

	(void)polling;
	dapl_mutex_lock(&qp->lock);
	soft_eth_collect_stamp(eth);
	if (qp->state == IBV_QPS_ERR)
		stop_watching(eth);
	else if (eth->config.ring_frames)
		wake_poller(eth, events);
	else if (qp->srq)
		receive_shared(eth);
	else
		receive_own(eth);
	dapl_mutex_unlock(&qp->lock);
}

static int watch(struct soft_eth *eth)
{
	int err;

	assert_held(&eth->qp->lock);
	if (eth->watching)
		return 0;
	err = soft_input_watch(eth->qp->dev, &eth->input, soft_eth_ports->descriptor(eth->port));
	WRITE_ONCE(eth->watching, !err);
	return err;
}

/* Called after a post to the SRQ, with the progress lock and qp->lock held. */
static void srq_posted(struct soft_qp *qp)
{
	assert_held(&qp->lock);
	if (qp->state != IBV_QPS_ERR)
		watch(qp->eth);
}

static void lock(struct soft_eth *eth)
{
	soft_progress_lock(eth->qp->dev);
	dapl_mutex_lock(&eth->qp->lock);
}

static void unlock(struct soft_eth *eth)
{
	dapl_mutex_unlock(&eth->qp->lock);
	soft_progress_unlock(eth->qp->dev);
}

static int begin_watch(struct soft_eth *eth)
{
	int err = 0;

	lock(eth);
	if (eth->qp->state != IBV_QPS_ERR)
		err = watch(eth);
	unlock(eth);
	return err;
}

/* HOT. The flag is read without qp->lock, behind the post, which holds it: serve() ends watching with that lock held,
 * and not while there is a receive. So what is found watched stays so until a frame has taken the receive. */
static int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct soft_eth *eth = soft_qp(ibqp)->eth;
	int err;

	*bad = wr;
	if (eth->config.ring_frames || eth->qp->srq)
		return EOPNOTSUPP;	/* ETH-7 */
	err = soft_qp_post_recv(ibqp, wr, bad);
	if (err)
		return err;
	if (!READ_ONCE(eth->watching))
		begin_watch(eth);	/* without memory for it the next post tries again */
	return 0;
}

int soft_eth_arm(struct ibv_qp *ibqp, uint64_t wr_id)
{
	struct soft_eth *eth = soft_qp(ibqp)->eth;
	int err = 0;

	lock(eth);
	if (!eth->armed) {
		eth->armed_wr = wr_id;
		err = watch(eth);
		eth->armed = !err;
	}
	unlock(eth);
	return err;
}

void soft_eth_receive_init(struct soft_eth *eth)
{
	eth->input.serve = serve;
	eth->qp->srq_posted = srq_posted;
	eth->verbs.ops.post_recv = post_recv;
}

/* Frames wait for receives of an SRQ that may be there already. */
int soft_eth_receive_begin(struct soft_eth *eth)
{
	return eth->qp->srq ? begin_watch(eth) : 0;
}

void soft_eth_receive_end(struct soft_eth *eth)
{
	lock(eth);
	stop_watching(eth);
	eth->armed = false;
	unlock(eth);
}
