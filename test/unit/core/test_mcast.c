/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mcast.c - the multicast groups of a datagram endpoint (conn/mcast.c): from the join until the endpoint leaves,
 * the join fails, or the endpoint is freed. */
#include <net/if.h>
#include <sched.h>
#include <dat/dat_mcast_extensions.h>
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/conn/mcast.h"
#include "dapl/core/ep/ep_state.h"
#include "test/unit/core/core_objects.h"
#include "test/unit/core/core_ud.h"
#include "test/unit/unit.h"

#define NOT_IMPLEMENTED DAT_ERROR(DAT_NOT_IMPLEMENTED, DAT_NO_SUBTYPE)
#define MEMBER_ALREADY DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE)

enum { MEMBERSHIPS = 4, GROUP_QPN = 33, GROUP_QKEY = 44, GROUP_PORT = 99, INTERFACE = 7 };

static struct dapl_ep *ep;
static int ep_refs;			/* without memberships */

/* --- the device ---------------------------------------------------------------------------------------- */

static char memberships[MEMBERSHIPS];	/* those of the device: their addresses */
static unsigned joins, leaves;
static int join_error;
static struct sockaddr_storage asked;	/* of the last join */
static bool asked_send_only;
static struct ibv_ah handles[MEMBERSHIPS];
static struct ibv_send_wr sent;
static unsigned sends;
static bool no_memory;			/* for the next allocation */

extern const struct dapl_device_ops __real_dapl_device_ops;
extern struct dapl_device_ops __wrap_dapl_device_ops;
struct dapl_device_ops __wrap_dapl_device_ops;

#define MEMBERSHIP(i) ((struct dapl_membership *)&memberships[i])

