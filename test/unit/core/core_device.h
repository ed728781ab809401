/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_device.h - what unit tests of core stand on: a device that moves no data, whose completions
 * and errors the test chooses, with an IA above it (core_device.c). */
#ifndef TEST_CORE_DEVICE_H
#define TEST_CORE_DEVICE_H
#include "dapl/core/dapl.h"

/* What the device does in an operation, if the test wants something. */
struct core_device {
	int (*resize_cq)(struct ibv_cq *cq, int cqe);
};
extern struct core_device core_device;

/* An IA, published, with room for EVDs and endpoints. */
struct dapl_ia *core_ia_new(void);
/* All objects of it are gone. */
void core_ia_free(struct dapl_ia *ia);
/* An EVD of the streams `flags`, published. */
struct dapl_evd *core_evd_new(struct dapl_ia *ia, int qlen, DAT_EVD_FLAGS flags);
void core_evd_free(struct dapl_evd *evd);
/* A connected endpoint without a device queue pair, with room for `posts` of each kind. */
struct dapl_ep *core_ep_new(struct dapl_ia *ia, struct dapl_evd *evd, uint32_t posts);
void core_ep_free(struct dapl_ep *ep);
/* A record as a post leaves it; its completion is `wr_id`. */
struct dapl_dto *core_post(struct dapl_ep *ep, int op, unsigned flags, uint64_t cookie);
/* The device has completed something: the next poll of the CQ finds it. */
void core_complete(struct dapl_evd *evd, const struct ibv_wc *wc);

#endif
