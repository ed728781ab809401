/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_qp.c - the life of raw QPs: the device's QP that a configuration asks for, the steps of beginning, ending,
 * resetting and destroying in their order, and what is left when one fails. The other files of raw QPs are replaced
 * here. */
#include "test/unit/printed.h"
#include "dapl/verbs/eth_attr.h"
#include "dapl/verbs/eth_cq.h"
#include "dapl/verbs/eth_group.h"
#include "dapl/verbs/eth_qp.h"
#include "dapl/verbs/eth_recv.h"
#include "dapl/verbs/eth_rule.h"
#include "dapl/verbs/eth_send.h"
#include "dapl/verbs/eth_wq.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_objects.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define UNKNOWN (~(uint64_t)0)

static struct ibv_cq send_cq, recv_cq, frame_cq;
static struct ibv_qp *qp;		/* what core has */
static struct ibv_qp_init_attr init;
static struct dapl_eth_config config;
static struct dapl_eth_attr attr;	/* of the device */
static uint32_t wq_wr, wq_sge;		/* of the work queue */
static uint64_t drops;
static uint64_t rate;			/* that was asked for last */
static bool no_memory;

/* --- in place of the other files ---------------------------------------------------------------------------- */

static int result_of(const char *word) { return step(word) ? refusal : 0; }

int hw_eth_query(struct dapl_device *of, struct dapl_eth_attr *out)
{
	assert_ptr_equal(of, &dev);
	*out = attr;
	return result_of("ask");
}

uint64_t hw_eth_drops(const struct dapl_device *of)
{
	assert_ptr_equal(of, &dev);
	return drops;
}

/* A ring has a power of 2 of frames. */
int hw_eth_recv_open(struct hw_eth *q)
{
	q->cq = &frame_cq;
	q->config.ring_frames = q->config.ring_frames ? 8 : 0;
	return result_of("recv_open");
}

void hw_eth_recv_close(struct hw_eth *q) { (void)q; step("recv_close"); }
void hw_eth_recv_empty(struct hw_eth *q) { (void)q; step("empty"); }
int hw_eth_recv_fill(struct hw_eth *q) { (void)q; return result_of("fill"); }
void hw_eth_cq_add(struct hw_eth *q) { (void)q; step("add"); }
void hw_eth_cq_remove(struct hw_eth *q) { (void)q; step("remove"); }
void hw_group_leave_all(struct hw_eth *q) { (void)q; step("leave"); }

void hw_eth_rules_end(struct hw_eth_rules *rules)
{
	assert_ptr_equal(rules, &hw_eth_of(qp)->rules);
	step("rules_end");
}

int hw_eth_wq_open(struct hw_eth *q, uint32_t max_wr, uint32_t max_sge)
{
	wq_wr = max_wr;
	wq_sge = max_sge;
	if (step("wq_open"))
		return refusal;
	q->wq = &objects.wq;
	q->own.qp = &objects.hash;
	return 0;
}

void hw_eth_wq_close(struct hw_eth *q)
{
	q->wq = NULL;
	step("wq_close");
}

int hw_eth_wq_to_state(struct ibv_wq *wq, enum ibv_wq_state state)
{
	assert_ptr_equal(wq, &objects.wq);
	return result_of(state == IBV_WQS_RESET ? "wq:RESET" : state == IBV_WQS_RDY ? "wq:RDY" : "wq:ERR");
}

int hw_eth_pace(struct ibv_qp *of, const struct dapl_eth_pace *pace)
{
	assert_ptr_equal(of, qp);
	rate = pace->bits_per_s;
	return result_of("pace");
}

int hw_eth_post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	assert_ptr_equal(of, qp);
	*bad = wr;
	return result_of("send");
}

int hw_eth_post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(of, qp);
	*bad = wr;
	return result_of("receive");
}

UNIT_FAIL_CALLOC(no_memory)

static int create(void) { return hw_eth_create_qp(&dev, &objects.pd, &init, &qp); }

