/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - messages about a connection (control.c). */
#ifndef BTL_UDAPL_CONTROL_H
#define BTL_UDAPL_CONTROL_H

#include "udapl.h"

/* Called with e->lock held. The last slot is reserved for the close notification. Returns false
 * if nothing was posted: credits are then sent when a slot is free, and a ring is offered again after the
 * next received message. */
bool udapl_control(struct udapl_conn *c, enum udapl_message kind, const void *data, size_t size);
/* Reports credits to the peer, if enough of them are unreported. */
void udapl_return_credits(struct udapl_conn *c);
/* Called with e->lock held. Moves the unreported credits into the header. */
void udapl_put_credits(udapl_conn_t *c, struct udapl_header *h);
DAT_RETURN udapl_post_message(udapl_conn_t *c, udapl_frag_t *f);

#endif
