/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post_recv.h - receives that the fast path of post.c does not take (post_recv.c). */
#ifndef DAPL_POST_RECV_H
#define DAPL_POST_RECV_H
#include "dapl/core/dapl.h"

/* Posts a receive with any list of segments and any flags. Arguments and errors are those of
 * dat_ep_post_recv(). Called with no lock held. */
DAT_RETURN dapl_receive_any(struct dapl_ep *ep, int n, const DAT_LMR_TRIPLET *iov,
			    DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags);

#endif
