/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_mcast.c - memberships in multicast groups: the join, what an event of the RDMA CM makes of it, and what is left
 * after it was left. libibverbs, librdmacm, the service thread and core are replaced here. */
#include "dapl/verbs/hw.h"
#include "dapl/verbs/mcast.h"
#include "test/unit/softeth/steps.h"
#include "test/unit/unit.h"

enum { PORT = 2, GROUP_LID = 0xc001, GROUP_QKEY = 7, ALL_QPS = 0xffffff };

static struct dapl_device dev;
static struct ibv_device hardware;
static struct ibv_context context = { .device = &hardware };
static struct rdma_event_channel channel;
static struct ibv_pd pd;
static struct ibv_qp qp = { .pd = &pd };
static struct ibv_ah ah;
static struct rdma_cm_id id;
static struct sockaddr_in group;
static int owner;

static struct dapl_membership *membership;
static struct dapl_task *task;		/* queued for the service thread */
static void (*run_task)(struct dapl_task *);
static const char *device_name;		/* where the id is bound */
static bool no_memory, no_reason, leaves_when_told;
static int ids, handles, attached;	/* alive */
static const char *joined_as;		/* the last join that was asked for */
static struct ibv_ah_attr asked_ah;
static union ibv_gid asked_gid;
static uint16_t asked_lid;

/* What core was told last. */
static int joins, releases, err_told;
static struct dapl_ud_peer peer_told;

static int failing_step(const char *word)
{
	if (!step_fails(word))
		return 0;
	if (no_reason)
		errno = 0;
	return -1;
}

/* --- in place of librdmacm and libibverbs --------------------------------------------------------------- */

int rdma_create_id(struct rdma_event_channel *on, struct rdma_cm_id **out, void *target, enum rdma_port_space space)
{
	assert_ptr_equal(on, &channel);
	assert_int_equal(space, RDMA_PS_UDP);
	if (failing_step("id"))
		return -1;
	id = (struct rdma_cm_id){ .context = target };
	ids++;
	*out = &id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *of)
{
	assert_ptr_equal(of, &id);
	assert_int_equal(ids, 1);
	assert_int_equal(handles + attached, 0);
	ids--;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *of, struct sockaddr *addr)
{
	assert_ptr_equal(of, &id);
	assert_memory_equal(addr, &dev.attr.address, sizeof(struct sockaddr_in));
	if (failing_step("bind"))
		return -1;
	if (!id.port_num)
		id.port_num = PORT;
	id.verbs = device_name ? &context : NULL;
	return 0;
}

static bool is_group(const struct sockaddr *addr) { return !memcmp(addr, &group, sizeof group); }

int rdma_join_multicast(struct rdma_cm_id *of, struct sockaddr *addr, void *user)
{
	assert_ptr_equal(of, &id);
	assert_true(is_group(addr) && !user);
	assert_non_null(membership);	/* the event may come from now on, and names it */
	joined_as = "receiver";
	return failing_step("join");
}

