/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - the operations between core and the device (core/device.h), of which the n-th fails (fault.h),
 * those of the data path included. Operations that end an object fail after they have done it, since they
 * could not be repeated. */
#include <errno.h>
#include "dapl/core/device.h"
#include "fault.h"

/* The linker replaces the first by the second in core (--wrap). */
extern const struct dapl_device_ops __real_dapl_device_ops, __wrap_dapl_device_ops;
#define REAL __real_dapl_device_ops

#define FAILS(what, error) \
	fault_here(FAULT_DEVICE, #what, error, __builtin_return_address(0))

/* --- the data path: ops of the verbs context --------------------------------------------- */

static struct ibv_context_ops path;	/* operations of the device, the same for all contexts */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	*bad = wr;
	return FAILS(post_send, ENOMEM) ? ENOMEM : path.post_send(qp, wr, bad);
}
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return FAILS(post_recv, ENOMEM) ? ENOMEM : path.post_recv(qp, wr, bad);
}
static int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	*bad = wr;
	return FAILS(post_srq_recv, ENOMEM) ? ENOMEM : path.post_srq_recv(srq, wr, bad);
}
static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	return FAILS(bind_mw, ENOMEM) ? ENOMEM : path.bind_mw(qp, mw, bind);
}

static void divert(struct ibv_context *context)
{
	if (context->ops.post_send == post_send)
		return;
	path = context->ops;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_recv;
	context->ops.post_srq_recv = post_srq_recv;
	context->ops.bind_mw = bind_mw;
}

/* --- the table ----------------------------------------------------------------------------- */

#define OPERATION(name, error, parameters, arguments) \
	static int try_##name parameters \
	{ return FAILS(name, error) ? error : REAL.name arguments; }
/* Done all the same. */
#define ENDING(name, error, parameters, arguments) \
	static int try_##name parameters \
	{ int err = REAL.name arguments; return FAILS(name, error) ? error : err; }

OPERATION(open, ENOMEM, (const char *params, void *ia, struct dapl_device **dev), (params, ia, dev))
/* The table below has no operations of raw Ethernet. */
static int try_query(struct dapl_device *dev, struct dapl_device_attr *attr)
{
	int err = FAILS(query, EIO) ? EIO : REAL.query(dev, attr);

	attr->raw_ethernet = false;
	return err;
}
ENDING(dealloc_pd, EIO, (struct ibv_pd *pd), (pd))
OPERATION(reg_mr, ENOMEM, (struct ibv_pd *pd, void *addr, size_t length, int access,
	  const void *name, struct ibv_mr **mr), (pd, addr, length, access, name, mr))
ENDING(dereg_mr, EIO, (struct ibv_mr *mr), (mr))
OPERATION(alloc_dm, ENOMEM, (struct dapl_device *dev, uint64_t length, unsigned log_align,
	  struct ibv_dm **dm), (dev, length, log_align, dm))
ENDING(free_dm, EIO, (struct ibv_dm *dm), (dm))
OPERATION(reg_dm, ENOMEM, (struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, uint64_t length,
	  int access, struct ibv_mr **mr), (pd, dm, offset, length, access, mr))
OPERATION(copy_dm, EIO, (struct ibv_dm *dm, uint64_t offset, void *host, uint64_t length,
	  bool to_device), (dm, offset, host, length, to_device))
OPERATION(map_dm, ENOMEM, (struct ibv_dm *dm, void **at), (dm, at))
OPERATION(alloc_mw, ENOMEM, (struct ibv_pd *pd, enum ibv_mw_type type, struct ibv_mw **mw),
	  (pd, type, mw))
ENDING(dealloc_mw, EIO, (struct ibv_mw *mw), (mw))
OPERATION(create_channel, EMFILE, (struct dapl_device *dev, struct ibv_comp_channel **channel),
	  (dev, channel))
ENDING(destroy_channel, EIO, (struct ibv_comp_channel *channel), (channel))
OPERATION(get_cq_event, EIO, (struct ibv_comp_channel *channel, struct ibv_cq **cq), (channel, cq))
OPERATION(create_cq, ENOMEM, (struct dapl_device *dev, int cqe, void *context,
	  struct ibv_comp_channel *channel, struct ibv_cq **cq), (dev, cqe, context, channel, cq))
