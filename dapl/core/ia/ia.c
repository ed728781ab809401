/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.c - interface adapters: opening, querying, closing, asynchronous errors. Attributes are in attr.c. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>
#include "dapl/core/base/control.h"
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/base/diag.h"
#include "dapl/core/conn/conn.h"
#include "dapl/core/conn/cr.h"
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/service_point.h"
#include "dapl/core/ep/srq.h"
#include "dapl/core/eth/group.h"
#include "dapl/core/event/async.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/ia/attr.h"
#include "dapl/core/ia/ia.h"
#include "dapl/core/ia/net_watch.h"
#include "dapl/core/ia/provider.h"
#include "dapl/core/ia/tap.h"
#include "dapl/core/mem/lmr.h"
#include "dapl/core/mem/rmr.h"

/* --- asynchronous errors ------------------------------------------------------------------ */

static void catastrophe(struct dapl_ia *ia)
{
	if (ia->dead)
		return;
	ia->dead = true;
	log_report(REPORT_DEVICE_LOST, LOG_FIELDS(.ia = ia->ia_attr.adapter_name, .kind = "ia",
		   .object = ia, .result = "DAT_ASYNC_ERROR_IA_CATASTROPHIC"),
		   "%s: device %s failed", ia->ia_attr.adapter_name, ia->attr.device);
	trace_dump(STDERR_FILENO);
	dapl_async_post(ia, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia, DAT_IA_CATASTROPHIC_ERROR);
	dapl_net_device_lost(ia);
}

void dapl_up_async(void *owner, const struct ibv_async_event *event)
{
	struct dapl_ia *ia = owner;

	assert_no_lock_held();
	switch (event->event_type) {
	case IBV_EVENT_QP_FATAL: case IBV_EVENT_QP_REQ_ERR: case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_PATH_MIG_ERR:
		dapl_count(ia, DCNT_IA_ASYNC_QP_ERROR);
		dapl_ep_broken(event->element.qp->qp_context, DAPL_CODE_ASYNC, event->event_type,
			       NULL);
		break;
	case IBV_EVENT_COMM_EST:
		dapl_ep_comm_established(event->element.qp->qp_context);
		break;
	case IBV_EVENT_CQ_ERR:	/* EVD-52 */
		dapl_count(ia, DCNT_IA_ASYNC_CQ_ERROR);
		dapl_async_post(ia, DAT_ASYNC_ERROR_EVD_OVERFLOW, event->element.cq->cq_context,
				DAT_EVD_OVERFLOW_ERROR);
		break;
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		dapl_srq_limit(event->element.srq->srq_context);
		break;
	case IBV_EVENT_SRQ_ERR:
		dapl_srq_failed(event->element.srq->srq_context);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		catastrophe(ia);
		break;
	case IBV_EVENT_PORT_ACTIVE: case IBV_EVENT_PORT_ERR:
		if ((unsigned)event->element.port_num == ia->attr.port)
			dapl_net_port_changed(ia, event->event_type == IBV_EVENT_PORT_ACTIVE);
		break;
	case IBV_EVENT_LID_CHANGE: case IBV_EVENT_PKEY_CHANGE: case IBV_EVENT_GID_CHANGE:
		if ((unsigned)event->element.port_num == ia->attr.port)
			dapl_net_port_changed(ia, -1);
		break;
	default:	/* conn/terminate.c reports the last WQE, on every device in the same way */
		trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ia", ia, NULL, "verbs event %d",
		      event->event_type);
		if ((unsigned)event->event_type > IBV_EVENT_WQ_FATAL)	/* the last one of rdma-core 44 */
			dapl_diag_unknown(ia->attr.device, "asynchronous event", event->event_type, "ignored");
	}
}

/* --- opening --------------------------------------------------------------------------------- */

static void end_ia(struct dapl_object *obj)
{
	struct dapl_ia *ia = (struct dapl_ia *)obj;

	dapl_attr_free(ia);
}

/* Checks the consumer's argument for the asynchronous EVD. Enters *evd, which is NULL before. If it stays
 * NULL and *make is false, the IA gets no asynchronous EVD. IA-4, 5, 6. */
static DAT_RETURN async_argument(const struct dapl_entry *entry, DAT_EVD_HANDLE handle,
				 struct dapl_evd **evd, bool *make)
{
	*make = handle == DAT_HANDLE_NULL;
	if (*make || handle == DAT_EVD_ASYNC_EXISTS || handle == DAT_EVD_OUT_OF_SCOPE)
		return DAT_SUCCESS;
	if ((uintptr_t)handle < 65536)
		return BAD_HANDLE(EVD_ASYNC);
	*evd = dapl_evd_enter(handle);
	return *evd && dapl_async_serves(&entry->table, *evd) ? DAT_SUCCESS : BAD_HANDLE(EVD_ASYNC);
}

