/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic.h - which counters of endpoints are the bytes and the messages of an operation, for --top and --metrics. RDMA
 * writes and reads are counted by the program that posts them. */
#ifndef TOOLS_INFO_TRAFFIC_H
#define TOOLS_INFO_TRAFFIC_H
#include <jansson.h>
#include <stdint.h>

enum traffic { TRAFFIC_SEND, TRAFFIC_WRITE, TRAFFIC_READ, TRAFFIC_ATOMIC, TRAFFIC_RECEIVE, TRAFFIC_OPERATIONS };

/* Returns a word like "send". */
const char *traffic_name(enum traffic operation);
/* Each adds up the counters of an operation in `totals`, of an IA in an answer to CONTROL_COUNTERS. Atomics have no
 * bytes. */
int64_t traffic_bytes(const json_t *totals, enum traffic operation);
int64_t traffic_messages(const json_t *totals, enum traffic operation);

#endif
