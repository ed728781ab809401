/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno.c - consumer notification objects (CNO): creating and freeing them, attaching EVDs. Triggers are in
 * cno_trigger.c, waiting is in cno_wait.c.
 *
 * Without a proxy the channels of the EVDs are in the epoll set beside wake_fd, so a completion wakes
 * the waiter directly, and the waiter turns it into a trigger. A waiter polls the CQs before it arms them and
 * blocks, so between waits they need not be armed. With a proxy (an agent or a descriptor)
 * there may be no waiter, so the service thread watches the channels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/descriptors.h"
#include "dapl/core/base/ia_handle.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/cno_trigger.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_channel.h"
#include "dapl/core/event/evd_notify.h"

/* --- EVDs come and go ------------------------------------------------------------ */

static DAT_PROXY_TYPE current_proxy(struct dapl_cno *cno)
{
	DAT_PROXY_TYPE proxy;

	dapl_mutex_lock(&cno->mutex);
	proxy = cno->proxy;
	dapl_mutex_unlock(&cno->mutex);
	return proxy;
}

static bool is_watched_by_service(struct dapl_cno *cno)
{
	return current_proxy(cno) != DAT_PROXY_TYPE_NONE;
}

/* Called after evd->cno was set: dat_cno_modify_agent sets the proxy before it looks for EVDs, so one of
 * the two sees the other. */
static int watch_channel(struct dapl_cno *cno, struct dapl_evd *evd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = evd };

	if (!evd->channel)
		return 0;
	if (is_watched_by_service(cno))
		return dapl_evd_watch(evd);
	return epoll_ctl(cno->epfd, EPOLL_CTL_ADD, evd->channel->fd, &event) ? errno : 0;
}

static void unwatch_channel(struct dapl_cno *cno, struct dapl_evd *evd)
{
	if (!evd->channel)
		return;
	epoll_ctl(cno->epfd, EPOLL_CTL_DEL, evd->channel->fd, NULL);
	if (!evd->spill && !evd->discard && !evd->has_watermarks)
		dapl_evd_unwatch(evd);
}

static void set_cno(struct dapl_evd *evd, struct dapl_cno *cno)
{
	dapl_mutex_lock(&evd->mutex);
	dapl_mutex_lock(&cno->mutex);
	__atomic_store_n(&evd->cno, cno, __ATOMIC_RELEASE);
	evd->next_attached = cno->attached;
	cno->attached = evd;
	cno->cqs += evd->cq != NULL;
	dapl_mutex_unlock(&cno->mutex);
	dapl_mutex_unlock(&evd->mutex);
}

/* cno->mutex held. */
static void remove_attached(struct dapl_cno *cno, struct dapl_evd *evd)
{
	struct dapl_evd **p = &cno->attached;

	assert_held(&cno->mutex);
	while (*p != evd)
		p = &(*p)->next_attached;
	*p = evd->next_attached;
	cno->cqs -= evd->cq != NULL;
}

/* The service thread waits for the next CQ event. A waiter of a CNO without a proxy polls, so there may have been no
 * event for completions that came before. */
static void tell_service(struct dapl_cno *cno, struct dapl_evd *evd)
{
	if (is_watched_by_service(cno) && dapl_evd_has_news(evd, false))
		dapl_evd_notify(evd);
}

int dapl_cno_attach(struct dapl_cno *cno, struct dapl_evd *evd)
{
	int err;

	if (!dapl_use(&cno->obj))
		return EBADF;
	set_cno(evd, cno);
	err = watch_channel(cno, evd);
	if (err) {
		dapl_cno_detach(cno, evd);
		return err;
	}
	dapl_spin_lock(&evd->lock);
	dapl_evd_arm(evd);
	dapl_spin_unlock(&evd->lock);
	tell_service(cno, evd);
	return 0;
}

void dapl_cno_detach(struct dapl_cno *cno, struct dapl_evd *evd)
{
	assert_held(&evd->change);
	unwatch_channel(cno, evd);
	dapl_mutex_lock(&evd->mutex);
	dapl_mutex_lock(&cno->mutex);
	__atomic_store_n(&evd->cno, NULL, __ATOMIC_RELEASE);
	remove_attached(cno, evd);
	dapl_cno_forget(cno, evd);
	dapl_unuse(&cno->obj);
	if (!dapl_in_use(&cno->obj) && cno->waiters) {
		cno->orphaned++;	/* no EVD can trigger the CNO now, so waiters leave. CNO-15 */
		dapl_cno_raise(cno);
	}
	dapl_mutex_unlock(&cno->mutex);
	dapl_mutex_unlock(&evd->mutex);
}

/* --- making and ending --------------------------------------------------------------- */

static void end_cno(struct dapl_object *obj)
{
	struct dapl_cno *cno = (struct dapl_cno *)obj;

	if (cno->epfd >= 0)
		close(cno->epfd);
	if (cno->wake_fd >= 0)
		close(cno->wake_fd);
}