DAT_RETURN dapl_ia_open_status(int err)
{
	return err == EINVAL ? BAD_PARAM(1) : dapl_status(err, DAT_RESOURCE_DEVICE);
}

int dapl_ia_open_device(struct dapl_ia *ia, const struct dapl_entry *entry)
{
	int err;

	log_set_ia(entry->info.ia_name);
	err = dapl_device_ops.open(READ_ONCE(entry->params), ia, &ia->dev);
	log_set_ia(NULL);
	return err;
}

static DAT_RETURN open_device(struct dapl_ia *ia, const struct dapl_entry *entry)
{
	DAT_RETURN ret;
	int err;

	err = dapl_service_get();
	if (err)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	err = dapl_ia_open_device(ia, entry);
	if (!err)
		err = dapl_device_ops.query(ia->dev, &ia->attr);
	ret = dapl_ia_open_status(err);
	if (!err)
		ret = dapl_attr_prepare(ia, entry);
	if (ret != DAT_SUCCESS) {
		if (ia->dev)
			dapl_device_ops.close(ia->dev);
		dapl_service_put();
	}
	return ret;
}

static void close_device(struct dapl_ia *ia)
{
	dapl_device_ops.close(ia->dev);
	dapl_diag_flush();
	dapl_service_put();
}

static struct dapl_ia *new_ia(const struct dapl_entry *entry)
{
	struct dapl_ia *ia = dapl_object_new(DAPL_IA, sizeof *ia, NULL, end_ia);

	if (!ia)
		return NULL;
	ia->obj.ia = ia;
	ia->obj.provider = &entry->table;
	ia->pid = getpid();
	dapl_mutex_init(&ia->lock, RANK_IA);
	dapl_spin_init(&ia->qp_lock, RANK_IA_QPS);
	return ia;
}

/* IA-1, 3, 7 */
DAT_RETURN dapl_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *handle)
{
	struct dapl_entry *entry = dapl_entry_find(name);
	DAPL_ENTERED struct dapl_evd *given = NULL;
	struct dapl_evd *evd;
	struct dapl_ia *ia;
	DAT_RETURN ret;
	bool make;

	if (!entry)
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (qlen < 0)
		return BAD_PARAM(2);
	if (qlen > DAPL_EVD_MAX)
		return NO_RESOURCE(TEVD);
	if ((ret = async_argument(entry, *async_evd, &given, &make)))
		return ret;
	evd = given;
	if (!(ia = new_ia(entry)))
		return NO_RESOURCE(MEMORY);
	if ((ret = open_device(ia, entry)))
		goto fail;
	if (make) {
		/* IA-2 */
		ret = dapl_evd_make(ia, qlen ? qlen : 1, DAT_EVD_ASYNC_FLAG, NULL, false, &evd);
		if (ret != DAT_SUCCESS) {
			close_device(ia);
			goto fail;
		}
		ia->async_ours = true;
		dapl_object_publish(&evd->obj);
	}
	ia->async_evd = evd;
	dapl_object_publish(&ia->obj);
	dapl_async_join(ia);
	dapl_tap_ia_opened(ia);
	dapl_control_get();
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ia", ia, "open", "%s device %s netdev %s", name,
	      ia->attr.device, ia->attr.netdev);
	*async_evd = evd ? (DAT_EVD_HANDLE)evd : DAT_EVD_OUT_OF_SCOPE;
	*handle = (DAT_IA_HANDLE)ia;
	return DAT_SUCCESS;

fail:
	dapl_object_put(&ia->obj);
	return ret;
}

/* dat_ia_query (doc/spec/calls.md 1). The registry calls it with NULL pointers. */
DAT_RETURN dapl_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			 DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			 DAT_PROVIDER_ATTR *provider_attr)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	ret = dapl_attr_present(ia, ia_mask, ia_attr, provider_mask, provider_attr);
	if (ret == DAT_SUCCESS && async_evd)
		*async_evd = dapl_async_handle(ia);
	return ret;
}

/* --- closing ------------------------------------------------------------------------------------ */

static void end_object(struct dapl_object *obj)
{
	switch (obj->kind) {
	case DAPL_CR:	dapl_cr_destroy((struct dapl_cr *)obj); break;
	case DAPL_PSP: case DAPL_RSP: case DAPL_CSP:
			dapl_sp_destroy((struct dapl_sp *)obj); break;
	case DAPL_EP:	dapl_ep_destroy((struct dapl_ep *)obj); break;
	case DAPL_RMR:	dapl_rmr_destroy((struct dapl_rmr *)obj); break;
	case DAPL_LMR:	dapl_lmr_destroy((struct dapl_lmr *)obj); break;
	case DAPL_GROUP: dapl_eth_group_end((struct dapl_group *)obj); break;
	case DAPL_SRQ:	dapl_srq_destroy((struct dapl_srq *)obj); break;
	case DAPL_EVD:	dapl_evd_destroy((struct dapl_evd *)obj); break;
	case DAPL_CNO:	dapl_cno_destroy((struct dapl_cno *)obj); break;
	default:	dapl_object_bury(obj);
	}
}

