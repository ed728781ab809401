/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_objects.c - what the device's operations on objects make of libibverbs: errors, what is asked again, which
 * states a queue pair goes through, and what is left when a step fails. libibverbs is replaced here. */
#include <rdma/rdma_cma.h>
#include "dapl/verbs/eth_qp.h"
#include "dapl/verbs/flush.h"
#include "dapl/verbs/hw.h"
#include "dapl/verbs/objects.h"
#include "dapl/verbs/siw.h"
#include "test/unit/unit.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static struct ibv_device ibv_device;
static struct ibv_context context;
static struct dapl_device dev;
static struct ibv_pd pd = { .context = &context };
static struct ibv_cq cq;
static struct ibv_qp qp;
static struct ibv_mr mr;
static struct ibv_comp_channel channel;
static struct ibv_mw mw = { .context = &context };
static struct ibv_srq srq;
static struct ibv_ah ah;

static int alive;		/* objects made and not destroyed */
static int result;		/* of the next call that returns one */
static int no_object;		/* the next call that makes an object fails; -1: without an errno */
static int siw_result;
static const void *eth_called;
static int siw_ended, vector_asked;
static int flush_made, flush_result, flush_destroyed;
static unsigned acked, access_asked;
static uint64_t iova_asked;

static void *object(void *made)
{
	if (no_object) {
		errno = no_object > 0 ? no_object : 0;
		return NULL;
	}
	alive++;
	return made;
}

static int destroyed(void)
{
	if (!result)
		alive--;
	return result;
}

/* --- in place of libibverbs ---------------------------------------------------------------------------- */

#define DESTROYS(function, type, one) \
	int function(struct type *of) \
	{ \
		assert_ptr_equal(of, &one); \
		return destroyed(); \
	}
DESTROYS(ibv_dealloc_pd, ibv_pd, pd)
DESTROYS(ibv_dereg_mr, ibv_mr, mr)
DESTROYS(ibv_destroy_comp_channel, ibv_comp_channel, channel)
DESTROYS(ibv_destroy_cq, ibv_cq, cq)
DESTROYS(ibv_destroy_qp, ibv_qp, qp)
static DESTROYS(dealloc_mw, ibv_mw, mw) DESTROYS(ibv_destroy_srq, ibv_srq, srq) DESTROYS(ibv_destroy_ah, ibv_ah, ah)

	struct ibv_pd *ibv_alloc_pd(struct ibv_context *of)
{
	assert_ptr_equal(of, &context);
	return object(&pd);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *of, void *addr, size_t length, uint64_t iova, unsigned access)
{
	assert_ptr_equal(of, &pd);
	assert_non_null(addr);
	assert_int_equal(length, 100);
	iova_asked = iova;
	access_asked = access;
	return object(&mr);
}

const char *ibv_get_device_name(struct ibv_device *of)
{
	assert_ptr_equal(of, &ibv_device);
	return "fake0";
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *of)
{
	assert_ptr_equal(of, &context);
	return object(&channel);
}

int ibv_get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **out, void **cq_context)
{
	assert_ptr_equal(of, &channel);
	if (no_object) {
		errno = no_object;
		return -1;
	}
	*out = &cq;
	*cq_context = NULL;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *of, unsigned n)
{
	assert_ptr_equal(of, &cq);
	acked += n;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *on, int vector)
{
	assert_ptr_equal(of, &context);
	assert_int_equal(cqe, 10);
	assert_ptr_equal(cq_context, &dev);
	assert_true(!on || on == &channel);
	vector_asked = vector;
	return object(&cq);
}

int ibv_resize_cq(struct ibv_cq *of, int cqe)
{
	assert_ptr_equal(of, &cq);
	assert_int_equal(cqe, 20);
	return result;
}

/* The device grants up to max_inline. It shows that only by refusing more. */
static uint32_t max_inline;
static int tries;

struct ibv_qp *ibv_create_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	assert_ptr_equal(of, &pd);
	assert_int_equal(attr->cap.max_send_wr, 10);	/* as it was asked for, at each attempt */
	tries++;
	attr->cap.max_send_wr = 12;
	if (attr->cap.max_inline_data > max_inline) {
		errno = EINVAL;
		return NULL;
	}
	qp.qp_type = attr->qp_type;
	return object(&qp);
}