static int set_up(void **state)
{
	objects_begin(state);
	dev.eth = &eth;
	qp = NULL;
	init = (struct ibv_qp_init_attr){ .qp_context = &init, .send_cq = &send_cq, .recv_cq = &recv_cq,
		.cap = { .max_send_wr = 10, .max_recv_wr = 20, .max_send_sge = 3, .max_recv_sge = 4,
			.max_inline_data = 64 },
		.qp_type = IBV_QPT_RAW_PACKET, .sq_sig_all = 1 };
	config = (struct dapl_eth_config){ .mask = 31 };
	attr = (struct dapl_eth_attr){ .mtu = 1500, .max_frame = 1514 };
	wq_wr = wq_sge = 0;
	drops = 100;
	rate = 77;
	no_memory = false;
	return create();
}

static int tear_down(void **state)
{
	failing = NULL;
	if (qp && hw_eth_destroy_qp(qp))
		return -1;
	return objects_end(state);
}

static void restart(void **state)
{
	assert_int_equal(tear_down(state), 0);
	assert_int_equal(set_up(state), 0);
}

/* Begins the QP, and forgets the steps. */
static struct hw_eth *begun(void)
{
	assert_int_equal(hw_eth_begin(qp, &config), 0);
	*steps = 0;
	return hw_eth_of(qp);
}

/* --- making ----------------------------------------------------------------------------------------------------- */

UNIT_CASE(new_qp_is_none_of_the_device_yet)
{
	assert_int_equal(qp->qp_type, IBV_QPT_RAW_PACKET);
	assert_ptr_equal(qp->qp_context, &init);
	assert_ptr_equal(qp->pd, &objects.pd);
	assert_ptr_equal(qp->send_cq, &send_cq);
	assert_ptr_equal(qp->recv_cq, &recv_cq);
	assert_int_equal(init.cap.max_inline_data, 0);
	assert_int_equal(hw_eth_error_qp(qp), 0);
	assert_int_equal(hw_eth_reset_qp(qp), 0);
	steps_are("");
}

UNIT_CASE(posts_come_to_the_raw_qp_and_no_other)
{
	struct ibv_send_wr send, *bad_send;
	struct ibv_recv_wr receive, *bad_receive;

	assert_int_equal(ibv_post_send(qp, &send, &bad_send), 0);
	assert_int_equal(ibv_post_recv(qp, &receive, &bad_receive), 0);
	steps_are("send receive");
	assert_null(verbs.context.ops.post_send);		/* of the device's other QPs */
	assert_null(verbs.context.ops.post_recv);
}

UNIT_CASE(qp_that_cannot_be_made_is_refused)
{
	struct ibv_qp *none = NULL;
	struct ibv_srq srq;

	dev.eth = NULL;
	assert_int_equal(hw_eth_create_qp(&dev, &objects.pd, &init, &none), EOPNOTSUPP);
	dev.eth = &eth;
	init.srq = &srq;
	assert_int_equal(hw_eth_create_qp(&dev, &objects.pd, &init, &none), EOPNOTSUPP);
	init.srq = NULL;
	no_memory = true;
	assert_int_equal(hw_eth_create_qp(&dev, &objects.pd, &init, &none), ENOMEM);
	no_memory = false;
	assert_null(none);
}

UNIT_CASE(qp_that_never_began_is_destroyed)
{
	assert_int_equal(hw_eth_destroy_qp(qp), 0);
	qp = NULL;
	nothing_is_alive();
	assert_null(strstr(steps, "-qp"));
}

/* --- beginning -------------------------------------------------------------------------------------------------- */

UNIT_CASE(configuration_becomes_a_qp_of_the_device)
{
	const struct hw_eth *q;

	assert_int_equal(hw_eth_begin(qp, &config), 0);
	steps_are("ask recv_open qp qp:INIT qp:RTR qp:RTS add");
	q = hw_eth_of(qp);
	assert_ptr_equal(q->hw, &objects.qp);
	assert_ptr_equal(q->rules.target, &objects.qp);
	assert_int_equal(qp->qp_num, QP_NUMBER);
	assert_int_equal(q->mtu, 1500);
	assert_int_equal(q->max_frame, 1514);
	assert_int_equal(asked_qp.qp_type, IBV_QPT_RAW_PACKET);
	assert_int_equal(asked_qp.comp_mask, IBV_QP_INIT_ATTR_PD);
	assert_ptr_equal(asked_qp.qp_context, &init);
	assert_ptr_equal(asked_qp.pd, &objects.pd);
	assert_ptr_equal(asked_qp.send_cq, &send_cq);
	assert_ptr_equal(asked_qp.recv_cq, &frame_cq);		/* not the EVD's */
	assert_int_equal(asked_qp.sq_sig_all, 1);
	assert_int_equal(asked_qp.cap.max_send_wr, 10);
	assert_int_equal(asked_qp.cap.max_send_sge, 3);
	assert_int_equal(asked_qp.cap.max_recv_wr, 20);
	assert_int_equal(asked_qp.cap.max_recv_sge, 5);		/* one more, for what does not fit */
}