static DAT_RETURN make_cno(struct dapl_ia *ia, DAT_PROXY_TYPE proxy,
			   const DAT_OS_WAIT_PROXY_AGENT *agent, struct dapl_cno **made)
{
	struct dapl_cno *cno = dapl_object_new(DAPL_CNO, sizeof *cno, ia, end_cno);
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = NULL };

	if (!cno)
		return NO_RESOURCE(MEMORY);
	dapl_mutex_init(&cno->mutex, RANK_CNO);
	cno->proxy = proxy;
	cno->agent_task.runs_consumer = true;
	if (agent)
		cno->agent = *agent;
	cno->last = &cno->first;
	cno->epfd = epoll_create1(EPOLL_CLOEXEC);
	cno->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (cno->epfd < 0 || cno->wake_fd < 0 ||
	    epoll_ctl(cno->epfd, EPOLL_CTL_ADD, cno->wake_fd, &event)) {
		int err = errno;

		report_no_descriptors(ia->ia_attr.adapter_name, err, "CNO creation");
		dapl_object_put(&cno->obj);
		return dapl_status(err, DAT_RESOURCE_DEVICE);
	}
	*made = cno;
	return DAT_SUCCESS;
}

static DAT_PROXY_TYPE proxy_of(const DAT_OS_WAIT_PROXY_AGENT *agent)
{
	return agent->proxy_agent_func ? DAT_PROXY_TYPE_AGENT : DAT_PROXY_TYPE_NONE;
}

/* dat_cno_create (doc/spec/calls.md 3). The agent stays until dat_cno_modify_agent replaces it. The service
 * thread calls it for each batch of triggers, which are also delivered to waiters. CNO-1. */
DAT_RETURN dapl_cno_create(DAT_IA_HANDLE ia_handle, DAT_OS_WAIT_PROXY_AGENT agent,
			   DAT_CNO_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_cno *cno = NULL;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!handle)
		return BAD_PARAM(3);
	ret = make_cno(ia, proxy_of(&agent), &agent, &cno);
	if (ret != DAT_SUCCESS)
		return ret;
	dapl_object_publish(&cno->obj);
	*handle = (DAT_CNO_HANDLE)cno;
	return DAT_SUCCESS;
}

/* dat_cno_fd_create: *fd is readable while the CNO is triggered, and dat_cno_free closes it. CNO-22. */
DAT_RETURN dapl_cno_fd_create(DAT_IA_HANDLE ia_handle, DAT_FD *fd, DAT_CNO_HANDLE *handle)
{
	DAPL_ENTERED struct dapl_ia *ia = dapl_ia_enter(ia_handle);
	struct dapl_cno *cno;
	DAT_RETURN ret;

	if (!ia)
		return BAD_HANDLE(IA);
	if (!fd)
		return BAD_PARAM(2);
	if (!handle)
		return BAD_PARAM(3);
	ret = make_cno(ia, DAT_PROXY_TYPE_FD, NULL, &cno);
	if (ret != DAT_SUCCESS)
		return ret;
	*fd = cno->wake_fd;
	dapl_object_publish(&cno->obj);
	*handle = (DAT_CNO_HANDLE)cno;
	return DAT_SUCCESS;
}

/* dat_cno_trigger (DAT 2.0): fetches the EVD that triggered, without waiting. CNO-23. */
DAT_RETURN dapl_cno_fetch(DAT_CNO_HANDLE handle, DAT_EVD_HANDLE *evd_handle)
{
	DAPL_ENTERED struct dapl_cno *cno = dapl_cno_enter(handle);
	struct dapl_evd *evd;

	if (!cno)
		return BAD_HANDLE(CNO);
	if (!evd_handle)
		return BAD_PARAM(2);
	dapl_mutex_lock(&cno->mutex);
	evd = dapl_cno_take(cno);
	dapl_mutex_unlock(&cno->mutex);
	*evd_handle = (DAT_EVD_HANDLE)evd;
	return evd ? DAT_SUCCESS : DAT_ERROR(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}

/* CNO-19, 20, 21 */
DAT_RETURN dapl_cno_query(DAT_CNO_HANDLE handle, DAT_CNO_PARAM_MASK mask, DAT_CNO_PARAM *param)
{
	DAPL_ENTERED struct dapl_cno *cno = dapl_cno_enter(handle);

	if (!cno)
		return BAD_HANDLE(CNO);
	if (mask & ~7)	/* the bits of the mask overlap: all values from 0 to 7 are valid */
		return BAD_PARAM(2);
	if (!param)
		return BAD_PARAM(3);
	dapl_mutex_lock(&cno->mutex);
	memset(param, 0, sizeof *param);
	param->ia_handle = dapl_ia_handle(cno->obj.ia);
	param->proxy_type = cno->proxy;
	if (cno->proxy == DAT_PROXY_TYPE_AGENT)
		param->proxy.agent = cno->agent;
	else if (cno->proxy == DAT_PROXY_TYPE_FD)
		param->proxy.fd = cno->wake_fd;
	dapl_mutex_unlock(&cno->mutex);
	return DAT_SUCCESS;
}

int dapl_cno_follow_agent(struct dapl_evd *evd)
{
	int err = 0;

	dapl_mutex_lock(&evd->change);
	if (evd->cno && evd->channel && is_watched_by_service(evd->cno)) {
		err = dapl_evd_watch(evd);
		if (!err) {
			epoll_ctl(evd->cno->epfd, EPOLL_CTL_DEL, evd->channel->fd, NULL);
			tell_service(evd->cno, evd);
		}
	}
	dapl_mutex_unlock(&evd->change);
	return err;
}

/* Lets the service thread watch the channels of all EVDs of the CNO. Returns 0 or an errno. An EVD may
 * be attached or detached at the same time; dapl_cno_follow_agent looks again. */
static int move_to_service(struct dapl_cno *cno)
{
	struct dapl_object **evds;
	int err = 0;
	size_t n;

	if (!dapl_object_enter_all(cno->obj.ia, DAPL_EVD, &evds, &n))
		return ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct dapl_evd *evd = (struct dapl_evd *)evds[i];

		if (!err && __atomic_load_n(&evd->cno, __ATOMIC_ACQUIRE) == cno)
			err = dapl_cno_follow_agent(evd);
		dapl_object_leave(evds[i]);
	}
	free(evds);
	return err;
}

