/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* push.h - posting of messages (push.c). */
#ifndef BTL_UDAPL_PUSH_H
#define BTL_UDAPL_PUSH_H

#include "udapl.h"

/* Posts waiting requests as far as possible. Takes e->lock. */
void udapl_push(mca_btl_base_endpoint_t *e);
/* Called with e->lock held: whether a message with `length` bytes of payload can be posted. */
bool udapl_has_room(struct udapl_conn *c, size_t length);
/* Called with e->lock held, after udapl_has_room() returned true. */
bool udapl_post_frag(struct udapl_conn *c, struct udapl_frag *f);
/* Called with e->lock held, after udapl_has_room() returned true. A fragment that cannot be posted
 * is appended to e->flushed_sends. How the connection ends decides the status with which these
 * complete. */
bool udapl_post_or_flush(mca_btl_base_endpoint_t *e, struct udapl_frag *f);

#endif
