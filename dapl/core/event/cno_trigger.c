/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno_trigger.c - triggers of a CNO from many EVDs, delivered to threads in dat_cno_wait, to a proxy agent,
 * or to a descriptor (cno_trigger.h).
 *
 * Triggered EVDs are in a list, each once. wake_fd is readable while the list is not empty, and when the
 * CNO closes. Waiters sleep on it, and an fd CNO gives it to the consumer. While there is neither, as when a waiter
 * polls, the list alone tells. */
#include <errno.h>
#include <unistd.h>
#include "dapl/core/base/service.h"
#include "dapl/core/event/cno.h"
#include "dapl/core/event/cno_trigger.h"

void dapl_cno_raise(struct dapl_cno *cno)
{
	uint64_t one = 1;

	cno->raised = true;
	while (write(cno->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
		;
}

void dapl_cno_lower(struct dapl_cno *cno)
{
	uint64_t n;

	if (!cno->raised)
		return;
	cno->raised = false;
	while (read(cno->wake_fd, &n, sizeof n) < 0 && errno == EINTR)
		;
}

/* CNO-8 */
struct dapl_evd *dapl_cno_take(struct dapl_cno *cno)
{
	struct dapl_evd *evd = cno->first;

	if (!evd)
		return NULL;
	cno->first = evd->next_triggered;
	if (!cno->first)
		cno->last = &cno->first;
	evd->triggered = false;
	if (!cno->first && !cno->closing)
		dapl_cno_lower(cno);
	return evd;
}

/* CNO-2 */
void dapl_cno_call_agent(struct dapl_task *task)
{
	struct dapl_cno *cno = container_of(task, struct dapl_cno, agent_task);
	DAT_OS_WAIT_PROXY_AGENT agent;
	struct dapl_evd *evd;
	bool due;

	dapl_mutex_lock(&cno->mutex);
	agent = cno->agent;
	evd = cno->agent_evd;
	cno->agent_evd = NULL;
	due = evd || cno->closing;
	dapl_mutex_unlock(&cno->mutex);
	assert_no_lock_held();
	if (agent.proxy_agent_func && due)
		agent.proxy_agent_func(agent.instance_data, (DAT_EVD_HANDLE)evd);
}

void dapl_cno_trigger(struct dapl_cno *cno, struct dapl_evd *evd)
{
	dapl_mutex_lock(&cno->mutex);
	if (!evd->triggered) {
		evd->triggered = true;
		evd->next_triggered = NULL;
		*cno->last = evd;
		cno->last = &evd->next_triggered;
		if (cno->sleepers || cno->proxy == DAT_PROXY_TYPE_FD)
			dapl_cno_raise(cno);
		if (cno->sleepers)
			dapl_service_woke();
	}
	if (cno->proxy == DAT_PROXY_TYPE_AGENT) {
		cno->agent_evd = evd;
		dapl_task_queue(&cno->agent_task, dapl_cno_call_agent);
	}
	dapl_mutex_unlock(&cno->mutex);
}

void dapl_cno_forget(struct dapl_cno *cno, struct dapl_evd *evd)
{
	struct dapl_evd **p;

	if (cno->agent_evd == evd)
		cno->agent_evd = NULL;
	if (!evd->triggered)
		return;
	for (p = &cno->first; *p != evd; p = &(*p)->next_triggered)
		;
	*p = evd->next_triggered;
	if (!*p)
		cno->last = p;
	evd->triggered = false;
	if (!cno->first && !cno->closing)
		dapl_cno_lower(cno);
}
