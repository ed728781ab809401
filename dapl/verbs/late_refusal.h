/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* late_refusal.h - a disconnect that overtakes the peer's refusal of a request (late_refusal.c). */
#ifndef HW_LATE_REFUSAL_H
#define HW_LATE_REFUSAL_H
#include "conn_types.h"

/* Service thread, conn->lock held, which is released meanwhile. The peer of an established connection has disconnected.
 * Returns true if a request of this side has failed before. */
bool hw_request_was_refused(struct dapl_conn *conn);

#endif
