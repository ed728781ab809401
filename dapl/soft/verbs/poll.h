/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* poll.h - the verbs that poll and arm a CQ. */
#ifndef SOFT_VERBS_POLL_H
#define SOFT_VERBS_POLL_H
#include <infiniband/verbs.h>

int soft_cq_poll(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int soft_cq_arm(struct ibv_cq *cq, int solicited_only);

#endif
