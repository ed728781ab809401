/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic_class.c - selects the traffic class of a connection, for all devices (traffic_class.h). */
#include "dapl/core/base/traffic_class.h"
#include "dapl/core/base/settings.h"

int dapl_traffic_class(const struct dapl_conn_tuning *tuning, enum dapl_qos qos)
{
	/* Differentiated services code points, in the upper six bits. The lower two are ECN's. */
	static const uint8_t class_of[] = {
		[DAPL_QOS_THROUGHPUT] = 10 << 2,	/* AF11 */
		[DAPL_QOS_LATENCY] = 46 << 2,		/* EF */
		[DAPL_QOS_ECONOMY] = 8 << 2,		/* CS1 */
		[DAPL_QOS_PREMIUM] = 34 << 2,		/* AF41 */
	};
	int class = dapl_tuned(tuning->traffic_class, dapl_settings.tos);

	if (class >= 0 || qos == DAPL_QOS_DEFAULT || qos >= sizeof class_of)
		return class;
	return class_of[qos];
}