/* Returns the agent that the CNO had. */
static DAT_OS_WAIT_PROXY_AGENT exchange_agent(struct dapl_cno *cno, const DAT_OS_WAIT_PROXY_AGENT *agent)
{
	DAT_OS_WAIT_PROXY_AGENT old;

	dapl_mutex_lock(&cno->mutex);
	old = cno->agent;
	cno->agent = *agent;
	cno->proxy = proxy_of(agent);
	dapl_mutex_unlock(&cno->mutex);
	return old;
}

/* dat_cno_modify_agent. The service thread goes on watching the channels that it has begun to watch: its
 * triggers reach waiters, too. After an error the old agent is in place. CNO-18. */
DAT_RETURN dapl_cno_modify_agent(DAT_CNO_HANDLE handle, DAT_OS_WAIT_PROXY_AGENT agent)
{
	DAPL_ENTERED struct dapl_cno *cno = dapl_cno_enter(handle);
	DAT_OS_WAIT_PROXY_AGENT old;
	int err = 0;

	if (!cno)
		return BAD_HANDLE(CNO);
	if (current_proxy(cno) == DAT_PROXY_TYPE_FD)
		return BAD_PARAM(2);
	old = exchange_agent(cno, &agent);
	if (proxy_of(&agent) == DAT_PROXY_TYPE_AGENT)
		err = move_to_service(cno);
	if (err)
		exchange_agent(cno, &old);
	return dapl_status(err, DAT_RESOURCE_MEMORY);
}

/* Releases all waiters. dat_ia_close calls this while EVDs are still attached. */
void dapl_cno_close(struct dapl_cno *cno)
{
	bool tell_agent;

	dapl_cno_send_waiters_away(cno);
	dapl_mutex_lock(&cno->mutex);
	tell_agent = cno->proxy == DAT_PROXY_TYPE_AGENT;
	while (cno->waiters)
		dapl_cond_wait(&cno->left, &cno->mutex);
	dapl_mutex_unlock(&cno->mutex);
	if (tell_agent)
		dapl_task_queue(&cno->agent_task, dapl_cno_call_agent);
}

void dapl_cno_send_waiters_away(struct dapl_cno *cno)
{
	dapl_mutex_lock(&cno->mutex);
	cno->closing = true;
	dapl_cno_raise(cno);
	dapl_mutex_unlock(&cno->mutex);
}

void dapl_cno_destroy(struct dapl_cno *cno)
{
	dapl_service_flush();	/* the agent's task */
	dapl_object_bury(&cno->obj);
}

/* CNO-12, 13, 14 */
DAT_RETURN dapl_cno_free(DAT_CNO_HANDLE handle)
{
	DAPL_ENTERED struct dapl_cno *cno = dapl_cno_enter(handle);
	enum dapl_kill killed = KILL_IN_USE;

	if (!cno)
		return BAD_HANDLE(CNO);
	dapl_mutex_lock(&cno->mutex);
	if (!cno->waiters)
		killed = dapl_object_begin_kill_unused(&cno->obj);
	cno->closing |= killed == KILL_DONE;	/* a thread may have entered the CNO to wait */
	dapl_mutex_unlock(&cno->mutex);
	if (killed == KILL_IN_USE)
		return BAD_STATE(CNO_IN_USE);
	if (killed == KILL_LOST)
		return BAD_HANDLE(CNO);
	dapl_object_end_kill(&cno->obj);	/* ia->lock comes before cno->mutex */
	dapl_object_wait_calls(&cno->obj, 1);
	dapl_cno_destroy(cno);
	return DAT_SUCCESS;
}
