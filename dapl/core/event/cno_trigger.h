/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno_trigger.h - the triggers of a CNO (cno_trigger.c). cno->mutex is held by the caller unless said. */
#ifndef DAPL_CNO_TRIGGER_H
#define DAPL_CNO_TRIGGER_H
#include "dapl/core/event/cno.h"

/* Takes cno->mutex. The EVD has an event: wakes a waiter, or queues the call of the agent. */
void dapl_cno_trigger(struct dapl_cno *cno, struct dapl_evd *evd);
/* The EVD that was triggered first; NULL: none. */
struct dapl_evd *dapl_cno_take(struct dapl_cno *cno);
/* The EVD is no longer attached: takes it from the list. */
void dapl_cno_forget(struct dapl_cno *cno, struct dapl_evd *evd);
/* Makes wake_fd readable, or not. */
void dapl_cno_raise(struct dapl_cno *cno);
void dapl_cno_lower(struct dapl_cno *cno);
/* The task that calls the agent, with no lock held. */
void dapl_cno_call_agent(struct dapl_task *task);

#endif