UNIT_CASE(qp_of_a_device_that_segments_has_room_for_headers)
{
	eth.caps.max_tso = 65536;
	assert_int_equal(hw_eth_begin(qp, &config), 0);
	assert_int_equal(asked_qp.comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER);
	assert_int_equal(asked_qp.max_tso_header, HW_ETH_HEADERS);
}

UNIT_CASE(fcs_is_scattered_by_the_queue_that_receives)
{
	config.fcs = true;
	begun();
	assert_int_equal(asked_qp.comp_mask, IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS);
	assert_int_equal(asked_qp.create_flags, IBV_QP_CREATE_SCATTER_FCS);
	restart(state);
	config.fcs = true;
	eth.caps.work_queues = true;
	begun();
	assert_int_equal(asked_qp.comp_mask, IBV_QP_INIT_ATTR_PD);
}

UNIT_CASE(queues_have_at_least_one_entry)
{
	eth.caps.work_queues = true;
	hw_eth_of(qp)->init.cap = (struct ibv_qp_cap){ .max_send_wr = 0 };
	begun();
	assert_int_equal(wq_wr, 1);
	assert_int_equal(wq_sge, 1);
	assert_int_equal(asked_qp.cap.max_send_wr, 1);
	assert_int_equal(asked_qp.cap.max_send_sge, 1);
}

UNIT_CASE(kernels_checksums_are_refused)
{
	config.verify = true;
	assert_int_equal(hw_eth_begin(qp, &config), EOPNOTSUPP);
	steps_are("ask");
}

UNIT_CASE(failed_beginning_is_destroyed)
{
	static const char *const words[] = { "ask", "recv_open", "wq_open", "qp", "qp:INIT", "qp:RTR", "qp:RTS",
		"fill" };

	for (size_t i = 0; i < COUNT(words); i++) {
		restart(state);
		eth.caps.work_queues = true;
		config.ring_frames = 5;
		failing = words[i];
		assert_int_equal(hw_eth_begin(qp, &config), ENOBUFS);
		assert_string_equal(steps + strlen(steps) - strlen(words[i]), words[i]);	/* nothing after it */
		failing = NULL;
		*steps = 0;
		assert_int_equal(hw_eth_destroy_qp(qp), 0);
		qp = NULL;
		nothing_is_alive();
		steps_are(i < 4 ? "remove leave rules_end wq_close recv_close" :
			  "remove leave rules_end -qp wq_close recv_close");
	}
}

static void begin_fails(void *reason)
{
	failing = "qp";
	refusal = *(const int *)reason;
	assert_int_equal(hw_eth_begin(qp, &config), refusal);
}

UNIT_CASE(missing_capability_is_named)
{
	int no_permission = EPERM, no_room = ENOSPC;
	const char *text;

	text = printed_by(begin_fails, &no_permission);
	assert_non_null(strstr(text, "dev0: raw Ethernet endpoint on net0"));
	assert_non_null(strstr(text, "CAP_NET_RAW"));
	restart(state);
	text = printed_by(begin_fails, &no_room);
	assert_non_null(strstr(text, "dev0: raw Ethernet endpoint on net0"));
	assert_non_null(strstr(text, strerror(ENOSPC)));
	assert_null(strstr(text, "CAP_NET_RAW"));
}

/* --- ending and resetting --------------------------------------------------------------------------------------- */

