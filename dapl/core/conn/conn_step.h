/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_step.h - a step of an endpoint's connection (conn_step.c). Called with ep->lock held. */
#ifndef DAPL_CONN_STEP_H
#define DAPL_CONN_STEP_H
#include "dapl/core/dapl.h"
#include "dapl/core/ep/ep_state.h"

/* Makes a step, and posts its event. `cause` is the cause of a failure, else NULL. Returns false if the
 * endpoint was freed or its state does not allow the step: then nothing has happened. */
bool dapl_ep_make_step(struct dapl_ep *ep, enum dapl_ep_event event,
		       const struct dapl_conn_cause *cause);
/* Starts the endpoint's timer again. The timer has a reference of the endpoint, which `fire` drops. */
void dapl_ep_arm(struct dapl_ep *ep, uint64_t delay_us, void (*fire)(struct dapl_timer *));
/* Stops the endpoint's timer: a connect timeout or a drain. */
void dapl_ep_disarm(struct dapl_ep *ep);

#endif
