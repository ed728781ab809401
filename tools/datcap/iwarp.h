/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.h - RDMA messages as Ethernet frames that protocol analysers decode: TCP segments with MPA, DDP and RDMAP
 * headers. The headers below RDMAP are made up but for addresses and ports. Where messages come from is
 * rdma.c's job. */
#ifndef DATCAP_IWARP_H
#define DATCAP_IWARP_H
#include <stdbool.h>
#include <stdint.h>
#include "flow.h"

/* Calls `take` for each frame of the message: before the first one of a connection also those that open it. Stops
 * when it returns false, and returns that. */
bool iwarp_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg);

#endif
