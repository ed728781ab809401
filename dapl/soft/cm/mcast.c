/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mcast.c - the life of a membership in a multicast group, and its upcalls to core. rdmap/mcast.c has
 * the sockets and the datagrams.
 *
 * The kernel joins at once, so the call itself returns its errors. A task on the service thread makes the
 * upcalls to core, and frees the membership after it was left. */
#include "dapl/soft/cm/mcast.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/rdmap/mcast.h"
#include "dapl/soft/rdmap/ud.h"
#include <errno.h>
#include <stdlib.h>

/* Guarded by the progress lock. */
struct dapl_membership {
	struct dapl_device *dev;
	struct soft_member member;
	struct dapl_ud_peer to;
	void *owner;
	bool reported, left;	/* dapl_up_joined() was called or is not due; the membership was left */
	bool last;		/* the next run of the task frees it */
	struct dapl_task task;
};

static void membership_work(struct dapl_task *task)
{
	struct dapl_membership *m = container_of(task, struct dapl_membership, task);
	struct dapl_ud_peer to;
	bool report, left;

	soft_progress_lock(m->dev);
	left = m->left;
	report = !left && !m->reported;
	to = m->to;
	m->reported = true;
	soft_progress_unlock(m->dev);
	if (report)
		dapl_up_joined(m->owner, m, 0, &to);
	if (left && m->last) {
		dapl_up_released(m->owner);
		free(m);
	} else if (left) {	/* the task may be queued again already */
		m->last = true;
		dapl_task_queue(&m->task, membership_work);
	}
}

int soft_mcast_join_group(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group,
			  bool send_only, void *owner, struct dapl_membership **membership)
{
	struct dapl_membership *m = calloc(1, sizeof *m);
	int err;

	if (!m)
		return ENOMEM;
	*m = (struct dapl_membership){
		.dev = dev, .owner = owner, .member.qp = soft_qp(qp),
		.to = { .qpn = SOFT_MCAST_QPN, .qkey = SOFT_MCAST_QKEY },
	};
	err = soft_ud_ah_create(qp->pd, group, SOFT_MCAST_PORT, &m->to.ah);
	if (err) {
		free(m);
		return err;
	}
	soft_progress_lock(dev);
	err = soft_mcast_may_send(dev);
	if (!err)
		err = soft_mcast_check_route(dev, group);
	if (!err && !send_only)
		err = soft_mcast_join(dev, group, &m->member);
	soft_progress_unlock(dev);
	if (err) {
		soft_ud_ah_destroy(m->to.ah);
		free(m);
		return err;
	}
	*membership = m;
	dapl_task_queue(&m->task, membership_work);
	return 0;
}

void soft_mcast_leave_group(struct dapl_membership *m)
{
	struct dapl_device *dev = m->dev;

	soft_progress_lock(dev);
	soft_mcast_leave(dev, &m->member);
	soft_ud_ah_destroy(m->to.ah);
	m->left = true;
	dapl_task_queue(&m->task, membership_work);
	soft_progress_unlock(dev);
}