static int note_join(struct dapl_device *dev, struct ibv_qp *qp, const struct sockaddr *group, bool send_only,
		     void *owner, struct dapl_membership **membership)
{
	assert_ptr_equal(dev, core_ia->dev);
	assert_ptr_equal(qp, ep->qp);
	assert_non_null(qp);
	assert_ptr_equal(owner, ep);
	assert_false(ep->changing);
	asked_send_only = send_only;
	memset(&asked, 0, sizeof asked);
	memcpy(&asked, group, group->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	*membership = MEMBERSHIP(joins);	/* after an error it is none */
	if (join_error)
		return join_error;
	joins++;
	return 0;
}

static void note_leave(struct dapl_membership *membership)
{
	assert_in_range((char *)membership - memberships, 0, joins - 1);
	leaves++;
	dapl_up_released(ep);
}

static int note_send(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	sent = *wr;
	sends++;
	return 0;
}

UNIT_FAIL_CALLOC(no_memory)

/* Another thread has changed the endpoint meanwhile. */
EXTEND(sched_yield)
int __wrap_sched_yield(void)
{
	if (ep)
		ep->changing = false;
	return __real_sched_yield();
}

/* --- set-up ---------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(set_up)
{
	ep = NULL;
	no_memory = false;
	__wrap_dapl_device_ops = __real_dapl_device_ops;
	__wrap_dapl_device_ops.join = note_join;
	__wrap_dapl_device_ops.leave = note_leave;
	assert_int_equal(core_objects_open(state), 0);
	core_ia->attr.multicast = true;
	core_ia->attr.netdev_index = INTERFACE;
	core_device.post_send = note_send;
	joins = leaves = sends = 0;
	join_error = 0;
	ep = core_ud_ep();
	ep_refs = ep->obj.refs;
}

/* The endpoint leaves the groups that it is in. */
static int tear_down(void **state)
{
	assert_int_equal(ep->obj.refs, ep_refs + (int)(joins - leaves));
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(leaves, joins);
	assert_int_equal(ep->obj.refs, 0);
	return core_objects_close(state);
}

static struct sockaddr_storage address_of(const char *text, unsigned scope)
{
	struct sockaddr_storage address = { 0 };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address;
	struct sockaddr_in *in = (struct sockaddr_in *)&address;

	if (inet_pton(AF_INET, text, &in->sin_addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(GROUP_PORT);
		return address;
	}
	assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(GROUP_PORT);
	in6->sin6_scope_id = scope;
	return address;
}

static DAT_RETURN join(const char *group, DAT_UINT32 flags)
{
	const struct sockaddr_storage address = address_of(group, 0);

	return dapl_mcast_join(ep, (const struct sockaddr *)&address, flags, (DAT_CONTEXT){ .as_64 = 5 + joins });
}

static DAT_RETURN leave(const char *group)
{
	const struct sockaddr_storage address = address_of(group, 0);

	return dapl_mcast_leave(ep, (const struct sockaddr *)&address);
}

static void tell(unsigned i, int err)
{
	const struct dapl_ud_peer to = { &handles[i], GROUP_QPN, GROUP_QKEY };

	dapl_up_joined(ep, MEMBERSHIP(i), err, err ? NULL : &to);
}

static struct core_ud_event joined(const char *group)
{
	assert_int_equal(join(group, 0), DAT_SUCCESS);
	tell(joins - 1, 0);
	return core_ud_next_event(ep);
}

static int next_number(void) { return core_ud_next_event(ep).number; }

/* The call has reached no device, and no event follows. */
static void assert_not_joined(const char *group, DAT_UINT32 flags, DAT_RETURN expected)
{
	assert_int_equal(join(group, flags), expected);
	assert_int_equal(joins, 0);
	assert_null(ep->groups);
	assert_int_equal(ep->obj.refs, ep_refs);
	assert_int_equal(ep->lock.state, 0);
	assert_int_equal(next_number(), 0);
}

/* --- joining --------------------------------------------------------------------------------------------- */

UNIT_CASE(join_is_the_devices)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&asked;

	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	assert_int_equal(in->sin_family, AF_INET);
	assert_int_equal(in->sin_addr.s_addr, inet_addr("239.1.2.3"));
	assert_int_equal(in->sin_port, 0);
	assert_false(asked_send_only);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(next_number(), 0);
	assert_int_equal(join("239.1.2.4", DAT_MCAST_SEND_ONLY), DAT_SUCCESS);
	assert_true(asked_send_only);
}

/* Neither while it joins nor as a member; a group is its address, whatever the port. */
UNIT_CASE(group_is_joined_once)
{
	struct sockaddr_storage address = address_of("239.1.2.3", 0);

	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	assert_int_equal(join("239.1.2.3", DAT_MCAST_SEND_ONLY), MEMBER_ALREADY);
	tell(0, 0);
	((struct sockaddr_in *)&address)->sin_port = htons(GROUP_PORT + 1);
	assert_int_equal(dapl_mcast_join(ep, (struct sockaddr *)&address, 0, (DAT_CONTEXT){ .as_64 = 0 }),
			 MEMBER_ALREADY);
	assert_int_equal(joins, 1);
}

UNIT_CASE(device_without_multicast_has_no_groups)
{
	core_ia->attr.multicast = false;
	assert_not_joined("239.1.2.3", 0, NOT_IMPLEMENTED);
	assert_int_equal(leave("239.1.2.3"), NOT_IMPLEMENTED);
	core_ia->attr.multicast = true;
	__wrap_dapl_device_ops.join = NULL;
	assert_not_joined("239.1.2.3", 0, NOT_IMPLEMENTED);
	assert_int_equal(leave("239.1.2.3"), NOT_IMPLEMENTED);
}

UNIT_CASE(only_datagram_endpoints_are_in_groups)
{
	ep->is_ud = false;
	assert_not_joined("239.1.2.3", 0, BAD_PARAM(1));
	assert_int_equal(leave("239.1.2.3"), BAD_PARAM(1));
	ep->is_ud = ep->is_raw = true;
	assert_not_joined("239.1.2.3", 0, BAD_PARAM(1));
	assert_int_equal(leave("239.1.2.3"), BAD_PARAM(1));
	ep->is_raw = false;
}

UNIT_CASE(arguments_are_checked)
{
	static const char *const others[] = { "223.255.255.255", "240.0.0.0", "ff02::1" };

	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_not_joined(others[i], 0, BAD_PARAM(2));
		assert_int_equal(leave(others[i]), BAD_PARAM(2));
	}
	assert_int_equal(dapl_mcast_join(ep, NULL, 0, (DAT_CONTEXT){ .as_64 = 0 }), BAD_PARAM(2));
	assert_int_equal(dapl_mcast_leave(ep, NULL), BAD_PARAM(2));
	assert_not_joined("239.1.2.3", 2, BAD_PARAM(3));
	assert_not_joined("239.1.2.3", DAT_MCAST_SEND_ONLY | 0x80000000u, BAD_PARAM(3));
}

UNIT_CASE(group_of_another_interface_is_refused)
{
	static const struct {
		const char *group;
		unsigned scope, joined;		/* with the second */
		bool good;
	} rows[] = {
		{ "ff02::1", 0, INTERFACE, true }, { "ff01::2", 0, INTERFACE, true },
		{ "ff02::3", INTERFACE, INTERFACE, true }, { "ff05::4", 0, 0, true }, { "ff05::5", INTERFACE, 0, true },
		{ "ff02::6", INTERFACE + 1, 0, false }, { "ff05::7", INTERFACE + 1, 0, false },
		{ "fe80::8", 0, 0, false }, { "224.0.0.9", 0, 0, false },
	};

	core_ia->attr.address.ss_family = AF_INET6;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct sockaddr_storage address = address_of(rows[i].group, rows[i].scope);
		const struct sockaddr *group = (const struct sockaddr *)&address;

		joins = leaves = 0;
		if (dapl_mcast_join(ep, group, 0, (DAT_CONTEXT){ .as_64 = 0 }) != (rows[i].good ? DAT_SUCCESS :
										   BAD_PARAM(2)) ||
		    (rows[i].good && ((struct sockaddr_in6 *)&asked)->sin6_scope_id != rows[i].joined) ||
		    dapl_mcast_leave(ep, group) != (rows[i].good ? DAT_SUCCESS : BAD_PARAM(2)))
			fail_msg("row %zu", i);
	}
}

