/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce.h - shows messages of RDMA devices with InfiniBand's transport as Ethernet frames that protocol
 * analysers decode: packets of RoCE version 2 on UDP. The packets are the posted messages, cut to the path
 * MTU. There are no acknowledgements and no retransmissions, and sequence numbers are made up. rdma.c
 * supplies the messages. */
#ifndef DATCAP_ROCE_H
#define DATCAP_ROCE_H
#include <stdbool.h>
#include <stdint.h>
#include "flow.h"

/* Calls `take` for each packet of the message. The record has TAP_ROCE. If `take` returns false, stops and
 * returns false. */
bool roce_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg);

#endif
