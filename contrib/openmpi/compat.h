/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* compat.h - what differs between the BTL interfaces 3.1 (Open MPI 4.1) and 3.3 (Open MPI 5.0).
 * All other files are written for both, and do not test the version. */
#ifndef BTL_UDAPL_COMPAT_H
#define BTL_UDAPL_COMPAT_H

#include "opal/mca/btl/btl.h"

#if BTL_VERSION >= 330
#include "opal/mca/pmix/pmix-internal.h"
#include "opal/mca/threads/thread_usage.h"

#define UDAPL_MODEX_SCOPE PMIX_GLOBAL

/* A received message, as a callback of Open MPI gets it. */
typedef mca_btl_base_receive_descriptor_t udapl_message_t;

static inline void udapl_message_init(udapl_message_t *message, mca_btl_base_segment_t *segment,
				      struct mca_btl_base_endpoint_t *from)
{
	message->endpoint = from;
	message->des_segments = segment;
	message->des_segment_count = 1;
}

static inline void udapl_message_deliver(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag,
					 const mca_btl_active_message_callback_t *to,
					 udapl_message_t *message)
{
	message->tag = tag;
	message->cbdata = to->cbdata;
	to->cbfunc(btl, message);
}

#else
#include "opal/mca/pmix/pmix.h"
#include "opal/threads/thread_usage.h"

#define UDAPL_MODEX_SCOPE OPAL_PMIX_GLOBAL

typedef mca_btl_base_descriptor_t udapl_message_t;

static inline void udapl_message_init(udapl_message_t *message, mca_btl_base_segment_t *segment,
				      struct mca_btl_base_endpoint_t *from)
{
	(void)from;
	message->des_segments = segment;
	message->des_segment_count = 1;
	message->des_cbfunc = NULL;
	message->des_flags = 0;
}

static inline void udapl_message_deliver(mca_btl_base_module_t *btl, mca_btl_base_tag_t tag,
					 const mca_btl_active_message_callback_t *to,
					 udapl_message_t *message)
{
	to->cbfunc(btl, tag, message, to->cbdata);
}
#endif

#endif
