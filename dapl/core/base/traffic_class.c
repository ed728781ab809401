/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic_class.c - selects the traffic class of a connection, for all devices (traffic_class.h). */
#include "dapl/core/base/traffic_class.h"
#include "dapl/core/base/settings.h"

enum { ECN = 2 };	/* the low bits of the byte, below the code point */

static int class_of(enum dapl_qos qos)
{
	switch (qos) {
	case DAPL_QOS_THROUGHPUT: return (int)dapl_settings.dscp_high_throughput << ECN;
	case DAPL_QOS_LATENCY: return (int)dapl_settings.dscp_low_latency << ECN;
	case DAPL_QOS_ECONOMY: return (int)dapl_settings.dscp_economy << ECN;
	case DAPL_QOS_PREMIUM: return (int)dapl_settings.dscp_premium << ECN;
	case DAPL_QOS_DEFAULT: break;
	}
	return -1;
}

int dapl_traffic_class(const struct dapl_conn_tuning *tuning, enum dapl_qos qos)
{
	int class = dapl_tuned(tuning->traffic_class, dapl_settings.tos);

	return class >= 0 ? class : class_of(qos);
}
