/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.h - messages of RDMA devices with InfiniBand's transport as Ethernet frames that protocol analysers decode:
 * packets of RoCE version 2 on UDP. They show what was posted, cut as the path MTU says: acknowledgements and
 * what was sent again are not there, sequence numbers are made up. Where messages come from is rdma.c's job. */
#ifndef DATCAP_ROCE_H
#define DATCAP_ROCE_H
#include <stdbool.h>
#include <stdint.h>
#include "flow.h"

/* Calls `take` for each packet of the message (of a record with TAP_ROCE). Stops when it returns false, and returns
 * that. */
bool roce_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg);

#endif
