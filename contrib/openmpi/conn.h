/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn.h - the life of a connection (conn.c). */
#ifndef BTL_UDAPL_CONN_H
#define BTL_UDAPL_CONN_H

#include "udapl.h"

/* Returns a connection with receives posted, not connected. NULL on failure. */
udapl_conn_t *udapl_conn_new(mca_btl_base_endpoint_t *e, bool active);
/* Called with e->lock held, in state UDAPL_IDLE. */
void udapl_connect(mca_btl_base_endpoint_t *e);
bool udapl_conn_is_established(const struct udapl_conn *c);
/* Called with e->lock held for the first message. Returns true if sending is possible from now
 * on. */
bool udapl_conn_first_message(struct udapl_conn *c);
/* Called with e->lock held. From now on messages may be sent. */
void udapl_conn_set_established(udapl_conn_t *c);
/* Called with e->lock held. The close notification tells the peer that the disconnect is
 * intended. */
void udapl_conn_close(struct udapl_conn *c);
/* Called when nothing is posted on the connection, or when the adapter is about to be closed. */
void udapl_conn_release(struct udapl_conn *c);
/* Takes e->lock. Called after a request or a receive failed. Fails the endpoint unless the connection is
 * being closed. */
void udapl_conn_broken(struct udapl_conn *c, const char *why);
/* Called with e->lock held after a failed post. If the endpoint has left the connected state,
 * an event reports the reason. Any other error is reported here. */
void udapl_conn_post_failed(struct udapl_conn *c, DAT_RETURN rc);
/* Called with e->lock held after a request failed, or after a disconnect that was not intended. Fails the
 * endpoint if the connection is in use. */
void udapl_conn_fail_if_in_use(udapl_conn_t *c, const char *why);
/* Returns the connection of this DAT endpoint, or NULL. */
struct udapl_conn *udapl_conn_from(DAT_EP_HANDLE ep);
/* Called with e->lock held. Fails the endpoint. udapl_conn_housekeep() later reports the failure to Open
 * MPI, without the lock. */
void udapl_endpoint_fail(mca_btl_base_endpoint_t *e, const char *why);
/* Called with e->lock held after the endpoint has lost its connection. If requests wait, schedules
 * another attempt, or fails the endpoint if no attempts are left. */
void udapl_endpoint_retry_or_fail(mca_btl_base_endpoint_t *e, const char *why);

#endif
