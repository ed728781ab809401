/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_device.c - see core_device.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "test/unit/core/core_device.h"
#include "test/unit/core/core_queues.h"
#include "dapl/core/event/calls.h"
#include "dapl/core/event/evd.h"

enum { CQ_ENTRIES = 1024 };

struct core_device core_device;

struct core_cq {
	struct ibv_cq cq;
	struct ibv_wc wc[CQ_ENTRIES];
	int n;
};

static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct core_cq *own = (struct core_cq *)cq;
	int n = entries < own->n ? entries : own->n;

	if (core_device.polling)
		core_device.polling(cq);
	memcpy(wc, own->wc, (size_t)n * sizeof *wc);
	memmove(own->wc, own->wc + n, (size_t)(own->n - n) * sizeof *wc);
	own->n -= n;
	return n;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	(void)cq, (void)solicited;
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return core_device.post_send ? core_device.post_send(qp, wr) : 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)qp;
	*bad = wr;
	return core_device.post_recv ? core_device.post_recv(wr) : 0;
}

static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	(void)srq;
	*bad = wr;
	return core_device.post_srq_recv ? core_device.post_srq_recv(wr) : 0;
}

static struct ibv_context context = { .ops = { .poll_cq = poll_cq, .req_notify_cq = req_notify_cq,
	.post_send = post_send, .post_recv = post_recv, .post_srq_recv = post_srq_recv } };

struct ibv_context *core_context(void) { return &context; }

struct ibv_qp *core_qp(void)
{
	static struct ibv_qp qp = { .context = &context, .qp_num = 17 };

	return &qp;
}

void core_complete(struct dapl_evd *evd, const struct ibv_wc *wc)
{
	struct core_cq *cq = (struct core_cq *)evd->cq;

	cq->wc[cq->n++] = *wc;
}

static int open_device(const char *params, void *owner, struct dapl_device **dev)
{
	static char device;	/* its address is one */

	(void)owner;
	core_device.opened = params;
	if (core_device.open_error)
		return core_device.open_error;
	core_device.opens++;
	*dev = (struct dapl_device *)&device;
	return 0;
}

static void close_device(struct dapl_device *dev)
{
	(void)dev;
	core_device.opens--;
}

static int query(struct dapl_device *dev, struct dapl_device_attr *attr)
{
	(void)dev;
	if (core_device.query_error)
		return core_device.query_error;
	*attr = core_device.attr;
	return 0;
}

static int create_channel(struct dapl_device *dev, struct ibv_comp_channel **channel)
{
	(void)dev;
	*channel = calloc(1, sizeof **channel);
	(*channel)->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return 0;
}

static int destroy_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

static int create_cq(struct dapl_device *dev, int cqe, void *cq_context,
		     struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	struct core_cq *new = calloc(1, sizeof *new);

	(void)dev;
	new->cq = (struct ibv_cq){ .context = &context, .channel = channel, .cqe = cqe,
		.cq_context = cq_context };
	*cq = &new->cq;
	core_device.cqs++;
	return 0;
}

static int resize_cq(struct ibv_cq *cq, int cqe)
{
	int err = core_device.resize_cq ? core_device.resize_cq(cq, cqe) : 0;

	if (!err)
		cq->cqe = cqe;
	return err;
}

static int destroy_cq(struct ibv_cq *cq)
{
	free(cq);
	core_device.cqs--;
	return 0;
}

static int get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq)
{
	(void)channel, (void)cq;
	return core_device.channel_error ? core_device.channel_error : EAGAIN;
}

static int error_qp(struct ibv_qp *qp)
{
	if (core_device.error_qp)
		core_device.error_qp(qp);
	return 0;
}

static int reset_qp(struct dapl_device *dev, struct ibv_qp *qp)
{
	(void)dev;
	return core_device.reset_qp ? core_device.reset_qp(qp) : 0;
}

static int start_connecting(struct dapl_device *dev, const struct dapl_conn_params *params, struct dapl_conn **conn)
{
	(void)dev;
	return core_device.connect ? core_device.connect(params, conn) : ENETUNREACH;
}

static int accept_request(struct dapl_conn *conn, const struct dapl_conn_params *params)
{
	return core_device.accept ? core_device.accept(conn, params) : 0;
}