int rdma_join_multicast_ex(struct rdma_cm_id *of, struct rdma_cm_join_mc_attr_ex *attr, void *user)
{
	assert_ptr_equal(of, &id);
	assert_int_equal(attr->comp_mask, RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS);
	assert_int_equal(attr->join_flags, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	assert_true(is_group(attr->addr) && !user);
	assert_non_null(membership);
	joined_as = "sender";
	return failing_step("join_sender");
}

const char *ibv_get_device_name(struct ibv_device *of)
{
	assert_ptr_equal(of, &hardware);
	return device_name;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *in, struct ibv_ah_attr *attr)
{
	assert_ptr_equal(in, &pd);
	asked_ah = *attr;
	if (failing_step("ah"))
		return NULL;
	handles++;
	return &ah;
}

int ibv_destroy_ah(struct ibv_ah *of)
{
	assert_ptr_equal(of, &ah);
	assert_int_equal(handles, 1);
	handles--;
	return 0;
}

static void is_attachment(struct ibv_qp *of, const union ibv_gid *gid, uint16_t lid)
{
	assert_ptr_equal(of, &qp);
	asked_gid = *gid;
	asked_lid = lid;
}

int ibv_attach_mcast(struct ibv_qp *of, const union ibv_gid *gid, uint16_t lid)
{
	is_attachment(of, gid, lid);
	if (failing_step("attach"))
		return ENOBUFS;
	attached++;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *of, const union ibv_gid *gid, uint16_t lid)
{
	is_attachment(of, gid, lid);
	attached--;
	return 0;
}

REPLACE(dapl_task_queue)

void __wrap_dapl_task_queue(struct dapl_task *of, void (*run)(struct dapl_task *))
{
	assert_null(task);
	task = of;
	run_task = run;
}

UNIT_FAIL_CALLOC(no_memory)

void dapl_up_joined(void *to, struct dapl_membership *of, int err, const struct dapl_ud_peer *peer)
{
	assert_ptr_equal(to, &owner);
	assert_ptr_equal(of, membership);
	joins++;
	err_told = err;
	peer_told = *peer;
	if (leaves_when_told)
		hw_mcast_leave(of);
}

void dapl_up_released(void *to)
{
	assert_ptr_equal(to, &owner);
	assert_int_equal(ids, 0);	/* no event can come any more */
	releases++;
}

/* --- cases -------------------------------------------------------------------------------------------------- */

static void left_are(int ids_left, int handles_left, int attached_left)
{
	assert_int_equal(ids, ids_left);
	assert_int_equal(handles, handles_left);
	assert_int_equal(attached, attached_left);
}

UNIT_FIXTURE(begin)
{
	struct sockaddr_in local = { .sin_family = AF_INET };

	inet_pton(AF_INET, "10.0.0.1", &local.sin_addr);
	group = (struct sockaddr_in){ .sin_family = AF_INET };
	inet_pton(AF_INET, "239.1.2.3", &group.sin_addr);
	dev = (struct dapl_device){ .channel = &channel, .attr = { .port = PORT, .device = "dev0" } };
	memcpy(&dev.attr.address, &local, sizeof local);
	membership = NULL;
	task = NULL;
	run_task = NULL;
	device_name = "dev0";
	no_memory = no_reason = leaves_when_told = false;
	ids = handles = attached = joins = releases = err_told = 0;
	memset(&peer_told, 0, sizeof peer_told);
	memset(&asked_gid, 0, sizeof asked_gid);
	asked_lid = 0;
	forget_steps();
}

static int join(bool send_only)
{
	return hw_mcast_join(&dev, &qp, (struct sockaddr *)&group, send_only, &owner, &membership);
}

static void leave(void)
{
	hw_mcast_leave(membership);
	assert_non_null(task);
	run_task(task);
	task = NULL;
	assert_int_equal(ids + handles + attached, 0);
	assert_int_equal(releases, 1);
}

static void event(enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event e = { .id = &id, .event = type, .status = status,
		.param.ud = { .qp_num = ALL_QPS, .qkey = GROUP_QKEY,
			      .ah_attr = { .dlid = GROUP_LID, .sl = 3, .is_global = 1, .port_num = 9 } } };

	memset(e.param.ud.ah_attr.grh.dgid.raw, 0xff, 16);
	hw_mcast_event(id.context, &e);
}

static void start(bool send_only)
{
	assert_int_equal(join(send_only), 0);
	assert_int_equal(((struct cm_target *)id.context)->kind, CM_MEMBERSHIP);
	assert_int_equal(joins, 0);
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(receiver_joins_as_a_full_member)
{
	start(false);
	assert_string_equal(joined_as, "receiver");
	leave();
}

TEST(sender_joins_without_receiving)
{
	start(true);
	assert_string_equal(joined_as, "sender");
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(attached, 0);
	assert_int_equal(err_told, 0);
	assert_ptr_equal(peer_told.ah, &ah);
	leave();
}

TEST(sender_is_a_full_member_where_there_are_no_others)
{
	failing = "join_sender";
	start(true);
	assert_int_equal(ids, 1);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(err_told, 0);
	assert_int_equal(attached, 0);
	leave();
}

TEST(failed_join_leaves_nothing)
{
	static const char *const words[] = { "id", "bind", "join" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		begin(state);
		failing = words[i];
		assert_int_equal(join(false), ENOBUFS);
		assert_int_equal(ids, 0);
		assert_int_equal(joins + releases, 0);
		assert_null(task);
	}
	begin(state);
	no_memory = true;
	assert_int_equal(join(false), ENOMEM);
	left_are(0, 0, 0);
}

TEST(address_of_another_device_is_refused)
{
	static const char *const names[] = { "dev1", NULL };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		begin(state);
		device_name = names[i];
		assert_int_equal(join(false), ENODEV);
		assert_int_equal(ids, 0);
	}
	begin(state);
	dev.attr.port = PORT + 1;
	assert_int_equal(join(false), ENODEV);
	assert_int_equal(ids, 0);
}

TEST(joined_queue_pair_is_attached)
{
	union ibv_gid gid;

	memset(&gid, 0xff, sizeof gid);
	start(false);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(attached, 1);
	assert_int_equal(joins, 1);
	assert_int_equal(err_told, 0);
	assert_ptr_equal(peer_told.ah, &ah);
	assert_int_equal(peer_told.qpn, ALL_QPS);
	assert_int_equal(peer_told.qkey, GROUP_QKEY);
	assert_int_equal(asked_ah.port_num, PORT);
	assert_int_equal(asked_ah.sl, 3);
	assert_memory_equal(&asked_gid, &gid, sizeof gid);
	assert_int_equal(asked_lid, GROUP_LID);
	leave();
	left_are(0, 0, 0);
}

/* The attachment ends with the call: the queue pair may be destroyed next. */
TEST(leave_detaches_at_once_and_the_id_goes_later)
{
	start(false);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	memset(&asked_gid, 0, sizeof asked_gid);
	hw_mcast_leave(membership);
	left_are(1, 0, 0);
	assert_int_equal(asked_gid.raw[0], 0xff);
	assert_int_equal(asked_lid, GROUP_LID);
	assert_int_equal(releases, 0);
	run_task(task);
	left_are(0, 0, 0);
	assert_int_equal(releases, 1);
}

TEST(queue_pair_that_is_not_attached_is_a_failure)
{
	start(false);
	failing = "attach";
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	assert_int_equal(joins, 1);
	assert_int_equal(err_told, ENOBUFS);
	left_are(1, 1, 0);
	leave();
	left_are(0, 0, 0);
}

TEST(group_without_an_address_handle_is_a_failure)
{
	static const struct { bool silent; int err; } cases[] = { { false, ENOBUFS }, { true, EIO } };

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(state);
		start(false);
		failing = "ah";
		no_reason = cases[i].silent;
		event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
		left_are(1, 0, 0);
		assert_int_equal(err_told, cases[i].err);
		assert_null(peer_told.ah);
		leave();
	}
}

