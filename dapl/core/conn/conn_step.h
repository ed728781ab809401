/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_step.h - a step of an endpoint's connection (conn_step.c). ep->lock is held by the caller. */
#ifndef DAPL_CONN_STEP_H
#define DAPL_CONN_STEP_H
#include "dapl/core/dapl.h"
#include "dapl/core/ep/ep_state.h"

/* A step with its event; `cause` of a failure, else NULL. Returns false if the endpoint was freed or
 * its state does not allow the step: then nothing has happened. */
bool dapl_conn_happened(struct dapl_ep *ep, enum dapl_ep_event event,
			const struct dapl_conn_cause *cause);
/* Starts the endpoint's timer anew. `fire` puts the reference of the endpoint that the timer has. */
void dapl_conn_arm(struct dapl_ep *ep, uint64_t delay_us, void (*fire)(struct dapl_timer *));
/* Stops a connect timeout or a drain. */
void dapl_ep_disarm(struct dapl_ep *ep);

#endif
