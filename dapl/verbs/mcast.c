/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - memberships of datagram queue pairs in multicast groups. rdma_cm joins the group: through the
 * subnet manager on InfiniBand, by a membership report of the kernel on RoCE. This file attaches the queue
 * pair, since it belongs to no rdma_cm_id.
 *
 * A task on the service thread destroys the id and frees the membership, as in cm.c. The lock guards the
 * queue pair: leave takes the lock, so a queue pair seen under it lives. */
#include "hw.h"
#include "mcast.h"
#include "common/address.h"
#include "common/container_of.h"
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/cause.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct dapl_membership {
	struct cm_target target;
	struct dapl_device *dev;
	struct rdma_cm_id *id;
	struct sockaddr_storage group;
	void *owner;
	bool send_only;

	struct dapl_mutex lock;		/* guards what follows */
	struct ibv_qp *qp;		/* NULL once it was left */
	bool attached;
	union ibv_gid gid;		/* of the attachment */
	uint16_t lid;
	struct ibv_ah *ah;
	struct dapl_task task;
};

/* Joins a group to send only, if the network supports such members, to which it need not deliver anything.
 * Else joins as a full member, whose queue pair is not attached. */
static int start_join(struct dapl_membership *m)
{
	struct rdma_cm_join_mc_attr_ex attr = {
		.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS,
		.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER,
		.addr = (struct sockaddr *)&m->group,
	};

	if (m->send_only && !rdma_join_multicast_ex(m->id, &attr, NULL))
		return 0;
	return rdma_join_multicast(m->id, (struct sockaddr *)&m->group, NULL) ? errno : 0;
}

static int bind_id(struct dapl_membership *m)
{
	struct dapl_device *dev = m->dev;
	struct sockaddr_storage local = dev->attr.address;

	if (rdma_bind_addr(m->id, (struct sockaddr *)&local))
		return errno;
	return m->id->verbs && m->id->port_num == dev->attr.port &&
	       !strcmp(ibv_get_device_name(m->id->verbs->device), dev->attr.device) ? 0 : ENODEV;
}

int hw_mcast_join(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group, bool send_only,
		  void *owner, struct dapl_membership **membership)
{
	struct dapl_membership *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return ENOMEM;
	*m = (struct dapl_membership){ .target.kind = CM_MEMBERSHIP, .dev = dev, .owner = owner,
		.send_only = send_only, .qp = qp };
	dapl_mutex_init(&m->lock, RANK_VERBS_CONN);
	address_copy(&m->group, group);
	if (rdma_create_id(dev->channel, &m->id, &m->target, RDMA_PS_UDP)) {
		err = errno;
		free(m);
		return err;
	}
	*membership = m;	/* before the event, whose upcall passes it */
	err = bind_id(m);
	if (!err)
		err = start_join(m);
	if (err) {
		rdma_destroy_id(m->id);
		free(m);
	}
	return err;
}

static void end_membership(struct dapl_task *task)
{
	struct dapl_membership *m = container_of(task, struct dapl_membership, task);

	rdma_destroy_id(m->id);		/* leaves the group */
	dapl_up_released(m->owner);
	free(m);
}

void hw_mcast_leave(struct dapl_membership *m)
{
	dapl_mutex_lock(&m->lock);
	if (m->attached)
		ibv_detach_mcast(m->qp, &m->gid, m->lid);
	if (m->ah)
		ibv_destroy_ah(m->ah);
	m->qp = NULL;
	dapl_task_queue(&m->task, end_membership);
	dapl_mutex_unlock(&m->lock);
}

/* --- events ---------------------------------------------------------------------------------- */

/* Lock held. */
static int attach(struct dapl_membership *m, const struct rdma_ud_param *joined)
{
	struct ibv_ah_attr attr = joined->ah_attr;
	int err;

	assert_held(&m->lock);
	attr.port_num = m->dev->attr.port;
	m->ah = ibv_create_ah(m->qp->pd, &attr);
	if (!m->ah)
		return hw_null_errno();
	if (m->send_only)
		return 0;
	m->gid = attr.grh.dgid;
	m->lid = attr.dlid;
	err = hw_errno(ibv_attach_mcast(m->qp, &m->gid, m->lid));
	m->attached = !err;
	return err;
}

static void trace_event(const struct dapl_membership *m, const struct rdma_cm_event *event, int err)
{
	char text[DIAG_ADDRESS];

	trace(err ? TRC_LVL_ERROR : TRC_LVL_NORMAL, err ? TRC_DAPL_ERROR : TRC_DAPL_EVENT, "multicast", m,
	      rdma_event_str(event->event), "group %s, status %d, errno %d",
	      dapl_cause_address(&m->group, text), event->status, err);
}

void hw_mcast_event(struct cm_target *target, const struct rdma_cm_event *event)
{
	struct dapl_membership *m = container_of(target, struct dapl_membership, target);
	struct dapl_ud_peer to = { .qpn = event->param.ud.qp_num, .qkey = event->param.ud.qkey };
	int err = abs(event->status);

	if (event->event == RDMA_CM_EVENT_MULTICAST_ERROR)
		err = err ? err : EIO;
	else if (event->event != RDMA_CM_EVENT_MULTICAST_JOIN)
		return;
	dapl_mutex_lock(&m->lock);
	if (!m->qp || (!err && m->ah)) {	/* left, or joined already */
		dapl_mutex_unlock(&m->lock);
		return;
	}
	if (!err)
		err = attach(m, &event->param.ud);
	to.ah = m->ah;
	dapl_mutex_unlock(&m->lock);
	trace_event(m, event, err);
	dapl_up_joined(m->owner, m, err, &to);
}
