/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iwarp.h - shows RDMA messages as Ethernet frames that protocol analysers decode: TCP segments with MPA,
 * DDP and RDMAP headers. The headers below RDMAP are made up, except for addresses. rdma.c supplies the messages. */
#ifndef DATCAP_IWARP_H
#define DATCAP_IWARP_H
#include <stdbool.h>
#include <stdint.h>
#include "flow.h"

/* Calls `take` for each frame of the message. Before the first message of a connection, these include the
 * frames of the handshakes. If `take` returns false, stops and returns false. */
bool iwarp_frames(const struct tap_record *record, const uint8_t *payload, flow_take *take, void *arg);
/* Begins a file: each connection has its handshakes again, before its first frame there. `take` may call this. */
void iwarp_begin_file(void);

#endif
