/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ep_attr.c - attributes of endpoints: defaults, checks, and the limits that posts are held to. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "dapl/core/ep/ep_attr.h"

static DAT_COUNT at_most(DAT_COUNT n, DAT_COUNT max)
{
	return n < max ? n : max;
}

/* EP-1 */
void dapl_ep_default_attr(const struct dapl_ia *ia, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;

	memset(attr, 0, sizeof *attr);
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->max_message_size = max->max_message_size;
	attr->max_rdma_size = max->max_rdma_size;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->request_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attr->max_recv_dtos = at_most(16, max->max_dto_per_ep);
	attr->max_request_dtos = at_most(16, max->max_dto_per_ep);
	attr->max_recv_iov = at_most(4, max->max_iov_segments_per_dto);
	attr->max_request_iov = at_most(4, max->max_iov_segments_per_dto);
	attr->max_rdma_read_in = at_most(4, max->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = at_most(4, max->max_rdma_read_per_ep_out);
	attr->max_rdma_read_iov = at_most(4, max->max_iov_segments_per_rdma_read);
	attr->max_rdma_write_iov = at_most(4, max->max_iov_segments_per_rdma_write);
}

static bool in_range(DAT_COUNT n, DAT_COUNT max)
{
	return n >= 0 && n <= max;
}

static bool one_of(int value, const int *good, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (value == good[i])
			return true;
	return false;
}

/* EP-7 */
static bool good_flags(const DAT_EP_ATTR *attr)
{
	static const int recv[] = { DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG };
	static const int request[] = { DAT_COMPLETION_DEFAULT_FLAG,
		DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_EVD_THRESHOLD_FLAG };

	return one_of(attr->recv_completion_flags, recv, 4) &&
	       one_of(attr->request_completion_flags & ~DAPL_PER_POST_FLAGS, request, 3);
}

/* Returns the name of an attribute that cannot be granted, for the trace. EP-6, 8. */
const char *dapl_ep_bad_attr(const struct dapl_ia *ia, const DAT_EP_ATTR *a)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;

	if (a->service_type != DAT_SERVICE_TYPE_RC &&
	    !((int)a->service_type == (int)DAT_IB_SERVICE_TYPE_UD && ia->attr.ud) &&
	    !(a->service_type == DAT_ETH_SERVICE_TYPE_RAW && dapl_device_ops.eth))
		return "service_type";
	if (a->max_message_size > max->max_message_size)
		return "max_message_size";
	if (a->max_rdma_size > max->max_rdma_size)
		return "max_rdma_size";
	if (a->qos & ~ia->provider_attr.dat_qos_supported)
		return "qos";
	if (!good_flags(a))
		return "completion flags";
	if (!in_range(a->max_recv_dtos, max->max_dto_per_ep))
		return "max_recv_dtos";
	if (!in_range(a->max_request_dtos, max->max_dto_per_ep))
		return "max_request_dtos";
	if (!in_range(a->max_recv_iov, max->max_iov_segments_per_dto))
		return "max_recv_iov";
	if (!in_range(a->max_request_iov, max->max_iov_segments_per_dto))
		return "max_request_iov";
	if (!in_range(a->max_rdma_read_in, max->max_rdma_read_per_ep_in))
		return "max_rdma_read_in";
	if (!in_range(a->max_rdma_read_out, max->max_rdma_read_per_ep_out))
		return "max_rdma_read_out";
	if (!in_range(a->max_rdma_read_iov, max->max_iov_segments_per_rdma_read))
		return "max_rdma_read_iov";
	if (!in_range(a->max_rdma_write_iov, max->max_iov_segments_per_rdma_write))
		return "max_rdma_write_iov";
	return NULL;
}

static DAT_COUNT or_else(DAT_COUNT n, DAT_COUNT otherwise)
{
	return n ? n : otherwise;
}

/* Zero means "no requirement" (doc/spec/calls.md, attribute tolerance). EP-5. */
void dapl_ep_attr_fill(const struct dapl_ia *ia, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *max = &ia->ia_attr;
	DAT_EP_ATTR def;

	dapl_ep_default_attr(ia, &def);
	if (!attr->max_message_size)
		attr->max_message_size = def.max_message_size;
	if (!attr->max_rdma_size)
		attr->max_rdma_size = def.max_rdma_size;
	attr->max_recv_dtos = or_else(attr->max_recv_dtos, 1);
	attr->max_request_dtos = or_else(attr->max_request_dtos, 1);
	attr->max_recv_iov = or_else(attr->max_recv_iov, 1);
	attr->max_request_iov = or_else(attr->max_request_iov, 1);
	attr->max_rdma_read_iov =
		or_else(attr->max_rdma_read_iov, at_most(attr->max_request_iov, max->max_iov_segments_per_rdma_read));
	attr->max_rdma_write_iov =
		or_else(attr->max_rdma_write_iov, at_most(attr->max_request_iov, max->max_iov_segments_per_rdma_write));
}

static bool is_true(const char *text)
{
	return text && !strcmp(text, "true");
}

/* EXT-17, 32, 33. delayed_ack is AIX uDAPL's attribute; those of tuned[] are extensions of this
 * provider. */
DAT_RETURN dapl_ep_named_attrs(struct dapl_ia *ia, const DAT_EP_ATTR *attr, bool *delayed_ack,
			       struct dapl_conn_tuning *tuning, DAT_RETURN bad)
{
	DAT_RETURN ret;

