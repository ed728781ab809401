/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* socket.h - options and addresses of the sockets of connections. */
#ifndef SOFT_CM_SOCKET_H
#define SOFT_CM_SOCKET_H
#include <stdbool.h>

struct dapl_conn;
struct sockaddr_storage;

void cm_set_no_delay(int fd);
/* Leaves the last acknowledgement of the TCP handshake to the MPA Request, which follows at
 * once. */
void cm_delay_handshake_ack(int fd);
/* Makes close(2) send a reset: one packet, and no TIME_WAIT. For sockets that carry no data. */
void cm_set_reset_on_close(int fd);
/* Sets the IP type of service: DAPL_CM_TOS, or what the QoS of the connection asks for. */
void cm_set_traffic_class(const struct dapl_conn *conn);
/* Returns true if both addresses are equal except for the port. Scope and padding count. */
bool cm_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
/* Returns true if the peer may be on this host, so that an offer of shared memory can pay. */
bool cm_peer_is_local(const struct dapl_conn *conn);

#endif