static struct {
	struct ibv_qp_attr attr;
	int mask;
} steps[8];
static int step_count, bad_step;	/* this step fails; -1: none */

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(of, &qp);
	assert_true(step_count < (int)COUNT(steps));
	steps[step_count].attr = *attr;
	steps[step_count].mask = mask;
	return step_count++ == bad_step ? -EACCES : 0;
}

static struct ibv_mw *alloc_mw(struct ibv_pd *of, enum ibv_mw_type type)
{
	assert_ptr_equal(of, &pd);
	assert_int_equal(type, IBV_MW_TYPE_2);
	return object(&mw);
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *of, struct ibv_srq_init_attr *attr)
{
	assert_ptr_equal(of, &pd);
	assert_non_null(attr);
	return object(&srq);
}

int ibv_modify_srq(struct ibv_srq *of, struct ibv_srq_attr *attr, int mask)
{
	assert_ptr_equal(of, &srq);
	assert_non_null(attr);
	assert_int_equal(mask, IBV_SRQ_LIMIT);
	return result;
}

/* --- in place of siw.c and eth_qp.c --------------------------------------------------------------------- */

int hw_siw_cq_add(struct ibv_cq *of)
{
	assert_ptr_equal(of, &cq);
	return siw_result;
}

int hw_siw_cq_destroy(struct ibv_cq *of) { return ibv_destroy_cq(of); }

int hw_siw_qp_add(struct ibv_qp *of, const struct ibv_qp_init_attr *attr)
{
	assert_ptr_equal(of, &qp);
	assert_int_equal(attr->cap.max_send_wr, 12);	/* granted */
	return siw_result;
}

struct ibv_qp *hw_flush_make_qp(struct ibv_pd *of, struct ibv_qp_init_attr *attr)
{
	flush_made++;
	return ibv_create_qp(of, attr);
}

int hw_flush_qp_add(struct ibv_qp *of)
{
	assert_ptr_equal(of, &qp);
	assert_int_equal(step_count, 1);	/* in INIT */
	return flush_result;
}

int hw_flush_qp_destroy(struct ibv_qp *of, int (*with)(struct ibv_qp *of))
{
	assert_ptr_equal(with, hw_siw_qp_destroy);
	flush_destroyed++;
	return with(of);
}

int hw_siw_qp_destroy(struct ibv_qp *of) { return ibv_destroy_qp(of); }

void hw_siw_qp_end(struct ibv_qp *of)
{
	assert_ptr_equal(of, &qp);
	assert_int_equal(step_count, 1);	/* in ERR */
	siw_ended++;
}

int hw_eth_create_qp(struct dapl_device *d, struct ibv_pd *of, struct ibv_qp_init_attr *attr, struct ibv_qp **out)
{
	eth_called = d;
	return 71;
}

static int eth_call(const void *of, int number)
{
	eth_called = of;
	return number;
}

int hw_eth_reset_qp(struct ibv_qp *of) { return eth_call(of, 72); }
int hw_eth_error_qp(struct ibv_qp *of) { return eth_call(of, 73); }
int hw_eth_destroy_qp(struct ibv_qp *of) { return eth_call(of, 74); }

/* --- cases ------------------------------------------------------------------------------------------------- */

UNIT_FIXTURE(begin)
{
	memset(&dev, 0, sizeof dev);
	memset(&qp, 0, sizeof qp);
	memset(steps, 0, sizeof steps);
	context.device = &ibv_device;
	context.num_comp_vectors = 3;
	context.ops.alloc_mw = alloc_mw;
	context.ops.dealloc_mw = dealloc_mw;
	dev.verbs = &context;
	flush_made = flush_result = flush_destroyed = 0;
	dev.attr.port = 2;
	dev.pkey_index = 5;
	dev.qp_access = IBV_ACCESS_REMOTE_READ;
	alive = result = no_object = siw_result = siw_ended = step_count = tries = 0;
	eth_called = NULL;
	bad_step = -1;
	max_inline = 64;
	acked = 0;
}

#define TEST(name) UNIT_TEST_WITH(name, begin, NULL)

TEST(object_that_is_not_made_has_its_errno)
{
	struct ibv_pd *made;

	assert_int_equal(hw_alloc_pd(&dev, &made), 0);
	assert_ptr_equal(made, &pd);
	no_object = ENOMEM;
	assert_int_equal(hw_alloc_pd(&dev, &made), ENOMEM);
	no_object = -1;
	assert_int_equal(hw_alloc_pd(&dev, &made), EIO);
}

