/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* validate.h - checksums and segments of a received frame (validate.c). */
#ifndef SOFTETH_VALIDATE_H
#define SOFTETH_VALIDATE_H
#include <linux/virtio_net.h>
#include <sys/uio.h>
#include "dapl/softeth/port_types.h"

/* Fills in the flags about checksums, and the number of segments. `vnet` as the kernel wrote it; the
 * frame->length bytes that are here are in `iov`, and the first `parsed` of them at `head`. No lock is
 * needed. */
void eth_validate(const struct eth_port *port, struct dapl_eth_frame *frame, const struct virtio_net_hdr *vnet,
		  const uint8_t *head, uint32_t parsed, const struct iovec *iov, int n);

#endif
