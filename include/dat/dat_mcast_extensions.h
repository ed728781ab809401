/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_mcast_extensions.h - multicast for datagram endpoints: an endpoint joins a group, which is an
 * IP multicast address, receives the datagrams that are sent to the group, and sends to it. An
 * addition of these providers: version 2.0.9 of the InfiniBand extensions has datagrams to one peer
 * only.
 *
 * The provider-specific attribute DAT_MCAST_ATTR of an IA has the value "TRUE" if the IA supports
 * this. Like all extensions it goes through dat_extension_op(): the casts below fix the types of
 * its variable arguments. */
#ifndef _DAT_MCAST_EXTENSIONS_H_
#define _DAT_MCAST_EXTENSIONS_H_

#include "udat.h"

#define DAT_MCAST_ATTR "DAT_MCAST"

/* Beyond the numbers of dat_net_extensions.h. */
typedef enum dat_mcast_op {
	DAT_MCAST_JOIN_OP = 0x900,
	DAT_MCAST_LEAVE_OP
} DAT_MCAST_OP;

/* The endpoint sends to the group, and receives nothing from it. */
#define DAT_MCAST_SEND_ONLY 0x1

/* dat_mcast_join(DAT_EP_HANDLE ep, const struct sockaddr *group, DAT_UINT32 flags, DAT_CONTEXT
 * context)
 *
 * Joins a group, asynchronously. The port of `group` is not used. A link-local IPv6 group belongs
 * to the interface of the IA; its scope is that interface, or 0. The connect EVD of ep, which has
 * DAT_IB_EVD_EXTENSION_FLAG, gets one of these events:
 *
 * DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED	type DAT_IB_UD_REMOTE_AH; remote_ah is the address
 *				handle for dat_ib_post_send_ud(), valid until dat_mcast_leave();
 *				ia_addr is the group
 * DAT_IB_UD_CONNECTION_ERROR_EVENT	type DAT_IB_UD_CONNECT_ERROR; ep is no member. After an
 *				ESTABLISHED event: the network ended the membership, and the
 *				program leaves the group
 *
 * In both, `context` of the extension data is the one of this call. An endpoint that was
 * unconnected is connected from the first ESTABLISHED event on.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint, or has no connect EVD
 * DAT_INVALID_PARAMETER	ARG1: ep is no datagram endpoint. ARG2: group is no multicast
 *				address of the family of the IA's address, or of another
 *				interface. ARG3: an unknown flag
 * DAT_INVALID_STATE		ep is a member already, is being connected, or has no PZ
 * DAT_INSUFFICIENT_RESOURCES	no memory, no descriptor, or too many groups
 * DAT_NOT_IMPLEMENTED		the IA cannot: iWARP hardware has no datagrams */
#define dat_mcast_join(ep, group, flags, context) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_MCAST_JOIN_OP, \
		(const struct sockaddr *)(group), (DAT_UINT32)(flags), (DAT_CONTEXT)(context))

/* dat_mcast_leave(DAT_EP_HANDLE ep, const struct sockaddr *group)
 *
 * Leaves the group. If the join is not complete, no event comes of it. The address handle
 * is no longer valid: all sends to it have completed before. Freeing the endpoint leaves all its
 * groups.
 *
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	ARG1: ep is no datagram endpoint. ARG2: it is no member of the group
 * DAT_NOT_IMPLEMENTED		the IA cannot */
#define dat_mcast_leave(ep, group) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_MCAST_LEAVE_OP, \
		(const struct sockaddr *)(group))

#endif
