/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h - datagrams between devices of this implementation, and address handles. */
#ifndef SOFT_RDMAP_UD_H
#define SOFT_RDMAP_UD_H
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	SOFT_UD_MTU = 4096,
	SOFT_GRH = 40,
};

struct dapl_device;
struct soft_qp;

struct soft_ah {
	struct ibv_ah ah;
	struct sockaddr_storage address;	/* of the peer's UDP socket */
	int traffic_class;	/* ToS byte of what is sent to it; -1: that of the socket */
};

/* A datagram, decoded. */
struct soft_datagram {
	uint32_t to_qp, from_qp, qkey, flags, immediate;
	const uint8_t *data;
	size_t length;
};

int soft_ud_open(struct dapl_device *dev);	/* for the first UD QP */
void soft_ud_close(struct dapl_device *dev);
/* Sends a datagram. Returns an errno value if the request is malformed; else 0, and *status is that of its
 * completion. qp->lock held. */
int soft_ud_send(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status *status);
void soft_ud_receive(struct dapl_device *dev);	/* progress lock held */
/* Returns false if the datagram is malformed. */
bool soft_ud_parse(struct soft_datagram *datagram, const uint8_t *p, size_t length);
/* Places the datagram in the next receive of the QP; without a receive it is lost. `to` is the IP
 * address to which it was sent. Progress lock held. */
void soft_ud_deliver(struct soft_qp *qp, const struct soft_datagram *datagram,
		     const struct sockaddr_storage *from, const struct sockaddr_storage *to);
int soft_ud_ah_create(struct ibv_pd *pd, const struct sockaddr *address, uint16_t port,
		   struct ibv_ah **ah);
/* Sets the ToS byte, or traffic class, of what is sent to the peer; -1: none is wanted, as at first. */
void soft_ud_ah_set_class(struct ibv_ah *ah, int traffic_class);
int soft_ud_ah_destroy(struct ibv_ah *ah);

#endif
