/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* phases.h - what the two sides of dtest do with their connection: bursts of RDMA writes, RDMA reads,
 * messages to and fro, RDMA writes to and fro. Each phase checks what arrived and prints what it measured. */
#ifndef DTEST_PHASES_H
#define DTEST_PHASES_H
#include "tester.h"

/* Runs the phases that the options select, in the order that the peer expects. */
void phases_run(struct tester *t);

#endif