OPERATION(resize_cq, ENOMEM, (struct ibv_cq *cq, int cqe), (cq, cqe))
ENDING(destroy_cq, EIO, (struct ibv_cq *cq), (cq))
OPERATION(create_srq, ENOMEM, (struct ibv_pd *pd, struct ibv_srq_init_attr *attr,
	  struct ibv_srq **srq), (pd, attr, srq))
OPERATION(modify_srq, ENOMEM, (struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask),
	  (srq, attr, mask))
ENDING(destroy_srq, EIO, (struct ibv_srq *srq), (srq))
OPERATION(create_qp, ENOMEM, (struct dapl_device *dev, struct ibv_pd *pd,
	  struct ibv_qp_init_attr *attr, struct ibv_qp **qp), (dev, pd, attr, qp))
OPERATION(reset_qp, EIO, (struct dapl_device *dev, struct ibv_qp *qp), (dev, qp))
ENDING(error_qp, EIO, (struct ibv_qp *qp), (qp))
ENDING(destroy_qp, EIO, (struct ibv_qp *qp), (qp))
ENDING(destroy_ah, EIO, (struct ibv_ah *ah), (ah))
OPERATION(join, ENOMEM, (struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group,
	  bool send_only, void *owner, struct dapl_membership **membership),
	  (dev, qp, group, send_only, owner, membership))
OPERATION(listen, EADDRINUSE, (struct dapl_device *dev, const struct sockaddr *addr, uint16_t *port,
	  bool ud, int backlog, void *sp, struct dapl_listener **listener),
	  (dev, addr, port, ud, backlog, sp, listener))
OPERATION(connect, ENOMEM, (struct dapl_device *dev, const struct dapl_conn_params *params,
	  struct dapl_conn **conn), (dev, params, conn))
OPERATION(accept, ENOMEM, (struct dapl_conn *conn, const struct dapl_conn_params *params),
	  (conn, params))
ENDING(reject, EIO, (struct dapl_conn *conn, bool by_consumer, const void *pdata, size_t len),
	  (conn, by_consumer, pdata, len))
OPERATION(disconnect, EIO, (struct dapl_conn *conn), (conn))

static int try_alloc_pd(struct dapl_device *dev, struct ibv_pd **pd)
{
	int err = FAILS(alloc_pd, ENOMEM) ? ENOMEM : REAL.alloc_pd(dev, pd);

	if (!err)
		divert((*pd)->context);
	return err;
}
static void just_close(struct dapl_device *dev)
{
	REAL.close(dev);
}
static void just_unlisten(struct dapl_listener *listener)
{
	REAL.unlisten(listener);
}
static void just_explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	REAL.explain(conn, cause);
}

static void just_release(struct dapl_conn *conn)
{
	REAL.release(conn);
}

static void just_leave(struct dapl_membership *membership)
{
	REAL.leave(membership);
}

const struct dapl_device_ops __wrap_dapl_device_ops = {
	.name = "fault",
	.open = try_open, .close = just_close, .query = try_query,
	.alloc_pd = try_alloc_pd, .dealloc_pd = try_dealloc_pd,
	.reg_mr = try_reg_mr, .dereg_mr = try_dereg_mr,
	.alloc_dm = try_alloc_dm, .free_dm = try_free_dm, .reg_dm = try_reg_dm,
	.copy_dm = try_copy_dm, .map_dm = try_map_dm,
	.alloc_mw = try_alloc_mw, .dealloc_mw = try_dealloc_mw,
	.create_channel = try_create_channel, .destroy_channel = try_destroy_channel,
	.get_cq_event = try_get_cq_event,
	.create_cq = try_create_cq, .resize_cq = try_resize_cq, .destroy_cq = try_destroy_cq,
	.create_srq = try_create_srq, .modify_srq = try_modify_srq, .destroy_srq = try_destroy_srq,
	.create_qp = try_create_qp, .reset_qp = try_reset_qp, .error_qp = try_error_qp,
	.destroy_qp = try_destroy_qp, .destroy_ah = try_destroy_ah,
	.join = try_join, .leave = just_leave,
	.listen = try_listen, .unlisten = just_unlisten,
	.connect = try_connect, .accept = try_accept, .reject = try_reject,
	.disconnect = try_disconnect, .explain = just_explain,
	.release = just_release,
};