UNIT_CASE(ended_qp_has_no_rules_and_no_groups)
{
	const struct hw_eth *q = begun();

	assert_int_equal(hw_eth_error_qp(qp), 0);
	steps_are("leave rules_end qp:ERR");
	assert_true(q->ended);
}

UNIT_CASE(work_queue_ends_with_its_qp)
{
	eth.caps.work_queues = true;
	begun();
	assert_int_equal(hw_eth_error_qp(qp), 0);
	steps_are("leave rules_end qp:ERR wq:ERR");
	failing = "wq:ERR";
	assert_int_equal(hw_eth_error_qp(qp), ENOBUFS);
	*steps = 0;
	failing = "qp:ERR";
	assert_int_equal(hw_eth_error_qp(qp), ENOBUFS);
	steps_are("leave rules_end qp:ERR");
}

UNIT_CASE(reset_qp_is_ready_again)
{
	const struct hw_eth *q = begun();

	hw_eth_error_qp(qp);
	*steps = 0;
	assert_int_equal(hw_eth_reset_qp(qp), 0);
	steps_are("leave rules_end qp:RESET empty qp:INIT qp:RTR qp:RTS");
	assert_false(q->ended);
}

UNIT_CASE(reset_fills_the_ring_and_ends_the_rate)
{
	eth.caps.work_queues = true;
	config.ring_frames = 5;
	begun()->paced = true;
	assert_int_equal(hw_eth_reset_qp(qp), 0);
	steps_are("leave rules_end qp:RESET wq:RESET empty qp:INIT qp:RTR qp:RTS wq:RDY pace fill");
	assert_int_equal(rate, 0);
}

UNIT_CASE(failed_reset_stops_there)
{
	static const char *const words[] = { "qp:RESET", "wq:RESET", "qp:INIT", "qp:RTR", "qp:RTS", "wq:RDY", "pace",
		"fill" };

	for (size_t i = 0; i < COUNT(words); i++) {
		restart(state);
		eth.caps.work_queues = true;
		config.ring_frames = 5;
		begun()->paced = true;
		failing = words[i];
		assert_int_equal(hw_eth_reset_qp(qp), ENOBUFS);
		assert_string_equal(steps + strlen(steps) - strlen(words[i]), words[i]);
	}
}

/* Polls, groups and flows lead to the QP, so they go first. The QP uses the CQ of its receives. */
UNIT_CASE(destroying_goes_from_users_to_what_they_use)
{
	eth.caps.work_queues = true;
	begun();
	assert_int_equal(hw_eth_destroy_qp(qp), 0);
	qp = NULL;
	steps_are("remove leave rules_end -qp wq_close recv_close");
	nothing_is_alive();
}

UNIT_CASE(qp_that_cannot_be_destroyed_stays)
{
	begun();
	failing = "-qp";
	assert_int_equal(hw_eth_destroy_qp(qp), ENOBUFS);
	steps_are("remove leave rules_end -qp");
	is_alive("qp");
	failing = NULL;
	assert_int_equal(hw_eth_destroy_qp(qp), 0);
	qp = NULL;
}

UNIT_CASE(losses_of_the_port_count_from_the_beginning)
{
	struct dapl_eth_stats stats;

	begun()->stats = (struct dapl_eth_stats){ .received = 5, .sent_bytes = 600 };
	drops = 103;
	hw_eth_stats(qp, &stats);
	assert_int_equal(stats.received, 5);
	assert_int_equal(stats.sent_bytes, 600);
	assert_int_equal(stats.lost_device, 3);
	drops = 2;			/* the driver was reset */
	hw_eth_stats(qp, &stats);
	assert_int_equal(stats.lost_device, 5);
	drops = 6;
	hw_eth_stats(qp, &stats);
	assert_int_equal(stats.lost_device, 9);
}

UNIT_CASE(losses_that_the_device_does_not_count_are_unknown)
{
	struct dapl_eth_stats stats;

	for (int before = 0; before < 2; before++) {
		restart(state);
		drops = before ? UNKNOWN : 100;
		begun();
		drops = before ? 100 : UNKNOWN;
		hw_eth_stats(qp, &stats);
		assert_true(stats.lost_device == UNKNOWN);
	}
}

UNIT_MAIN(NULL, NULL)