static int reject(struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len)
{
	return core_device.reject ? core_device.reject(conn, by_consumer, pdata, len) : 0;
}

static int destroy_ah(struct ibv_ah *ah)
{
	if (core_device.destroy_ah)
		core_device.destroy_ah(ah);
	return 0;
}

static int disconnect(struct dapl_conn *conn)
{
	if (core_device.disconnect)
		core_device.disconnect(conn);
	return 0;
}

static void release(struct dapl_conn *conn)
{
	if (core_device.release)
		core_device.release(conn);
}

static void explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	if (core_device.explain)
		core_device.explain(conn, cause);
}

static int map_remote(struct ibv_qp *qp, uint32_t rkey, uint64_t remote, uint64_t length,
		      struct dapl_mapping *mapping)
{
	(void)qp;
	return core_device.map_remote ? core_device.map_remote(rkey, remote, length, mapping) : EOPNOTSUPP;
}

static int alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw)
{
	(void)pd;
	if (core_device.alloc_mw_error)
		return core_device.alloc_mw_error;
	if (core_device.killed_by_alloc_mw)
		dapl_object_kill_unused(core_device.killed_by_alloc_mw);
	*mw = calloc(1, sizeof **mw);
	(*mw)->type = type;
	core_device.windows++;
	return 0;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	free(mw);
	core_device.windows--;
	return 0;
}

/* The range of a parameter of a device, for settings.c. */
static const struct dapl_parameter parameters[] = {
	{ "TEST_PARAMETER", 2, 9, 4, PARAMETER_NOW }, { NULL, 0, 0, 0, PARAMETER_NEVER },
};

struct dapl_listener {
	void *sp;
};

static int start_listening(struct dapl_device *dev, const struct sockaddr *address, uint16_t *port, bool ud,
			   int backlog, void *sp, struct dapl_listener **listener)
{
	struct dapl_listener *new;

	(void)dev, (void)address, (void)ud, (void)backlog;
	if (core_device.listen_error)
		return core_device.listen_error;
	new = malloc(sizeof *new);
	new->sp = sp;
	if (!*port)
		*port = CORE_PORT;
	core_device.listeners++;
	if (core_device.listening)
		core_device.listening(sp, *port);
	*listener = new;
	return 0;
}

static void stop_listening(struct dapl_listener *listener)
{
	core_device.listeners--;
	free(listener);
}

static void tap(struct dapl_device *dev, bool on) { (void)dev, (void)on; }

static int begin_sleep(struct dapl_device *dev, bool for_data)
{
	(void)dev, (void)for_data;
	return core_device.sleep ? core_device.sleep() : -1;
}

static bool work(struct dapl_device *dev)
{
	(void)dev;
	return core_device.work && core_device.work();
}

static void end_sleep(struct dapl_device *dev)
{
	(void)dev;
	if (core_device.awake)
		core_device.awake();
}

const struct dapl_device_ops dapl_device_ops = {
	.name = "test", .posts_may_sleep = true, .rdma_parameters = true,
	.open = open_device, .close = close_device, .query = query,
	.create_channel = create_channel, .destroy_channel = destroy_channel,
	.create_cq = create_cq, .resize_cq = resize_cq, .destroy_cq = destroy_cq,
	.get_cq_event = get_cq_event, .error_qp = error_qp, .reset_qp = reset_qp, .disconnect = disconnect,
	.release = release,
	.alloc_pd = core_alloc_pd, .dealloc_pd = core_dealloc_pd, .reg_mr = core_reg_mr,
	.dereg_mr = core_dereg_mr, .create_qp = core_create_qp, .create_delayed_qp = core_create_delayed_qp,
	.destroy_qp = core_destroy_qp, .create_srq = core_create_srq, .modify_srq = core_modify_srq,
	.destroy_srq = core_destroy_srq, .connect = start_connecting, .accept = accept_request,
	.destroy_ah = destroy_ah, .explain = explain,
	.map_remote = map_remote, .alloc_mw = alloc_mw, .dealloc_mw = dealloc_mw, .parameters = parameters,
	.listen = start_listening, .unlisten = stop_listening,
	.reject = reject, .tap = tap,
	.sleep = begin_sleep, .work = work, .awake = end_sleep,
};

