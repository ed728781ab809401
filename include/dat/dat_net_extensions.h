/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_net_extensions.h - events when the MTU, the link or the address of an open IA changes. An
 * addition of these providers: the old stack has nothing like it. A program must ask for them,
 * since older programs do not expect events of this number. dat_ia_query() returns the present
 * values without it.
 *
 * The provider-specific attribute DAT_NET_ATTR_WATCH of an IA has the value "TRUE" if the IA
 * supports this. Like all extensions it goes through dat_extension_op(): the casts below fix the
 * types of its variable arguments. */
#ifndef _DAT_NET_EXTENSIONS_H_
#define _DAT_NET_EXTENSIONS_H_

#include "udat.h"

#define DAT_NET_ATTR_WATCH "DAT_NET_WATCH"

/* Beyond the numbers of dat_send_extensions.h. */
typedef enum dat_net_op {
	DAT_NET_WATCH_OP = 0x880
} DAT_NET_OP;

/* What changes; the numbers are those of dat_net.h. */
#define DAT_NET_MTU 0x1
#define DAT_NET_LINK 0x2
#define DAT_NET_ADDRESS 0x4
#define DAT_NET_RDMA 0x20

/* On the asynchronous EVD of the IA. event_extension_data holds a DAT_NET_CHANGE_DATA. */
#define DAT_NET_CHANGE_EVENT ((DAT_EVENT_NUMBER)0x68000)

typedef struct dat_net_change_data {
	DAT_UINT32 what;		/* DAT_NET_MTU, _LINK, _ADDRESS: the IA's address was
					 * removed (now is 0) or is there again (1). _RDMA: the
					 * device went (0) */
	DAT_UINT32 before, now;		/* MTU: bytes, as the attribute DAT_IB_TRANSPORT_MTU.
					 * Others: 0 or 1 */
	DAT_UINT32 lost;		/* changes of this kind since the last event that have
					 * no event of their own; at least, if they were faster
					 * than the kernel's messages could be read */
	DAT_IA_HANDLE ia;
} DAT_NET_CHANGE_DATA;

/* dat_net_watch(DAT_IA_HANDLE ia, DAT_UINT32 what)
 *
 * From now on changes of the kinds in `what` give events. 0: no more events. Of each kind there are
 * at most ten events a second: many changes become one event with the last value and `lost`. A
 * change that was undone meanwhile gives an event whose `before` and `now` are equal, with `lost`
 * 1. An asynchronous EVD that is full gets the event when it has room.
 *
 * DAT_INVALID_HANDLE		ia is no open IA
 * DAT_INVALID_PARAMETER	`what` has an unknown bit
 * DAT_MODEL_NOT_SUPPORTED	the IA has no asynchronous EVD
 * DAT_INSUFFICIENT_RESOURCES	no memory, or no descriptor
 * DAT_NOT_IMPLEMENTED		the provider has no such extension */
#define dat_net_watch(ia, what) \
	dat_extension_op((DAT_HANDLE)(ia), (DAT_EXTENDED_OP)DAT_NET_WATCH_OP, (DAT_UINT32)(what))

#endif