TEST(windows_and_shared_queues_are_made)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 1 } };
	struct ibv_srq *queue;
	struct ibv_mw *window;

	assert_int_equal(hw_alloc_mw(&pd, IBV_MW_TYPE_2, &window), 0);
	assert_ptr_equal(window, &mw);
	assert_int_equal(hw_create_srq(&pd, &init, &queue), 0);
	assert_ptr_equal(queue, &srq);
	no_object = ENOSPC;
	assert_int_equal(hw_alloc_mw(&pd, IBV_MW_TYPE_2, &window), ENOSPC);
	assert_int_equal(hw_create_srq(&pd, &init, &queue), ENOSPC);
}

TEST(results_of_destruction_become_errno_values)
{
	result = -EBUSY;
	assert_int_equal(hw_dealloc_pd(&pd), EBUSY);
	assert_int_equal(hw_dereg_mr(&mr), EBUSY);
	assert_int_equal(hw_destroy_channel(&channel), EBUSY);
	assert_int_equal(hw_destroy_cq(&cq), EBUSY);
	assert_int_equal(hw_destroy_qp(&qp), EBUSY);
	assert_int_equal(hw_dealloc_mw(&mw), EBUSY);
	assert_int_equal(hw_modify_srq(&srq, &(struct ibv_srq_attr){ .srq_limit = 1 }, IBV_SRQ_LIMIT), EBUSY);
	assert_int_equal(hw_destroy_srq(&srq), EBUSY);
	assert_int_equal(hw_destroy_ah(&ah), EBUSY);
}

TEST(memory_has_its_own_addresses)
{
	struct ibv_mr *made;
	char bytes[100];

	assert_int_equal(hw_reg_mr(&pd, bytes + 1, 100, IBV_ACCESS_LOCAL_WRITE, NULL, &made), 0);
	assert_ptr_equal(made, &mr);
	assert_int_equal(iova_asked, (uintptr_t)bytes + 1);
	assert_int_equal(access_asked, IBV_ACCESS_LOCAL_WRITE);
	no_object = EFAULT;
	assert_int_equal(hw_reg_mr(&pd, bytes, 100, 0, NULL, &made), EFAULT);
}