static void end_all(struct dapl_ia *ia, enum dapl_kind kind)
{
	struct dapl_object *obj;

	while ((obj = dapl_object_next_to_end(ia, kind)))
		end_object(obj);
}

/* IA-13, 14 */
static void send_waiters_away(struct dapl_ia *ia)
{
	dapl_mutex_lock(&ia->lock);
	for (struct dapl_object *o = ia->objects[DAPL_EVD]; o; o = o->next)
		dapl_evd_send_waiter_away((struct dapl_evd *)o);
	for (struct dapl_object *o = ia->objects[DAPL_CNO]; o; o = o->next)
		dapl_cno_send_waiters_away((struct dapl_cno *)o);
	dapl_mutex_unlock(&ia->lock);
}

/* Waits until no call is inside the IA or an object of it, and none can begin. Connection requests may
 * still arrive, with endpoints for them. */
static void end_calls(struct dapl_ia *ia)
{
	dapl_object_wait_calls(&ia->obj, 1);
	for (unsigned i = 0; !dapl_object_condemn_all(ia); i++) {
		send_waiters_away(ia);
		dapl_object_pause(i);
	}
}

/* Ends the objects in the order of their dependence: each before the objects that it uses. DM-20. */
static void end_everything(struct dapl_ia *ia)
{
	static const enum dapl_kind order[] = { DAPL_RULE, DAPL_GROUP, DAPL_PSP, DAPL_RSP, DAPL_CSP, DAPL_CR, DAPL_EP,
		DAPL_RMR, DAPL_LMR, DAPL_DM, DAPL_SRQ, DAPL_EVD, DAPL_CNO, DAPL_PZ };
	struct dapl_object *obj;

	dapl_mutex_lock(&ia->lock);
	obj = ia->objects[DAPL_CNO];
	dapl_mutex_unlock(&ia->lock);
	for (; obj; obj = obj->next)
		dapl_cno_close((struct dapl_cno *)obj);
	dapl_service_flush();
	for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
		end_all(ia, order[i]);
		if (order[i] == DAPL_RSP || order[i] == DAPL_CR)
			dapl_service_flush();	/* RSPs whose request has arrived end in a task */
	}
}

/* True for objects that the consumer need not free: the asynchronous EVD, and RSPs whose request has
 * arrived. */
static bool goes_by_itself(const struct dapl_ia *ia, const struct dapl_object *obj)
{
	if (obj->kind == DAPL_RSP)
		return __atomic_load_n(&((const struct dapl_sp *)obj)->used, __ATOMIC_ACQUIRE);
	return obj == (struct dapl_object *)ia->async_evd && ia->async_ours;
}

/* DM-20 */
static bool is_idle(struct dapl_ia *ia)
{
	bool idle = true;

	dapl_mutex_lock(&ia->lock);
	for (int kind = 0; kind < DAPL_KINDS; kind++)
		for (struct dapl_object *o = ia->objects[kind]; o; o = o->next)
			idle &= goes_by_itself(ia, o);
	dapl_mutex_unlock(&ia->lock);
	return idle;
}

/* dat_ia_close (doc/spec/calls.md 1). In a forked child only the handle becomes invalid, because the device
 * and the objects belong to the parent. IA-8, 9, 10, 12. */
DAT_RETURN dapl_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(handle);

	if (!ia)
		return BAD_HANDLE(IA);
	if (flags != DAT_CLOSE_ABRUPT_FLAG && flags != DAT_CLOSE_GRACEFUL_FLAG)
		return BAD_PARAM(2);
	if (ia->pid != getpid()) {
		dapl_object_kill(&ia->obj);
		return DAT_SUCCESS;
	}
	if (flags == DAT_CLOSE_GRACEFUL_FLAG && !is_idle(ia))
		return BAD_STATE(IA_IN_USE);
	if (!dapl_object_kill(&ia->obj))
		return BAD_HANDLE(IA);
	dapl_control_put();
	dapl_async_leave(ia);
	dapl_tap_ia_closed();
	end_calls(ia);
	dapl_net_forget(ia);	/* after the calls, which may begin a watch */
	end_everything(ia);
	trace(TRC_LVL_NORMAL, TRC_DAPL_EVENT, "ia", ia, "closed", "%s",
	      ia->ia_attr.adapter_name);
	close_device(ia);
	dapl_object_put(&ia->obj);
	return DAT_SUCCESS;
}
