/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno_trigger.h - the triggers of a CNO (cno_trigger.c). The caller holds cno->mutex unless a comment says
 * otherwise. */
#ifndef DAPL_CNO_TRIGGER_H
#define DAPL_CNO_TRIGGER_H
#include "dapl/core/event/cno.h"

/* Called when the EVD has an event: wakes a waiter, or queues a call of the agent. Takes cno->mutex. */
void dapl_cno_trigger(struct dapl_cno *cno, struct dapl_evd *evd);
/* Takes the EVD that was triggered first. Returns NULL if there is none. */
struct dapl_evd *dapl_cno_take(struct dapl_cno *cno);
/* Removes an EVD that is no longer attached from the list. */
void dapl_cno_forget(struct dapl_cno *cno, struct dapl_evd *evd);
/* Make wake_fd readable, and not readable. */
void dapl_cno_raise(struct dapl_cno *cno);
void dapl_cno_lower(struct dapl_cno *cno);
/* The task that calls the agent. Runs with no lock held. */
void dapl_cno_call_agent(struct dapl_task *task);

#endif
