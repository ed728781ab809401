/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* offers.h - offers of acceptors to share memory. An offer has a key, which the initiator gets in the
 * MPA Reply. It is valid for one use. */
#ifndef SOFT_OFFERS_H
#define SOFT_OFFERS_H
#include <stdint.h>

struct attach_offer;
struct dapl_conn;
struct dapl_device;
struct shm_process;
struct shm_segment;

/* Makes an offer of the device's process, which exists, for the connection. NULL: no memory. */
struct attach_offer *offer_new(struct dapl_device *dev, struct dapl_conn *conn, uint64_t *key);
/* Ends the offer. Returns a reference to the segment that was made for it; NULL: it was not
 * taken, or `offer` is NULL. */
struct shm_segment *attach_offer_end(struct attach_offer *offer);
/* Returns the errno with which process *peer took the offer and got no memory; else 0. `offer` may be
 * NULL. */
int attach_offer_error(const struct attach_offer *offer, uint64_t *peer);

/* An initiator takes the offer. Returns a reference to the process that made it; NULL: there is no
 * such offer. `dev`, if not NULL, is the device of the initiator: *conn is set if that device made
 * the offer. */
struct shm_process *offer_take(uint64_t key, const struct dapl_device *dev,
			       struct dapl_conn **conn);
/* Gives a reference to the segment to the offer that was taken, if that still exists. */
void offer_give(uint64_t key, struct shm_segment *segment);
/* Process `peer` took the offer and cannot have a segment: errno `err`. */
void offer_refuse(uint64_t key, uint64_t peer, int err);
void offers_fork_prepare(void);
void offers_fork_done(void);
void offers_fork_child(void);

#endif
