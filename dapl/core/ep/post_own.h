/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_own.h - requests of the provider's own: markers, and the binding of memory windows (post_own.c). */
#ifndef DAPL_POST_OWN_H
#define DAPL_POST_OWN_H
#include "dapl/core/dapl.h"

/* Binding a memory window, or (length 0 for type 1, `invalidate` for type 2) unbinding. */
struct dapl_bind {
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;
	bool invalidate;
};
/* `silent`: no event of its own. The new rkey is in bind->mw->rkey on return. */
DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent);

/* Posts a signaled request of the provider's own behind all others. ep->lock held. */
int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing);

#endif
