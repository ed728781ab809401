/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive.h - completed receives, and the delivery of messages to Open MPI. */
#ifndef BTL_UDAPL_RECEIVE_H
#define BTL_UDAPL_RECEIVE_H

#include "udapl.h"

/* Hands a message to the callback registered for its tag. */
static inline void udapl_deliver(mca_btl_udapl_module_t *m, mca_btl_base_tag_t tag,
				 udapl_message_t *message)
{
	mca_btl_active_message_callback_t *to = &mca_btl_base_active_message_trigger[tag];

	if (OPAL_UNLIKELY(tag >= MCA_BTL_TAG_MAX || m->closing || !to->cbfunc))
		return;
	udapl_message_deliver(&m->super, tag, to, message);
}

void udapl_receive_completed(mca_btl_udapl_module_t *m, struct udapl_frag *f, const DAT_DTO_COMPLETION_EVENT_DATA *dto);
void udapl_credits_received(struct udapl_conn *c, int credits, uint32_t eager_credits);

#endif
