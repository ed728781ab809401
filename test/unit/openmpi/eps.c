/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eps.c - see eps.h. */
#include "test/unit/openmpi/eps.h"

struct test_ep eps[32];
int num_eps;
struct ep_results ep_results;
bool disconnects_succeed;
int evd_lengths[8], evd_resizes;
DAT_COUNT srq_room;
struct udapl_hello cr_hello;
DAT_COUNT cr_hello_size;
int rejects;

static struct test_ep *find(DAT_HANDLE handle)
{
	for (int i = 0; i < num_eps; i++)
		if (handle == &eps[i] && eps[i].exists)
			return &eps[i];
	return NULL;
}

struct test_ep *ep_of(DAT_EP_HANDLE ep)
{
	struct test_ep *found = find(ep);

	assert_non_null(found);
	return found;
}

int eps_existing(void)
{
	int n = 0;

	for (int i = 0; i < num_eps; i++)
		n += eps[i].exists;
	return n;
}

void eps_begin(void)
{
	memset(eps, 0, sizeof eps);
	memset(&ep_results, 0, sizeof ep_results);
	memset(&cr_hello, 0, sizeof cr_hello);
	eps[0].exists = true;
	num_eps = 1;
	evd_resizes = rejects = 0;
	disconnects_succeed = false;
	srq_room = 1000;
	cr_hello_size = sizeof cr_hello;
}

static DAT_RETURN create(DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	if (ep_results.create != DAT_SUCCESS)
		return ep_results.create;
	assert_true(num_eps < (int)(sizeof eps / sizeof *eps));
	eps[num_eps] = (struct test_ep){ .exists = true, .attr = *attr, .srq = srq };
	*ep = (DAT_EP_HANDLE)&eps[num_eps++];
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE receives, DAT_EVD_HANDLE requests,
			 DAT_EVD_HANDLE connections, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	(void)ia, (void)pz;
	assert_ptr_equal(receives, module.dto_evd);
	assert_ptr_equal(requests, module.dto_evd);
	assert_ptr_equal(connections, module.conn_evd);
	return create(DAT_HANDLE_NULL, attr, ep);
}

DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE receives, DAT_EVD_HANDLE requests,
				  DAT_EVD_HANDLE connections, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
				  DAT_EP_HANDLE *ep)
{
	(void)ia, (void)pz;
	assert_ptr_equal(receives, module.dto_evd);
	assert_ptr_equal(requests, module.dto_evd);
	assert_ptr_equal(connections, module.conn_evd);
	assert_non_null(srq);
	return create(srq, attr, ep);
}

DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep)
{
	ep_of(ep)->exists = false;
	return DAT_SUCCESS;
}

DAT_RETURN dat_set_consumer_context(DAT_HANDLE which, DAT_CONTEXT context)
{
	if (ep_results.set_context == DAT_SUCCESS)
		ep_of(which)->context = context;
	return ep_results.set_context;
}

DAT_RETURN dat_get_consumer_context(DAT_HANDLE which, DAT_CONTEXT *context)
{
	const struct test_ep *ep = find(which);

	if (!ep)
		return UDAPL_ERROR(DAT_INVALID_HANDLE, DAT_NO_SUBTYPE);
	*context = ep->context;
	return DAT_SUCCESS;
}

static struct udapl_hello hello_from(const void *data, DAT_COUNT size)
{
	struct udapl_hello h;

	assert_int_equal(size, sizeof h);
	assert_true(udapl_hello_parse(&module, data, size, &h));
	return h;
}

DAT_RETURN dat_ep_connect(DAT_EP_HANDLE which, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qualifier, DAT_TIMEOUT timeout,
			  DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	struct test_ep *ep = ep_of(which);

	(void)qos, (void)flags;
	if (ep_results.connect != DAT_SUCCESS)
		return ep_results.connect;
	ep->to = to;
	ep->qualifier = qualifier;
	ep->timeout = timeout;
	ep->hello = hello_from(data, size);
	return DAT_SUCCESS;
}

DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE which, DAT_CLOSE_FLAGS flags)
{
	struct test_ep *ep = ep_of(which);

	if (ep_results.disconnect != DAT_SUCCESS)
		return ep_results.disconnect;
	ep->disconnects++;
	ep->close_flags = flags;
	disconnects++;
	if (disconnects_succeed)
		new_event(module.conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED)->event_data.connect_event_data.ep_handle =
			which;
	return DAT_SUCCESS;
}

DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	(void)cr, (void)mask;
	if (ep_results.cr_query != DAT_SUCCESS)
		return ep_results.cr_query;
	*param = (DAT_CR_PARAM){ .private_data = &cr_hello, .private_data_size = cr_hello_size };
	return DAT_SUCCESS;
}

DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE which, DAT_COUNT size, const DAT_PVOID data)
{
	struct test_ep *ep = ep_of(which);

	if (ep_results.accept != DAT_SUCCESS)
		return ep_results.accept;
	ep->cr = cr;
	ep->hello = hello_from(data, size);
	return DAT_SUCCESS;
}

DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	(void)cr, (void)size, (void)data;
	rejects++;
	return DAT_SUCCESS;
}

DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd, DAT_COUNT length)
{
	assert_ptr_equal(evd, module.dto_evd);
	if (ep_results.resize != DAT_SUCCESS)
		return ep_results.resize;
	assert_true(evd_resizes < (int)(sizeof evd_lengths / sizeof *evd_lengths));
	evd_lengths[evd_resizes++] = length;
	return DAT_SUCCESS;
}

DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE which, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param)
{
	(void)mask;
	assert_ptr_equal(which, module.srq);
	memset(param, 0, sizeof *param);
	param->max_recv_dtos = srq_room;
	return ep_results.srq_query;
}