	for (int i = 0; attr->ep_provider_specific && i < attr->ep_provider_specific_count; i++) {
		const DAT_NAMED_ATTR *a = &attr->ep_provider_specific[i];

		if (a->name && strcmp(a->name, "delayed_ack")) {
			if ((ret = dapl_ep_tune(ia, a, tuning, bad)))
				return ret;
			continue;
		}
		if (!a->name || !a->value ||
		    (strcmp(a->value, "true") && strcmp(a->value, "false")))
			return bad;
		if (is_true(a->value) && !ia->attr.delayed_ack)
			return NOT_SUPPORTED;
		*delayed_ack = is_true(a->value);
	}
	return DAT_SUCCESS;
}

/* Sets the limits and flags that the posting calls check. WRITE_ONCE: slow paths read without a lock. */
void dapl_ep_set_post_limits(struct dapl_ep *ep)
{
	const DAT_EP_ATTR *attr = &ep->attr;
	const DAT_IA_ATTR *ia_attr = &ep->obj.ia->ia_attr;
	bool raw = attr->service_type == DAT_ETH_SERVICE_TYPE_RAW;

	dapl_post_lock(&ep->sq.lock);
	dapl_post_lock(&ep->rq.lock);
	/* The limits are those of the IA, because programs send more than the sizes that they requested. */
	WRITE_ONCE(ep->max_message, ia_attr->max_message_size);
	WRITE_ONCE(ep->max_rdma, ia_attr->max_rdma_size);
	WRITE_ONCE(ep->max_send_iov, attr->max_request_iov);
	WRITE_ONCE(ep->max_recv_iov, attr->max_recv_iov);
	WRITE_ONCE(ep->max_read_iov, attr->max_rdma_read_iov);
	WRITE_ONCE(ep->max_write_iov, attr->max_rdma_write_iov);
	WRITE_ONCE(ep->request_flags, attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG ?
		   0 : DAT_COMPLETION_UNSIGNALLED_FLAG);	/* DTO-17 */
	WRITE_ONCE(ep->recv_flags, attr->recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG ?
		   0 : DAT_COMPLETION_UNSIGNALLED_FLAG);
	WRITE_ONCE(ep->is_raw, raw);
	WRITE_ONCE(ep->is_ud, raw || (int)attr->service_type == (int)DAT_IB_SERVICE_TYPE_UD);
	ep->sq.limit = attr->max_request_dtos;
	ep->rq.limit = attr->max_recv_dtos;
	dapl_post_unlock(&ep->rq.lock);
	dapl_post_unlock(&ep->sq.lock);
}

/* --- limits of one connection ------------------------------------------------------------------ */

static const struct tuned {
	const char *name;
	size_t offset;
	unsigned max;
	unsigned needs;		/* DAPL_TUNES_* */
} tuned[DAPL_EP_TUNED] = {
#define FIELD(member) offsetof(struct dapl_conn_tuning, member)
	{ "ack_timeout",	FIELD(ack_timeout),	31,	DAPL_TUNES_ACK },
	{ "ack_retry",		FIELD(ack_retry),	7,	DAPL_TUNES_ACK },
	{ "rnr_timer",		FIELD(rnr_timer),	31,	DAPL_TUNES_RNR },
	{ "rnr_retry",		FIELD(rnr_retry),	7,	DAPL_TUNES_RNR },
	{ "traffic_class",	FIELD(traffic_class),	255,	DAPL_TUNES_CLASS },
#undef FIELD
};

static uint16_t *field(struct dapl_conn_tuning *tuning, const struct tuned *t)
{
	return (uint16_t *)((char *)tuning + t->offset);
}

/* Reads one to three decimal digits. Returns false for other text, and for numbers above max. */
static bool read_number(const char *text, unsigned max, unsigned *number)
{
	size_t digits = text ? strspn(text, "0123456789") : 0;

	if (!digits || digits > 3 || text[digits])
		return false;
	*number = (unsigned)atoi(text);
	return *number <= max;
}

DAT_RETURN dapl_ep_tune(const struct dapl_ia *ia, const DAT_NAMED_ATTR *attr,
			struct dapl_conn_tuning *tuning, DAT_RETURN bad)
{
	for (const struct tuned *t = tuned; t < tuned + DAPL_EP_TUNED; t++) {
		unsigned number;

		if (strcmp(attr->name, t->name))
			continue;
		if (!read_number(attr->value, t->max, &number)) {
			trace(TRC_LVL_ERROR, TRC_DAPL_ERROR, "ia", ia, NULL,
			      "attribute %s is \"%.20s\", expected a number from 0 to %u", t->name,
			      attr->value ? attr->value : "", t->max);
			return bad;
		}
		if (!(ia->attr.tunes & t->needs))
			return NOT_SUPPORTED;
		*field(tuning, t) = number + 1;
		return DAT_SUCCESS;
	}
	return bad;
}

int dapl_ep_list_tuning(struct dapl_ep *ep, int n)
{
	assert_held(&ep->lock);
	for (int i = 0; i < DAPL_EP_TUNED; i++) {
		unsigned wanted = *field(&ep->tuning, &tuned[i]);

		if (!wanted)
			continue;
		snprintf(ep->tuned_value[i], sizeof ep->tuned_value[i], "%u", (wanted - 1) % 1000);
		ep->provider_attr[n++] = (DAT_NAMED_ATTR){ tuned[i].name, ep->tuned_value[i] };
	}
	return n;
}
