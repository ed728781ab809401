/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_attr.h - attributes of endpoints (ep_attr.c). */
#ifndef DAPL_EP_ATTR_H
#define DAPL_EP_ATTR_H
#include "dapl/core/dapl.h"

/* Bits that every post may set. They have no meaning in the attribute of an endpoint. */
#define DAPL_PER_POST_FLAGS \
	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* Sets the attributes of an endpoint that is created without attributes. */
void dapl_ep_default_attr(const struct dapl_ia *ia, DAT_EP_ATTR *attr);
/* Returns the name of an attribute that this IA cannot grant, or NULL if it can grant all. */
const char *dapl_ep_bad_attr(const struct dapl_ia *ia, const DAT_EP_ATTR *attr);
/* Gives values to the attributes that are zero, which means "no requirement". */
void dapl_ep_attr_fill(const struct dapl_ia *ia, DAT_EP_ATTR *attr);
/* Reads the named attributes of the provider. Returns `bad` for an unknown name or value. */
DAT_RETURN dapl_ep_named_attrs(struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool *delayed_ack,
			       struct dapl_conn_tuning *tuning, DAT_RETURN bad);
/* Derives the limits and flags that the posting calls check from ep->attr. */
void dapl_ep_set_post_limits(struct dapl_ep *ep);

/* Reads one attribute into *tuning. Returns DAT_SUCCESS, NOT_SUPPORTED if the device cannot set it, or
 * `bad` if the name is unknown or the value is out of range. */
DAT_RETURN dapl_ep_tune(const struct dapl_ia *ia, const DAT_NAMED_ATTR *attr,
			struct dapl_conn_tuning *tuning, DAT_RETURN bad);
/* Appends the attributes that are set to the first `n` of ep->provider_attr. Returns the new number. Called
 * with ep->lock held. */
int dapl_ep_list_tuning(struct dapl_ep *ep, int n);

#endif
