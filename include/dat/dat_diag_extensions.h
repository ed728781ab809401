/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_diag_extensions.h - why the connection of an endpoint failed or broke. An addition of
 * these providers: the old stack has nothing like it. Like all extensions it goes through
 * dat_extension_op(): the cast below fixes the types of its variable arguments. A provider without
 * it returns DAT_NOT_IMPLEMENTED. */
#ifndef _DAT_DIAG_EXTENSIONS_H_
#define _DAT_DIAG_EXTENSIONS_H_

#include "udat.h"
#include <sys/socket.h>

/* Beyond the numbers of dat_ib_extensions.h and dat_map_extensions.h. */
typedef enum dat_diag_op {
	DAT_DIAG_LAST_ERROR_OP = 0x480
} DAT_DIAG_OP;

/* The step of the connection in which it failed. */
typedef enum dat_diag_step {
	DAT_DIAG_STEP_RESOLVE_ADDRESS,	/* active side: the peer's address */
	DAT_DIAG_STEP_RESOLVE_ROUTE,	/* active: the path to it */
	DAT_DIAG_STEP_CONNECT,		/* active: TCP, or sending the CM request */
	DAT_DIAG_STEP_REPLY,		/* active: the peer's MPA or CM reply */
	DAT_DIAG_STEP_REQUEST,		/* passive side: the request, before it was answered */
	DAT_DIAG_STEP_ACCEPT,		/* passive: sending the reply */
	DAT_DIAG_STEP_READY,		/* passive: the peer's RTU, or its first frame */
	DAT_DIAG_STEP_TRANSFER		/* the connection was established */
} DAT_DIAG_STEP;

/* What `code` of a DAT_LAST_ERROR is. */
typedef enum dat_diag_code_kind {
	DAT_DIAG_CODE_NONE,		/* nothing */
	DAT_DIAG_CODE_IB_REJECT,	/* the reason of an InfiniBand REJ message */
	DAT_DIAG_CODE_SIDR,		/* the status of an InfiniBand SIDR_REP message */
	DAT_DIAG_CODE_CM_STATUS,	/* the status of a librdmacm event: a negative errno */
	DAT_DIAG_CODE_MPA,		/* the flags of an MPA reply; 0 on hardware */
	DAT_DIAG_CODE_TERMINATE_SENT,	/* RDMAP Terminate: layer << 12 | type << 8 | code */
	DAT_DIAG_CODE_TERMINATE_RECEIVED,	/* the same, from the peer */
	DAT_DIAG_CODE_COMPLETION,	/* enum ibv_wc_status */
	DAT_DIAG_CODE_ASYNC		/* enum ibv_event_type */
} DAT_DIAG_CODE_KIND;

#define DAT_DIAG_TEXT_MAX 512		/* bytes, with the terminating zero */

typedef struct dat_last_error {
	DAT_EVENT_NUMBER event;		/* what the consumer got for it: DAT_CONNECTION_EVENT_*,
					 * of a datagram endpoint DAT_IB_UD_CONNECTION_*.
					 * 0: no failure yet, and the rest is zero */
	DAT_DIAG_STEP step;
	DAT_COUNT error;		/* errno; 0: none, see code and text */
	DAT_DIAG_CODE_KIND code_kind;
	DAT_UINT32 code;
	DAT_UINT64 elapsed;		/* microseconds since connect, accept, or ESTABLISHED */
	struct sockaddr_storage local, remote;	/* with ports; a port that is not known is 0,
						 * the family of an unknown address is 0 */
	char text[DAT_DIAG_TEXT_MAX];	/* the message about it: one line, no newline */
} DAT_LAST_ERROR;

/* dat_ext_last_error(DAT_EP_HANDLE ep, DAT_LAST_ERROR *error)
 *
 * Copies into *error, which is the caller's, why the connection of `ep` did not come about, or
 * why it broke. In any state of the endpoint; the failure is known when its event
 * (NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT, ACCEPT_COMPLETION_ERROR, BROKEN) can be dequeued,
 * and stays until the next one or dat_ep_free(). A PEER_REJECTED is kept, too; an orderly
 * DISCONNECTED is no failure. A datagram endpoint keeps the last failure of all its peers.
 * The call may be made by any thread at any time; it takes the endpoint's lock, so it is not for
 * the fast path.
 *
 * The size of the structure is passed along, so that it may grow at its end: the provider fills in
 * as much as the caller's header has.
 *
 * DAT_SUCCESS			also when there was no failure: error->event is 0 then
 * DAT_INVALID_HANDLE		ep is no endpoint
 * DAT_INVALID_PARAMETER	error is NULL
 * DAT_NOT_IMPLEMENTED		the provider has no such extension */
#define dat_ext_last_error(ep, error) \
	dat_extension_op((DAT_HANDLE)(ep), (DAT_EXTENDED_OP)DAT_DIAG_LAST_ERROR_OP, \
		(DAT_LAST_ERROR *)(error), (DAT_COUNT)sizeof(DAT_LAST_ERROR))

#endif
