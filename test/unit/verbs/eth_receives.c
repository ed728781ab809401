/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_receives.c - see eth_receives.h. */
#include "dapl/verbs/eth_clock.h"
#include "dapl/verbs/eth_recv.h"
#include "dapl/verbs/eth_rule.h"
#include "dapl/verbs/hw.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/eth_receives.h"

static struct dapl_device dev;
struct hw_eth_device eth = { .dev = &dev };
static struct verbs_context verbs;
static struct ibv_pd pd;
static struct ibv_comp_channel channel;
static struct ibv_cq evd_cq = { .channel = &channel, .cq_context = &evd_cq };
struct ibv_cq plain_cq;
struct ibv_qp device_qp = { .context = &verbs.context };
struct ibv_wq wq;
struct hw_eth q;
struct dapl_eth_frame frames[RECEIVES];

static int alive;				/* memory regions and CQs */
struct ibv_mr mrs[2];
static int regions;
int bad_region, tries;
uint64_t tried[8], known_flags;
uint32_t cqe_asked;
bool clock_works;

struct posted_receive posted[64];
unsigned posts;
int refuse_at, notifies, ready, no_notify;
static struct completion completions[64];
static int now;				/* an extended CQ is being polled */
uint32_t bytes_hit, tag_hit;

/* --- in place of libibverbs and the other files --------------------------------------------------------- */

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *of, void *addr, size_t length, int access)
{
	assert_ptr_equal(of, &pd);
	assert_int_equal(access, IBV_ACCESS_LOCAL_WRITE);
	if (regions == bad_region) {
		errno = ENOMEM;
		return NULL;
	}
	alive++;
	mrs[regions] = (struct ibv_mr){ .addr = addr, .length = length, .lkey = 100 + (uint32_t)regions };
	return &mrs[regions++];
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	assert_true(mr == &mrs[0] || mr == &mrs[1]);
	alive--;
	return 0;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr);

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *of, struct ibv_cq_init_attr_ex *attr)
{
	assert_ptr_equal(of, &verbs.context);
	assert_ptr_equal(attr->channel, &channel);
	assert_ptr_equal(attr->cq_context, &evd_cq);
	assert_true(attr->wc_flags & IBV_WC_EX_WITH_BYTE_LEN);
	cqe_asked = attr->cqe;
	tried[tries++] = attr->wc_flags & ~(uint64_t)IBV_WC_EX_WITH_BYTE_LEN;
	if (known_flags == ~(uint64_t)0 || tried[tries - 1] & ~known_flags) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	alive++;
	return &extended_cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *of, int cqe, void *cq_context, struct ibv_comp_channel *on, int vector)
{
	assert_ptr_equal(of, &verbs.context);
	assert_ptr_equal(cq_context, &evd_cq);
	assert_ptr_equal(on, &channel);
	assert_int_equal(vector, 0);
	cqe_asked = (uint32_t)cqe;
	alive++;
	return &plain_cq;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	assert_true(cq == &plain_cq || cq == ibv_cq_ex_to_cq(&extended_cq));
	alive--;
	return 0;
}

static int take_receive(const struct ibv_recv_wr *wr, bool by_wq)
{
	if ((int)posts == refuse_at)
		return ENOMEM;
	assert_null(wr->next);
	posted[posts].wr_id = wr->wr_id;
	posted[posts].num_sge = wr->num_sge;
	posted[posts].by_wq = by_wq;
	memcpy(posted[posts++].sge, wr->sg_list, (size_t)wr->num_sge * sizeof *wr->sg_list);
	return 0;
}

static int post_qp(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(of, &device_qp);
	*bad = wr;
	return take_receive(wr, false);
}

static int post_wq(struct ibv_wq *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	assert_ptr_equal(of, &wq);
	*bad = wr;
	return take_receive(wr, true);
}

static void take_completion(void)
{
	ready--;
	memmove(completions, completions + 1, (size_t)ready * sizeof *completions);
}

static void load(struct ibv_cq_ex *cq)
{
	cq->wr_id = completions[0].wr_id;
	cq->status = completions[0].status;
}

static int start_poll(struct ibv_cq_ex *cq, struct ibv_poll_cq_attr *attr)
{
	assert_int_equal(attr->comp_mask, 0);
	assert_int_equal(now, 0);
	if (!ready)
		return ENOENT;
	now = 1;
	load(cq);
	return 0;
}

static int next_poll(struct ibv_cq_ex *cq)
{
	if (ready == 1)
		return ENOENT;
	take_completion();
	load(cq);
	return 0;
}

