/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_own.h - requests of the provider's own: markers, and the binding of memory windows (post_own.c). */
#ifndef DAPL_POST_OWN_H
#define DAPL_POST_OWN_H
#include "dapl/core/dapl.h"

/* A request that binds a memory window, or unbinds it (length 0 for type 1, `invalidate` for type 2). */
struct dapl_bind {
	struct ibv_mw *mw;
	struct ibv_mw_bind_info info;
	bool invalidate;
};
/* Posts it. `silent`: it makes no event. On return bind->mw->rkey is the new rkey. */
DAT_RETURN dapl_ep_post_bind(struct dapl_ep *ep, const struct dapl_bind *bind,
			     DAT_RMR_HANDLE rmr, DAT_RMR_COOKIE cookie,
			     DAT_COMPLETION_FLAGS flags, bool silent);

/* Posts a marker, a signaled request that completes after all others. `flushing`: the QP is in ERR. Returns
 * 0 or an errno. Called with ep->lock held. */
int dapl_ep_post_marker(struct dapl_ep *ep, bool flushing);

#endif
