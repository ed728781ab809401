/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_tuning.h - named attributes of an endpoint that set limits of its connection (ep_tuning.c). */
#ifndef DAPL_EP_TUNING_H
#define DAPL_EP_TUNING_H
#include "dapl/core/dapl.h"

/* Reads one attribute into *tuning. Returns DAT_SUCCESS, NOT_SUPPORTED if the device does not know
 * it, `bad` if the name or the value is unknown. */
DAT_RETURN dapl_ep_tune(const struct dapl_ia *ia, const DAT_NAMED_ATTR *attr,
			struct dapl_conn_tuning *tuning, DAT_RETURN bad);
/* Writes those that are set behind the first `n` of ep->provider_attr. Returns how many there
 * are then. ep->lock held. */
int dapl_ep_list_tuning(struct dapl_ep *ep, int n);

#endif
