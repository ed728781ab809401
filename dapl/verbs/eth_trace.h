/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_trace.h - why a call for a raw Ethernet endpoint is refused, in the trace. */
#ifndef VERBS_ETH_TRACE_H
#define VERBS_ETH_TRACE_H
#include "common/trace.h"

/* `object`: the QP, or NULL. A format and its arguments follow. */
#define hw_eth_trace(object, ...) trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "qp", object, NULL, __VA_ARGS__)

#endif
