/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* recv_post.h - posting of receives (recv_post.c). */
#ifndef BTL_UDAPL_RECV_POST_H
#define BTL_UDAPL_RECV_POST_H

#include "udapl.h"

/* Receives that the peer of a connection may use: one for each credit, and those for control
 * messages. */
static inline int udapl_receives_of_conn(void)
{
	return mca_btl_udapl_component.credits + UDAPL_CONTROL_RECEIVES;
}

/* Posts the receives of a new connection. */
int udapl_receives_post(struct udapl_conn *c);
/* Reduces the receives that the shared queue needs by those of this connection. The surplus is not
 * re-posted after completion. */
void udapl_receives_release(struct udapl_conn *c);
/* Posts f, or a new fragment if f is NULL, if the shared queue needs another receive. */
int udapl_receive_post_shared(mca_btl_udapl_module_t *m, udapl_frag_t *f);
/* Posts f, or a new fragment if f is NULL, to the connection. */
int udapl_receive_post_own(udapl_conn_t *c, udapl_frag_t *f);
/* Puts a fragment that is not posted again back into its list. */
void udapl_receive_drop(mca_btl_udapl_module_t *m, udapl_frag_t *f);

#endif