static void end_poll(struct ibv_cq_ex *cq)
{
	assert_int_equal(now, 1);
	now = 0;
	take_completion();
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq) { (void)cq; return 0x55; }
static uint32_t read_byte_len(struct ibv_cq_ex *cq) { (void)cq; return completions[0].length; }
static uint64_t read_stamp(struct ibv_cq_ex *cq) { (void)cq; return completions[0].stamp; }
static uint32_t read_tag(struct ibv_cq_ex *cq) { (void)cq; return TAG; }

static unsigned read_wc_flags(struct ibv_cq_ex *cq)
{
	return completions[0].checksums ? IBV_WC_IP_CSUM_OK : IBV_WC_GRH;
}

struct ibv_cq_ex extended_cq = { .start_poll = start_poll, .next_poll = next_poll, .end_poll = end_poll,
	.read_vendor_err = read_vendor_err, .read_byte_len = read_byte_len, .read_wc_flags = read_wc_flags,
	.read_completion_ts = read_stamp, .read_flow_tag = read_tag };

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
	int taken = 0;

	assert_ptr_equal(cq, &plain_cq);
	for (; taken < n && ready; taken++) {
		wc[taken] = (struct ibv_wc){ .wr_id = completions[0].wr_id, .status = completions[0].status,
			.vendor_err = 0x55, .byte_len = completions[0].length,
			.wc_flags = completions[0].checksums ? IBV_WC_IP_CSUM_OK : IBV_WC_GRH };
		take_completion();
	}
	return taken;
}

static int req_notify_cq(struct ibv_cq *cq, int solicited)
{
	assert_ptr_equal(cq, q.cq);
	assert_int_equal(solicited, 0);
	notifies++;
	return no_notify;
}

bool hw_eth_clock_works(const struct hw_eth_device *of) { (void)of; return clock_works; }
uint64_t hw_eth_clock_convert(struct hw_eth_device *of, uint64_t cycles) { (void)of; return 1000 + cycles; }

uint32_t hw_eth_rule_hit(struct hw_eth *of, uint32_t tag, uint32_t length)
{
	assert_ptr_equal(of, &q);
	assert_int_not_equal(q.lock.state, MUTEX_FREE);
	tag_hit = tag;
	bytes_hit = length;
	return RULE_TAG;
}

/* --- fixture ---------------------------------------------------------------------------------------------- */

int receives_begin(void **state)
{
	verbs.sz = sizeof verbs;
	verbs.create_cq_ex = create_cq_ex;
	verbs.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	verbs.context.ops.post_recv = post_qp;
	wq.post_recv = post_wq;
	dev.verbs = &verbs.context;
	eth.poll_cq = poll_cq;
	eth.req_notify_cq = req_notify_cq;
	eth.caps.tags = clock_works = true;
	known_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_FLOW_TAG;
	memset(&q, 0, sizeof q);
	memset(frames, 0, sizeof frames);
	q.eth = &eth;
	q.hw = &device_qp;
	q.qp.pd = &pd;
	q.qp.qp_num = 33;
	q.init = (struct ibv_qp_init_attr){ .recv_cq = &evd_cq, .cap = { .max_recv_wr = RECEIVES, .max_recv_sge = 2 } };
	q.config.mask = RECEIVES - 1;
	q.config.frames = frames;
	q.max_frame = MAX_FRAME;
	dapl_mutex_init(&q.lock, RANK_VERBS_ETH_QP);
	alive = regions = tries = ready = now = notifies = no_notify = 0;
	bad_region = refuse_at = -1;
	posts = 0;
	return 0;
}

int receives_end(void **state)
{
	hw_eth_recv_close(&q);
	hw_eth_recv_close(&q);		/* nothing is left to close */
	for (int i = 0; i < regions; i++)
		assert_int_not_equal(msync(mrs[i].addr, 1, MS_ASYNC), 0);	/* not mapped any more */
	return alive;
}

void open_posted(void) { assert_int_equal(hw_eth_recv_open(&q), 0); }

void open_ring(uint32_t slots, uint32_t snap)
{
	q.config.ring_frames = slots;
	q.config.snap = snap;
	assert_int_equal(hw_eth_recv_open(&q), 0);
	assert_int_equal(hw_eth_recv_fill(&q), 0);
}

int post_two(uint64_t id, uint32_t first, uint32_t second)
{
	struct ibv_sge sge[2] = { { 0x1000, first, 1 }, { 0x2000, second, 2 } };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = 2 }, *bad;

	return hw_eth_post_recv(&q.qp, &wr, &bad);
}

void complete(struct completion c) { completions[ready++] = c; }
void frame_comes(uint64_t id, uint32_t length) { complete((struct completion){ .wr_id = id, .length = length }); }
