/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_ud.c - see core_ud.h. */
#include "dapl/core/conn/ud.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/core/core_ud.h"
#include "test/unit/unit.h"

struct dapl_ep *core_ud_ep(void)
{
	const DAT_EP_ATTR attr = { .service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD,
		.max_message_size = CORE_UD_MESSAGE, .recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG,
		.request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG, .max_request_dtos = 8,
		.max_request_iov = 2 };

	core_ia->attr.ud = true;
	return core_objects_ep(NULL, &attr);
}

struct core_ud_event core_ud_next_event(const struct dapl_ep *ep)
{
	const DAT_IB_EXTENSION_EVENT_DATA *ext;
	struct core_ud_event own = { .number = 0 };
	DAT_EVENT event;

	if (!(own.number = core_next_event(core_conn_evd, &event)))
		return own;
	assert_ptr_equal(event.event_data.connect_event_data.ep_handle, ep);
	ext = (const void *)event.event_extension_data;
	own.type = ext->type;
	own.status = ext->status;
	own.to = ext->remote_ah;
	own.context = ext->context;
	if (event.event_data.connect_event_data.private_data_size)
		memcpy(own.pdata, event.event_data.connect_event_data.private_data,
		       (size_t)event.event_data.connect_event_data.private_data_size);
	return own;
}

DAT_RETURN core_ud_send(struct dapl_ep *ep, DAT_COUNT n, uint64_t length, const DAT_IB_ADDR_HANDLE *to)
{
	DAT_LMR_TRIPLET iov[2] = { { .segment_length = length } };

	return dapl_ud_send(ep, n, iov, to, (DAT_DTO_COOKIE){ .as_64 = 5 }, DAT_COMPLETION_DEFAULT_FLAG);
}