/* Of a kind of its own: the memory of an IA would have to be that of ia.c. */
struct dapl_ia *core_ia_new(void)
{
	static DAT_PROVIDER provider;
	struct dapl_ia *ia = dapl_object_new(DAPL_IA, sizeof *ia, NULL, NULL);

	ia->obj.ia = ia;
	ia->obj.provider = &provider;
	ia->attr.limits.max_cqe = CQ_ENTRIES;
	ia->ia_attr.max_evd_qlen = CQ_ENTRIES;
	ia->pid = getpid();
	dapl_mutex_init(&ia->lock, RANK_IA);
	dapl_spin_init(&ia->qp_lock, RANK_IA_QPS);
	dapl_object_publish(&ia->obj);
	return ia;
}

void core_ia_free(struct dapl_ia *ia)
{
	if (dapl_object_kill(&ia->obj))
		dapl_object_put(&ia->obj);
}

struct dapl_evd *core_evd_new(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags)
{
	struct dapl_evd *evd;

	if (dapl_evd_make(ia, qlen, flags, NULL, false, &evd) != DAT_SUCCESS)
		abort();
	dapl_object_publish(&evd->obj);
	return evd;
}

void core_evd_free(struct dapl_evd *evd)
{
	if (dapl_object_kill(&evd->obj))
		dapl_evd_destroy(evd);
}

static void make_queue(struct dapl_ep *ep, struct dapl_queue *q, uint32_t posts)
{
	q->ring = calloc(posts, sizeof *q->ring);
	q->mask = posts - 1;
	q->limit = q->room = posts;
	for (uint32_t i = 0; i < posts; i++)
		q->ring[i].ep = ep;
}

static void end_ep(struct dapl_object *obj)
{
	struct dapl_ep *ep = (struct dapl_ep *)obj;

	free(ep->sq.ring);
	free(ep->rq.ring);
}

struct dapl_ep *core_ep_new(struct dapl_ia *ia, struct dapl_evd *evd, uint32_t posts)
{
	struct dapl_ep *ep = dapl_object_new(DAPL_EP, sizeof *ep, ia, end_ep);

	dapl_mutex_init(&ep->lock, RANK_EP);
	dapl_post_lock_init(&ep->sq.lock, RANK_SQ, dapl_device_ops.posts_may_sleep);
	dapl_post_lock_init(&ep->rq.lock, RANK_RQ, dapl_device_ops.posts_may_sleep);
	make_queue(ep, &ep->sq, posts);
	make_queue(ep, &ep->rq, posts);
	ep->recv_evd = ep->request_evd = ep->connect_evd = evd;
	ep->state = DAT_EP_STATE_CONNECTED;
	ep->up = true;
	ep->qpn = 17;
	ep->soft_hw = ep->hard_hw = DAT_WATERMARK_INFINITE;
	dapl_object_publish(&ep->obj);
	return ep;
}

void core_ep_free(struct dapl_ep *ep)
{
	if (dapl_object_kill(&ep->obj))
		dapl_object_bury(&ep->obj);
}

struct dapl_dto *core_post(struct dapl_ep *ep, int op, unsigned flags, uint64_t cookie)
{
	struct dapl_queue *q = op == DAT_DTO_RECEIVE ? &ep->rq : &ep->sq;
	struct dapl_dto *dto = dapl_queue_next(q);

	*dto = (struct dapl_dto){ .cookie = { .as_64 = cookie }, .ep = ep, .length = 64,
		.end = q->head + 1, .op = (uint8_t)op, .flags = (uint8_t)flags };
	dapl_queue_commit(q);
	return dto;
}

struct dapl_evd *core_async_evd_new(struct dapl_ia *ia)
{
	return ia->async_evd = core_evd_new(ia, 8, DAT_EVD_ASYNC_FLAG);
}

bool core_async_error(struct dapl_evd *evd, DAT_ASYNCH_ERROR_EVENT_DATA *error, DAT_EVENT_NUMBER *number)
{
	DAT_EVENT event;

	if (dapl_evd_dequeue((DAT_EVD_HANDLE)evd, &event) != DAT_SUCCESS)
		return false;
	*error = event.event_data.asynch_error_event_data;
	*number = event.event_number;
	return true;
}
