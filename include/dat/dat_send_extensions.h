/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_send_extensions.h - a send that carries 32 bits of immediate data: the receiver finds them in
 * the event, beside the message. An addition of these providers; version 2.0.9 of the InfiniBand
 * extensions has the event of a received one, but no call that posts one.
 *
 * The provider-specific attribute DAT_SEND_ATTR_IMMED of an IA has the value "TRUE" if the IA
 * supports this. Like all extensions it goes through dat_extension_op(): the casts below fix the
 * types of its variable arguments. */
#ifndef _DAT_SEND_EXTENSIONS_H_
#define _DAT_SEND_EXTENSIONS_H_

#include "udat.h"

#define DAT_SEND_ATTR_IMMED "DAT_SEND_IMMED"

/* Beyond the numbers of dat_dm_extensions.h. */
typedef enum dat_send_op {
	DAT_SEND_IMMED_OP = 0x800
} DAT_SEND_OP;

/* dat_ep_post_send_immed(DAT_EP_HANDLE ep, DAT_COUNT segments, const DAT_LMR_TRIPLET *iov,
 *			  DAT_DTO_COOKIE cookie, DAT_UINT32 immediate, DAT_COMPLETION_FLAGS flags)
 *
 * As dat_ep_post_send(), of 0 bytes and more. The sender gets a DAT_DTO_COMPLETION_EVENT whose
 * operation is DAT_DTO_SEND. The receiver gets, on an EVD with DAT_IB_EVD_EXTENSION_FLAG, a
 * DAT_IB_DTO_EVENT of the type DAT_IB_RECV_IMMED_DATA, with `immediate` in val.immed.data, the
 * same number, and the length of the message. Sends with and without immediate data are received
 * in the order in which they were posted.
 *
 * The errors are those of dat_ep_post_send(), and:
 *
 * DAT_INVALID_PARAMETER	ep is a datagram endpoint
 * DAT_NOT_IMPLEMENTED		the IA cannot: iWARP hardware has no immediate data */
#define dat_ep_post_send_immed(ep, segments, iov, cookie, immediate, flags) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_SEND_IMMED_OP, \
		(DAT_COUNT)(segments), (const DAT_LMR_TRIPLET *)(iov), (DAT_DTO_COOKIE)(cookie), \
		(DAT_UINT32)(immediate), (DAT_COMPLETION_FLAGS)(flags))

#endif
