/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.h - the provider's environment variables (doc/spec/extensions.md 6), read once,
 * validated, with their defaults. A bad value gives one line and the default. */
#ifndef DAPL_SETTINGS_H
#define DAPL_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/parameters.h"
#include "dapl/core/base/parameter.h"

struct dapl_settings {
	unsigned max_inline;		/* DAPL_MAX_INLINE, bytes */
	unsigned wr_max;		/* DAPL_WR_MAX, 0: the device's limit */
	unsigned ib_mtu;		/* DAPL_IB_MTU, bytes, 0: the path's */
	int ib_pkey;			/* DAPL_IB_PKEY, -1: index 0 */
	unsigned ib_sl;			/* DAPL_IB_SL */
	unsigned global_routing;	/* DAPL_GLOBAL_ROUTING */
	unsigned hop_limit;		/* DAPL_HOP_LIMIT, 0: unset */
	int tclass;			/* DAPL_TCLASS, -1: unset */
	unsigned ack_retry;		/* DAPL_ACK_RETRY, 0-7 */
	int ack_timer;			/* DAPL_ACK_TIMER, 0-31: 4.096 us * 2^n; -1: unset */
	unsigned rnr_retry;		/* DAPL_RNR_RETRY, 7: for ever */
	unsigned rnr_timer;		/* DAPL_RNR_TIMER, 0-31 */
	unsigned arp_timeout_ms, arp_retries;		/* DAPL_CM_ARP_TIMEOUT_MS, _RETRY_COUNT */
	unsigned route_timeout_ms, route_retries;	/* DAPL_CM_ROUTE_TIMEOUT_MS, _RETRY_COUNT */
	int tos;			/* DAPL_CM_TOS, -1: unset */
	unsigned dscp_high_throughput, dscp_low_latency, dscp_economy, dscp_premium; /* DAPL_DSCP_*, 0-63 */
	unsigned cm_response_time, cm_retries;	/* DAPL_MAX_CM_RESPONSE_TIME, _RETRIES */
};
extern struct dapl_settings dapl_settings;

void dapl_settings_read(void);

/* --- the same while the program runs; on the service thread ---------------------------------- */

/* Writes the index-th parameter that this library reads. Returns false if there are no more. */
bool dapl_settings_at(unsigned index, struct dapl_parameter *parameter);
bool dapl_settings_find(const char *name, struct dapl_parameter *parameter);
/* Returns the value. -1: unset, so the device or the path decides. */
long dapl_settings_value(const struct dapl_parameter *parameter, enum parameter_origin *origin);
/* Changes a parameter until the library is unloaded. The value "default" restores the value of the start.
 * Returns false if the change is not allowed, with the reason in `why`. */
bool dapl_settings_set(const char *name, const char *value, char *why, size_t size);

#endif