TEST(refused_join_is_a_failure)
{
	static const struct { enum rdma_cm_event_type type; int status, err; } cases[] = {
		{ RDMA_CM_EVENT_MULTICAST_ERROR, -ENETUNREACH, ENETUNREACH },
		{ RDMA_CM_EVENT_MULTICAST_ERROR, EINVAL, EINVAL },
		{ RDMA_CM_EVENT_MULTICAST_ERROR, 0, EIO },
		{ RDMA_CM_EVENT_MULTICAST_JOIN, -ENOMEM, ENOMEM },
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(state);
		start(false);
		event(cases[i].type, cases[i].status);
		left_are(1, 0, 0);
		assert_int_equal(joins, 1);
		assert_int_equal(err_told, cases[i].err);
		leave();
	}
}

TEST(network_may_end_a_membership)
{
	start(false);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	event(RDMA_CM_EVENT_MULTICAST_ERROR, -ENETDOWN);
	assert_int_equal(joins, 2);
	assert_int_equal(err_told, ENETDOWN);
	leave();
	left_are(0, 0, 0);
}

/* As core does after a failure. */
TEST(membership_may_be_left_in_the_upcall)
{
	start(false);
	leaves_when_told = true;
	event(RDMA_CM_EVENT_MULTICAST_ERROR, -ENETUNREACH);
	assert_int_equal(joins, 1);
	assert_int_equal(ids, 1);
	run_task(task);
	assert_int_equal(ids, 0);
	assert_int_equal(releases, 1);
}

TEST(second_join_is_not_told)
{
	start(false);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	left_are(1, 1, 1);
	assert_int_equal(joins, 1);
	leave();
}

TEST(other_events_mean_nothing)
{
	start(false);
	event(RDMA_CM_EVENT_ADDR_CHANGE, 0);
	event(RDMA_CM_EVENT_DEVICE_REMOVAL, -ENODEV);
	left_are(1, 0, 0);
	assert_int_equal(joins, 0);
	leave();
}

/* Events come until the task has destroyed the id. */
TEST(left_membership_reports_nothing)
{
	start(false);
	hw_mcast_leave(membership);
	event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	event(RDMA_CM_EVENT_MULTICAST_ERROR, -ENETDOWN);
	left_are(1, 0, 0);
	assert_int_equal(joins, 0);
	run_task(task);
	left_are(0, 0, 0);
}

UNIT_MAIN(NULL, NULL)