TEST(zero_based_memory_begins_with_a_page)
{
	static char pages[1 << 17] __attribute__((aligned(1 << 16)));
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED;
	struct ibv_mr *made;

	iova_asked = 1;
	assert_int_equal(hw_reg_mr(&pd, pages + sysconf(_SC_PAGESIZE), 100, access, NULL, &made), 0);
	assert_int_equal(iova_asked, 0);
	assert_int_equal(access_asked, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(hw_reg_mr(&pd, pages + 64, 100, access, NULL, &made), EOPNOTSUPP);
	assert_int_equal(alive, 1);
	no_object = EFAULT;
	assert_int_equal(hw_reg_mr(&pd, pages, 100, access, NULL, &made), EFAULT);
}

TEST(channel_neither_blocks_nor_outlives_exec)
{
	struct ibv_comp_channel *made = NULL;
	int pipe_ends[2];

	assert_int_equal(pipe(pipe_ends), 0);
	channel.fd = pipe_ends[0];
	assert_int_equal(hw_create_channel(&dev, &made), 0);
	assert_ptr_equal(made, &channel);
	assert_true(fcntl(channel.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(channel.fd, F_GETFD) & FD_CLOEXEC);
	close(pipe_ends[0]);
	close(pipe_ends[1]);
}

TEST(channel_that_cannot_be_set_up_is_destroyed)
{
	struct ibv_comp_channel *made = NULL;

	channel.fd = -1;
	assert_int_equal(hw_create_channel(&dev, &made), EBADF);
	assert_int_equal(alive, 0);
	assert_null(made);
	no_object = EMFILE;
	assert_int_equal(hw_create_channel(&dev, &made), EMFILE);
}

TEST(each_cq_event_is_acknowledged)
{
	struct ibv_cq *from = NULL;

	no_object = EAGAIN;
	assert_int_equal(hw_get_cq_event(&channel, &from), EAGAIN);
	assert_int_equal(acked, 0);
	no_object = 0;
	assert_int_equal(hw_get_cq_event(&channel, &from), 0);
	assert_ptr_equal(from, &cq);
	assert_int_equal(acked, 1);
}

static int vector_of(struct ibv_comp_channel *on)
{
	struct ibv_cq *made;

	assert_int_equal(hw_create_cq(&dev, 10, &dev, on, &made), 0);
	assert_ptr_equal(made, &cq);
	return vector_asked;
}

TEST(cqs_with_a_channel_spread_over_interrupts)
{
	for (int i = 0; i < 7; i++)
		assert_int_equal(vector_of(&channel), i % 3);
	assert_int_equal(vector_of(NULL), 0);
	assert_int_equal(vector_of(NULL), 0);
	context.num_comp_vectors = 0;
	assert_int_equal(vector_of(&channel), 0);
}

TEST(cq_without_a_siw_queue_is_destroyed)
{
	struct ibv_cq *made;

	siw_result = ENOMEM;
	assert_int_equal(hw_create_cq(&dev, 10, &dev, NULL, &made), ENOMEM);
	assert_int_equal(alive, 0);
	no_object = ENOSPC;
	assert_int_equal(hw_create_cq(&dev, 10, &dev, NULL, &made), ENOSPC);
}

TEST(driver_without_resizing_is_told_from_a_failure)
{
	static const struct { int from, to; } cases[] = { { 0, 0 }, { ENOSYS, EOPNOTSUPP }, { -ENOSYS, EOPNOTSUPP },
		{ ENOTSUP, EOPNOTSUPP }, { EINVAL, EINVAL } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		result = cases[i].from;
		assert_int_equal(hw_resize_cq(&cq, 20), cases[i].to);
	}
}

/* --- queue pairs ---------------------------------------------------------------------------------------------- */

static struct ibv_qp_init_attr wanted(enum ibv_qp_type type, uint32_t inline_data)
{
	return (struct ibv_qp_init_attr){ .qp_type = type,
		.cap = { .max_send_wr = 10, .max_inline_data = inline_data } };
}

static int create(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = wanted(type, 0);
	struct ibv_qp *made = NULL;
	int err = hw_create_qp(&dev, &pd, &attr, &made);

	assert_ptr_equal(made, err ? NULL : &qp);
	return err;
}

TEST(inline_size_is_halved_until_the_device_grants_it)
{
	struct ibv_qp_init_attr attr = wanted(IBV_QPT_RC, 500);
	struct ibv_qp *made;

	assert_int_equal(hw_create_qp(&dev, &pd, &attr, &made), 0);
	assert_ptr_equal(made, &qp);
	assert_int_equal(attr.cap.max_inline_data, 62);		/* 500, 250, 125, 62 */
	assert_int_equal(attr.cap.max_send_wr, 12);
	assert_int_equal(tries, 4);
	assert_int_equal(alive, 1);
}

TEST(refusal_for_another_reason_ends_the_attempts)
{
	static const struct { int err, tries; } cases[] = { { EMFILE, 1 }, { EPERM, 1 }, { ENOMEM, 4 } };

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct ibv_qp_init_attr attr = wanted(IBV_QPT_RC, 4);
		struct ibv_qp *made;

		begin(state);
		no_object = cases[i].err;
		assert_int_equal(hw_create_qp(&dev, &pd, &attr, &made), cases[i].err);
		assert_int_equal(tries, cases[i].tries);
		assert_int_equal(attr.cap.max_send_wr, 10);
		assert_int_equal(attr.cap.max_inline_data, 4);
	}
}

TEST(connected_queue_pair_goes_to_init)
{
	assert_int_equal(create(IBV_QPT_RC), 0);
	assert_int_equal(step_count, 1);
	assert_int_equal(steps[0].attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(steps[0].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	assert_int_equal(steps[0].attr.port_num, 2);
	assert_int_equal(steps[0].attr.pkey_index, 5);
	assert_int_equal(steps[0].attr.qp_access_flags, IBV_ACCESS_REMOTE_READ);
}

TEST(iwarp_has_neither_pkey_nor_port)
{
	dev.attr.iwarp = true;
	assert_int_equal(create(IBV_QPT_RC), 0);
	assert_int_equal(step_count, 1);
	assert_int_equal(steps[0].mask, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS);
}

/* From step `first` on. */
static void went_to_rts(int first)
{
	assert_int_equal(step_count, first + 3);
	assert_int_equal(steps[first].attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(steps[first].mask, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
	assert_int_equal(steps[first].attr.qkey, RDMA_UDP_QKEY);
	assert_int_equal(steps[first + 1].attr.qp_state, IBV_QPS_RTR);
	assert_int_equal(steps[first + 1].mask, IBV_QP_STATE);
	assert_int_equal(steps[first + 2].attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(steps[first + 2].mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

TEST(datagram_queue_pair_goes_to_rts)
{
	assert_int_equal(create(IBV_QPT_UD), 0);
	went_to_rts(0);
}

TEST(queue_pair_whose_set_up_fails_is_destroyed)
{
	for (int step = 0; step < 3; step++) {
		begin(state);
		bad_step = step;
		assert_int_equal(create(IBV_QPT_UD), EACCES);
		assert_int_equal(step_count, step + 1);
		assert_int_equal(alive, 0);
	}
	begin(state);
	siw_result = ENOMEM;
	assert_int_equal(create(IBV_QPT_RC), ENOMEM);
	assert_int_equal(alive, 0);
}

TEST(only_datagram_queue_pairs_are_reset)
{
	qp.qp_type = IBV_QPT_RC;
	assert_int_equal(hw_reset_qp(&dev, &qp), EOPNOTSUPP);
	assert_int_equal(step_count, 0);
	qp.qp_type = IBV_QPT_UD;
	assert_int_equal(hw_reset_qp(&dev, &qp), 0);
	assert_int_equal(steps[0].attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(steps[0].mask, IBV_QP_STATE);
	went_to_rts(1);
	step_count = bad_step = 0;
	assert_int_equal(hw_reset_qp(&dev, &qp), EACCES);
	assert_int_equal(step_count, 1);
}

TEST(error_ends_the_siw_queue_even_if_the_device_refuses)
{
	qp.qp_type = IBV_QPT_RC;
	assert_int_equal(hw_error_qp(&qp), 0);
	assert_int_equal(steps[0].attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(steps[0].mask, IBV_QP_STATE);
	assert_int_equal(siw_ended, 1);
	step_count = bad_step = 0;
	assert_int_equal(hw_error_qp(&qp), EACCES);
	assert_int_equal(siw_ended, 2);
}

TEST(raw_queue_pairs_have_functions_of_their_own)
{
	struct ibv_qp_init_attr attr = wanted(IBV_QPT_RAW_PACKET, 0);
	struct ibv_qp *made;

	assert_int_equal(hw_create_qp(&dev, &pd, &attr, &made), 71);
	assert_ptr_equal(eth_called, &dev);
	qp.qp_type = IBV_QPT_RAW_PACKET;
	assert_int_equal(hw_reset_qp(&dev, &qp), 72);
	assert_ptr_equal(eth_called, &qp);
	assert_int_equal(hw_error_qp(&qp), 73);
	assert_int_equal(hw_destroy_qp(&qp), 74);
	assert_int_equal(step_count + tries + siw_ended, 0);
}

TEST(delayed_queue_pair_is_made_and_begun_like_others)
{
	struct ibv_qp_init_attr attr = wanted(IBV_QPT_RC, 500);
	struct ibv_qp *made = NULL;

	assert_int_equal(hw_create_delayed_qp(&dev, &pd, &attr, &made), 0);
	assert_ptr_equal(made, &qp);
	assert_int_equal(attr.cap.max_inline_data, 62);
	assert_int_equal(flush_made, 4);
	assert_int_equal(steps[0].attr.qp_state, IBV_QPS_INIT);
	assert_int_equal(hw_destroy_qp(&qp), 0);
	assert_int_equal(flush_destroyed, 1);
	assert_int_equal(alive, 0);
}

TEST(delayed_queue_pair_that_cannot_be_begun_is_destroyed)
{
	struct ibv_qp_init_attr attr = wanted(IBV_QPT_RC, 0);
	struct ibv_qp *made;

	flush_result = ENOMEM;
	assert_int_equal(hw_create_delayed_qp(&dev, &pd, &attr, &made), ENOMEM);
	assert_int_equal(alive, 0);
	begin(state);
	attr = wanted(IBV_QPT_RC, 0);
	no_object = EPERM;
	assert_int_equal(hw_create_delayed_qp(&dev, &pd, &attr, &made), EPERM);
	assert_int_equal(step_count, 0);
}

UNIT_MAIN(NULL, NULL)
