/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_tuning.h - named attributes of an endpoint that set limits of its connection (ep_tuning.c). */
#ifndef DAPL_EP_TUNING_H
#define DAPL_EP_TUNING_H
#include "dapl/core/dapl.h"

/* Reads one attribute into *tuning. Returns DAT_SUCCESS, NOT_SUPPORTED if the device cannot set it, or
 * `bad` if the name is unknown or the value is out of range. */
DAT_RETURN dapl_ep_tune(const struct dapl_ia *ia, const DAT_NAMED_ATTR *attr,
			struct dapl_conn_tuning *tuning, DAT_RETURN bad);
/* Appends the attributes that are set to the first `n` of ep->provider_attr. Returns the new number. Called
 * with ep->lock held. */
int dapl_ep_list_tuning(struct dapl_ep *ep, int n);

#endif
