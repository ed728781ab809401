/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* names.c - values of the API to their names, for messages. Return values are named by
 * the registry's own dat_strerror. */
#include "conform.h"
#include <stdio.h>

struct name {
	unsigned value;
	const char *name;
};
#define NAME(value) { value, #value }
#define LOOK_UP(names, value) look_up(names, sizeof(names) / sizeof(*names), value)

/* A message may have several names, so the buffers are used in turn. */
static char *buffer(void)
{
	static __thread char buffers[8][160];
	static __thread unsigned next;
	return buffers[next++ % 8];
}

static const char *look_up(const struct name *names, size_t n, unsigned value)
{
	for (size_t i = 0; i < n; i++)
		if (names[i].value == value)
			return names[i].name;
	char *text = buffer();
	snprintf(text, 160, "0x%x", value);
	return text;
}

const char *return_name(DAT_RETURN ret)
{
	const char *major = NULL, *minor = NULL;
	char *text = buffer();

	if (dat_strerror(ret, &major, &minor) != DAT_SUCCESS || !major)
		snprintf(text, 160, "0x%08x", ret);
	else if (ret != DAT_SUCCESS && !(ret & DAT_CLASS_ERROR))
		snprintf(text, 160, "%s without the error class (0x%08x)", major, ret);
	else if (DAT_GET_SUBTYPE(ret))
		snprintf(text, 160, "%s(%s)", major, minor && *minor ? minor : "?");
	else
		snprintf(text, 160, "%s", major);
	return text;
}

const char *event_name(DAT_EVENT_NUMBER number)
{
	static const struct name names[] = {
		NAME(DAT_DTO_COMPLETION_EVENT),
		NAME(DAT_RMR_BIND_COMPLETION_EVENT),
		NAME(DAT_CONNECTION_REQUEST_EVENT),
		NAME(DAT_CONNECTION_EVENT_ESTABLISHED),
		NAME(DAT_CONNECTION_EVENT_PEER_REJECTED),
		NAME(DAT_CONNECTION_EVENT_NON_PEER_REJECTED),
		NAME(DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR),
		NAME(DAT_CONNECTION_EVENT_DISCONNECTED),
		NAME(DAT_CONNECTION_EVENT_BROKEN),
		NAME(DAT_CONNECTION_EVENT_TIMED_OUT),
		NAME(DAT_CONNECTION_EVENT_UNREACHABLE),
		NAME(DAT_ASYNC_ERROR_EVD_OVERFLOW),
		NAME(DAT_ASYNC_ERROR_IA_CATASTROPHIC),
		NAME(DAT_ASYNC_ERROR_EP_BROKEN),
		NAME(DAT_ASYNC_ERROR_TIMED_OUT),
		NAME(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR),
		NAME(DAT_HA_DOWN_TO_1),
		NAME(DAT_HA_UP_TO_MULTI_PATH),
		NAME(DAT_SOFTWARE_EVENT),
		NAME(DAT_IB_DTO_EVENT),
		NAME(DAT_IB_UD_CONNECTION_REQUEST_EVENT),
		NAME(DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED),
		NAME(DAT_IB_UD_CONNECTION_REJECT_EVENT),
		NAME(DAT_IB_UD_CONNECTION_ERROR_EVENT),
		NAME(DAT_IB_COLLECTIVE_EVENT),
	};
	return LOOK_UP(names, number);
}

const char *state_name(DAT_EP_STATE state)
{
	static const struct name names[] = {
		NAME(DAT_EP_STATE_UNCONNECTED),
		NAME(DAT_EP_STATE_UNCONFIGURED_UNCONNECTED),
		NAME(DAT_EP_STATE_RESERVED),
		NAME(DAT_EP_STATE_UNCONFIGURED_RESERVED),
		NAME(DAT_EP_STATE_PASSIVE_CONNECTION_PENDING),
		NAME(DAT_EP_STATE_UNCONFIGURED_PASSIVE),
		NAME(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING),
		NAME(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING),
		NAME(DAT_EP_STATE_UNCONFIGURED_TENTATIVE),
		NAME(DAT_EP_STATE_CONNECTED),
		NAME(DAT_EP_STATE_DISCONNECT_PENDING),
		NAME(DAT_EP_STATE_DISCONNECTED),
		NAME(DAT_EP_STATE_COMPLETION_PENDING),
		NAME(DAT_EP_STATE_CONNECTED_SINGLE_PATH),
		NAME(DAT_EP_STATE_CONNECTED_MULTI_PATH),
	};
	return LOOK_UP(names, state);
}

const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	static const struct name names[] = {
		NAME(DAT_DTO_SUCCESS),
		NAME(DAT_DTO_ERR_FLUSHED),
		NAME(DAT_DTO_ERR_LOCAL_LENGTH),
		NAME(DAT_DTO_ERR_LOCAL_EP),
		NAME(DAT_DTO_ERR_LOCAL_PROTECTION),
		NAME(DAT_DTO_ERR_BAD_RESPONSE),
		NAME(DAT_DTO_ERR_REMOTE_ACCESS),
		NAME(DAT_DTO_ERR_REMOTE_RESPONDER),
		NAME(DAT_DTO_ERR_TRANSPORT),
		NAME(DAT_DTO_ERR_RECEIVER_NOT_READY),
		NAME(DAT_DTO_ERR_PARTIAL_PACKET),
		NAME(DAT_RMR_OPERATION_FAILED),
		NAME(DAT_DTO_ERR_LOCAL_MM_ERROR),
	};
	return LOOK_UP(names, status);
}

const char *operation_name(DAT_DTOS operation)
{
	static const struct name names[] = {
		NAME(DAT_DTO_SEND),
		NAME(DAT_DTO_RDMA_WRITE),
		NAME(DAT_DTO_RDMA_READ),
		NAME(DAT_DTO_RECEIVE),
		NAME(DAT_DTO_RECEIVE_WITH_INVALIDATE),
		NAME(DAT_DTO_BIND_MW),
		NAME(DAT_IB_DTO_RDMA_WRITE_IMMED),
		NAME(DAT_IB_DTO_RECV_IMMED),
		NAME(DAT_IB_DTO_FETCH_ADD),
		NAME(DAT_IB_DTO_CMP_SWAP),
		NAME(DAT_IB_DTO_RECV_MSG_IMMED),
		NAME(DAT_IB_DTO_SEND_UD),
		NAME(DAT_IB_DTO_RECV_UD),
	};
	return LOOK_UP(names, operation);
}

const char *handle_type_name(DAT_HANDLE_TYPE type)
{
	static const struct name names[] = {
		NAME(DAT_HANDLE_TYPE_CR),
		NAME(DAT_HANDLE_TYPE_EP),
		NAME(DAT_HANDLE_TYPE_EVD),
		NAME(DAT_HANDLE_TYPE_IA),
		NAME(DAT_HANDLE_TYPE_LMR),
		NAME(DAT_HANDLE_TYPE_PSP),
		NAME(DAT_HANDLE_TYPE_PZ),
		NAME(DAT_HANDLE_TYPE_RMR),
		NAME(DAT_HANDLE_TYPE_RSP),
		NAME(DAT_HANDLE_TYPE_CNO),
		NAME(DAT_HANDLE_TYPE_SRQ),
		NAME(DAT_HANDLE_TYPE_CSP),
	};
	return LOOK_UP(names, type);
}
