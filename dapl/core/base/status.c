/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* status.c - the tables behind status.h: errno, completion status, endpoint state. */
#include <errno.h>
#include <stdlib.h>
#include "dapl/core/base/status.h"
#include "dapl/core/base/diag.h"

DAT_RETURN dapl_status(int err, DAT_RETURN_SUBTYPE no_resource)
{
	switch (abs(err)) {
	case 0:
		return DAT_SUCCESS;
	case ENOMEM: case EAGAIN: case ENOSPC: case EMFILE: case ENFILE: case ENOBUFS:
	case EMLINK:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, no_resource);
	case EOPNOTSUPP: case ENOSYS:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case EACCES: case EPERM: case EFAULT:
		return DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_NO_SUBTYPE);
	case EADDRINUSE:	/* SP-2, 40 */
		return DAT_ERROR(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE);
	case ENETUNREACH: case EHOSTUNREACH: case EADDRNOTAVAIL:
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	case EAFNOSUPPORT:
		return DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	case ENODEV: case ENXIO:
		return DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	default:
		return DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
}

DAT_DTO_COMPLETION_STATUS dapl_status_dto(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:		return DAT_DTO_SUCCESS;
	case IBV_WC_WR_FLUSH_ERR:	return DAT_DTO_ERR_FLUSHED;
	case IBV_WC_LOC_LEN_ERR:	return DAT_DTO_ERR_LOCAL_LENGTH;	/* DTO-4 */
	case IBV_WC_LOC_QP_OP_ERR:	return DAT_DTO_ERR_LOCAL_EP;
	case IBV_WC_LOC_PROT_ERR:
	case IBV_WC_LOC_ACCESS_ERR:	return DAT_DTO_ERR_LOCAL_PROTECTION;	/* DTO-15, 25 */
	case IBV_WC_MW_BIND_ERR:	return DAT_RMR_OPERATION_FAILED;
	case IBV_WC_BAD_RESP_ERR:	return DAT_DTO_ERR_BAD_RESPONSE;
	case IBV_WC_REM_ACCESS_ERR:	return DAT_DTO_ERR_REMOTE_ACCESS;	/* DTO-26 */
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
	case IBV_WC_REM_INV_RD_REQ_ERR:	return DAT_DTO_ERR_REMOTE_RESPONDER;
	case IBV_WC_RNR_RETRY_EXC_ERR:	return DAT_DTO_ERR_RECEIVER_NOT_READY;	/* DTO-32 */
	default:
		if ((unsigned)status > IBV_WC_TM_RNDV_INCOMPLETE)	/* the last one of rdma-core 44 */
			dapl_diag_unknown(NULL, "completion status", status, "taken as a transport error");
		return DAT_DTO_ERR_TRANSPORT;
	}
}

static const struct {
	const char *name;
	DAT_RETURN_SUBTYPE subtype;
} states[] = {
	[DAT_EP_STATE_UNCONNECTED] = { "unconnected", DAT_INVALID_STATE_EP_UNCONNECTED },
	[DAT_EP_STATE_UNCONFIGURED_UNCONNECTED] = { "unconfigured_unconnected",
		DAT_INVALID_STATE_EP_UNCONFIGURED },
	[DAT_EP_STATE_RESERVED] = { "reserved", DAT_INVALID_STATE_EP_RESERVED },
	[DAT_EP_STATE_UNCONFIGURED_RESERVED] = { "unconfigured_reserved",
		DAT_INVALID_STATE_EP_UNCONFRESERVED },
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = { "passive_connection_pending",
		DAT_INVALID_STATE_EP_PASSCONNPENDING },
	[DAT_EP_STATE_UNCONFIGURED_PASSIVE] = { "unconfigured_passive",
		DAT_INVALID_STATE_EP_UNCONFPASSIVE },
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = { "active_connection_pending",
		DAT_INVALID_STATE_EP_ACTCONNPENDING },
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = { "tentative_connection_pending",
		DAT_INVALID_STATE_EP_TENTCONNPENDING },
	[DAT_EP_STATE_UNCONFIGURED_TENTATIVE] = { "unconfigured_tentative",
		DAT_INVALID_STATE_EP_UNCONFTENTATIVE },
	[DAT_EP_STATE_CONNECTED] = { "connected", DAT_INVALID_STATE_EP_CONNECTED },
	[DAT_EP_STATE_DISCONNECT_PENDING] = { "disconnect_pending",
		DAT_INVALID_STATE_EP_DISCPENDING },
	[DAT_EP_STATE_DISCONNECTED] = { "disconnected", DAT_INVALID_STATE_EP_DISCONNECTED },
	[DAT_EP_STATE_COMPLETION_PENDING] = { "completion_pending",
		DAT_INVALID_STATE_EP_COMPLPENDING },
};

DAT_RETURN dapl_status_bad_ep_state(DAT_EP_STATE state)
{
	return DAT_ERROR(DAT_INVALID_STATE, states[state].subtype);
}

const char *dapl_status_ep_state_name(DAT_EP_STATE state)
{
	return (unsigned)state < sizeof states / sizeof *states ? states[state].name : "?";
}