UNIT_CASE(endpoint_must_be_able_to_join)
{
	struct dapl_pz *pz = ep->pz;
	uint32_t magic = ep->obj.magic;

	ep->state = DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;
	assert_not_joined("239.1.2.3", 0, dapl_status_bad_ep_state(ep->state));
	ep->state = DAT_EP_STATE_UNCONNECTED;
	ep->pz = NULL;
	assert_not_joined("239.1.2.3", 0, BAD_STATE(EP_NOTREADY));
	ep->pz = pz;
	ep->connect_evd = NULL;
	assert_not_joined("239.1.2.3", 0, BAD_HANDLE(EVD_CONN));
	ep->connect_evd = core_conn_evd;
	ep->obj.magic = 0;	/* it was freed meanwhile */
	assert_not_joined("239.1.2.3", 0, BAD_HANDLE(EP));
	ep->obj.magic = magic;
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
}

UNIT_CASE(join_waits_for_a_change_of_the_endpoint)
{
	ep->changing = true;
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	assert_int_equal(joins, 1);
}

UNIT_CASE(join_that_the_device_refuses_leaves_nothing)
{
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);	/* the endpoint has its QP */
	assert_int_equal(leave("239.1.2.3"), DAT_SUCCESS);
	joins = leaves = 0;
	no_memory = true;
	assert_not_joined("239.1.2.3", 0, NO_RESOURCE(MEMORY));
	no_memory = false;
	join_error = ENOBUFS;		/* too many groups */
	assert_not_joined("239.1.2.3", 0, NO_RESOURCE(MEMORY));
	join_error = EMFILE;
	assert_not_joined("239.1.2.3", 0, NO_RESOURCE(TEP));
	assert_int_equal(leaves, 0);
	join_error = 0;
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
}

/* --- failures that the device reports ---------------------------------------------------------------------- */

UNIT_CASE(failed_join_is_reported_and_left)
{
	struct core_ud_event event;

	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	tell(0, ENODEV);
	event = core_ud_next_event(ep);
	assert_int_equal(event.number, DAT_IB_UD_CONNECTION_ERROR_EVENT);
	assert_int_equal(event.type, DAT_IB_UD_CONNECT_ERROR);
	assert_int_equal(event.status, DAT_IB_OP_ERR);
	assert_null(event.to.ah);
	assert_int_equal(((struct sockaddr_in *)&event.to.ia_addr)->sin_addr.s_addr, inet_addr("239.1.2.3"));
	assert_int_equal(event.context.as_64, 5);
	assert_int_equal(ep->failure.diag.cause.err, ENODEV);
	assert_int_equal(ep->failure.diag.cause.step, DAPL_STEP_CONNECT);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(leaves, 1);
	assert_int_equal(leave("239.1.2.3"), BAD_PARAM(2));
	assert_int_equal(joined("239.1.2.3").number, DAT_IB_UD_CONNECTION_EVENT_ESTABLISHED);
}

/* The consumer may still have sends to it. */
UNIT_CASE(membership_that_the_network_ends_is_kept_until_it_is_left)
{
	struct core_ud_event event = joined("239.1.2.3"), end;

	tell(0, ENETDOWN);
	end = core_ud_next_event(ep);
	assert_int_equal(end.number, DAT_IB_UD_CONNECTION_ERROR_EVENT);
	assert_int_equal(end.type, DAT_IB_UD_CONNECT_ERROR);
	assert_int_equal(end.context.as_64, 5);
	assert_int_equal(ep->failure.diag.cause.step, DAPL_STEP_TRANSFER);
	assert_int_equal(leaves, 0);
	assert_int_equal(join("239.1.2.3", 0), MEMBER_ALREADY);
	assert_int_equal(core_ud_send(ep, 1, 10, &event.to), DAT_SUCCESS);
	assert_int_equal(leave("239.1.2.3"), DAT_SUCCESS);
	assert_int_equal(leaves, 1);
}

UNIT_CASE(endpoint_without_connect_evd_gets_no_event)
{
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	ep->connect_evd = NULL;
	tell(0, 0);
	assert_int_equal(ep->state, DAT_EP_STATE_CONNECTED);
	tell(0, ENETDOWN);
	ep->connect_evd = core_conn_evd;
	assert_int_equal(next_number(), 0);
}

/* The upcall was on its way. */
UNIT_CASE(group_that_is_left_while_joining_is_not_reported)
{
	assert_int_equal(join("239.1.2.3", 0), DAT_SUCCESS);
	assert_int_equal(join("239.1.2.4", 0), DAT_SUCCESS);
	assert_int_equal(leave("239.1.2.3"), DAT_SUCCESS);
	tell(0, 0);
	tell(0, ENODEV);
	assert_int_equal(next_number(), 0);
	assert_int_equal(ep->state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(leaves, 1);
	tell(1, 0);
	assert_int_equal(core_ud_next_event(ep).context.as_64, 6);
}

UNIT_MAIN(NULL, NULL)
