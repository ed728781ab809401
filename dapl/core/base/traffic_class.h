/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic_class.h - the traffic class of a connection (traffic_class.c). */
#ifndef DAPL_TRAFFIC_CLASS_H
#define DAPL_TRAFFIC_CLASS_H
#include "dapl/core/device.h"

/* Returns the ToS byte, or traffic class, of a connection: that of its endpoint, else DAPL_CM_TOS, else the
 * code point of the QoS (DAPL_DSCP_*). -1: none is wanted. */
int dapl_traffic_class(const struct dapl_conn_tuning *tuning, enum dapl_qos qos);

#endif
