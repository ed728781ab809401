/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* liveness.h - keepalive, peers that no longer answer, and deadlines. Progress lock held, except
 * where a function takes a descriptor. */
#ifndef SOFT_CM_LIVENESS_H
#define SOFT_CM_LIVENESS_H
#include <stdbool.h>
#include <stdint.h>

struct dapl_conn;
struct dapl_conn_tuning;
struct dapl_device;
struct dapl_tcp_state;

/* How long the TCP of a peer may be silent though an answer is due. 0: for ever. ack_timeout and
 * ack_retry, else DAPL_ACK_TIMER and DAPL_ACK_RETRY, mean what they mean on InfiniBand. */
unsigned cm_patience_ms(const struct dapl_conn_tuning *tuning);
void cm_set_keepalive(int fd, const struct dapl_conn_tuning *tuning);
/* Returns true if the peer is silent for too long. Data, or a probe of its window, is sent again and again, and its
 * TCP acknowledges nothing. */
bool cm_peer_is_lost(struct dapl_conn *conn, uint64_t now);
/* The operation tcp_state of the device. The progress lock is not held. */
bool cm_tcp_state(struct dapl_conn *conn, struct dapl_tcp_state *state);
/* From now on the sweep looks whether the peer is lost. */
void cm_watch_liveness(struct dapl_conn *conn);

/* The connection expires in this time, unless it gets another deadline. */
void cm_set_deadline(struct dapl_conn *conn, unsigned seconds);
void cm_set_deadline_ms(struct dapl_conn *conn, unsigned ms);
/* The next sweep (cm.c) is due in this time at the latest. */
void cm_sweep_within(struct dapl_device *dev, uint64_t us);

#endif
