/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.h - how two devices on one host come to share memory.
 *
 * The acceptor makes an offer and sends its token in the MPA Reply; the initiator takes it. Each
 * gets the same struct shm_segment. If any step fails, the data stays on TCP. */
#ifndef SOFT_ATTACH_H
#define SOFT_ATTACH_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/shm/offers.h"

struct dapl_conn;
struct dapl_device;

/* AGAIN: the backlog of the peer process is full. NO: errno says why; 0: memory is not wanted, or not
 * offered. */
enum soft_attach { SOFT_ATTACH_DONE, SOFT_ATTACH_WAIT, SOFT_ATTACH_AGAIN, SOFT_ATTACH_NO };

/* The device is closed: no connection is left. */
void soft_shm_close(struct dapl_device *dev);
/* Before a fork, takes the locks of shared memory; after it, releases them, in parent and child. */
void soft_shm_fork_prepare(void);
void soft_shm_fork_done(void);
/* In the child: forgets the memory, which the child does not have, and closes the descriptors of the
 * parent. */
void soft_shm_fork_child(void);

/* The acceptor offers memory to the initiator that gets the token. NULL: errno says why; 0:
 * memory is not wanted. Progress lock held. */
struct attach_offer *attach_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				      uint8_t token[16]);
/* The initiator takes the offer. DONE: *segment is a reference. WAIT: call soft_attach_go_on() when
 * *fd is readable. *acceptor, if not NULL, is the connection of this device that made the offer.
 * Progress lock held. */
enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct shm_segment **segment, struct dapl_conn **acceptor);
enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct shm_segment **segment);

#endif
