/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_sends.c - see eth_sends.h. */
#include <sys/timerfd.h>
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/eth/receive.h"
#include "dapl/soft/eth/send.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/softeth/port.h"
#include "test/unit/soft/eth_sends.h"
#include "test/unit/unit.h"

enum { TIMER = 1000 };			/* a descriptor that the process does not have */
#define WALL (1000 * SECOND)		/* what CLOCK_REALTIME is ahead of CLOCK_MONOTONIC */

struct soft_qp qp;
struct soft_eth eth;
static char memory[QUEUE];		/* the frame of a send is at the byte of its number */
uint64_t now;

/* --- clocks and the timer --------------------------------------------------------------------------------------- */

REPLACE(clock_gettime, timerfd_create, timerfd_settime, dapl_watch_start, dapl_watch_stop)
EXTEND(read, close)

static void (*timer_ready)(struct dapl_watch *watch);
uint64_t timer_wait;
unsigned timer_sets;
bool timer_open;
int fails_timer, fails_watch;
size_t fails_size;
static bool watching;

int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	uint64_t ns = id == CLOCK_REALTIME ? now + WALL : now;

	*time = (struct timespec){ .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
	return 0;
}

int __wrap_timerfd_create(int clock, int flags)
{
	assert_int_equal(clock, CLOCK_MONOTONIC);
	assert_true(flags & TFD_NONBLOCK);
	assert_false(timer_open);
	errno = fails_timer;
	timer_open = !fails_timer;
	return fails_timer ? -1 : TIMER;
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
	assert_int_equal(fd, TIMER);
	assert_int_equal(flags, 0);
	assert_null(old);
	assert_true(timer_open && watching);
	timer_wait = (uint64_t)when->it_value.tv_sec * SECOND + (uint64_t)when->it_value.tv_nsec;
	assert_int_not_equal(timer_wait, 0);	/* that would stop it */
	timer_sets++;
	return 0;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
	if (fd != TIMER)
		return __real_read(fd, to, size);
	assert_int_equal(size, sizeof(uint64_t));
	errno = EAGAIN;
	if (timer_wait)
		return -1;
	memset(to, 1, size);
	return (ssize_t)size;
}

int __wrap_close(int fd)
{
	if (fd != TIMER)
		return __real_close(fd);
	timer_open = false;
	return 0;
}

int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	assert_ptr_equal(watch, &eth.timer_watch);
	assert_int_equal(fd, TIMER);
	timer_ready = ready;
	watching = !fails_watch;
	return fails_watch;
}

void __wrap_dapl_watch_stop(struct dapl_watch *watch)
{
	assert_ptr_equal(watch, &eth.timer_watch);
	watching = false;
}

UNIT_FAIL_CALLOC(fails_size && size == fails_size)

void wake_too_early(void)
{
	assert_int_not_equal(timer_wait, 0);
	timer_ready(&eth.timer_watch);
}

void await_timer(void)
{
	assert_int_not_equal(timer_wait, 0);
	now += timer_wait;
	timer_wait = 0;
	timer_ready(&eth.timer_watch);
	assert_int_equal(qp.lock.state, 0);
}

/* --- the port --------------------------------------------------------------------------------------------------- */

int left_count, error_of[QUEUE];
bool check_refuses;
uint64_t stamp_time;
unsigned stamps_taken, batches;
static int left[2 * QUEUE];		/* numbers of frames that the port took */

static int number_of(const struct iovec *iov) { return (int)((char *)iov->iov_base - memory); }

static int take(const struct iovec *iov)
{
	int number = number_of(iov);

	if (!error_of[number])
		left[left_count++] = number;
	return error_of[number];
}

static int port_send(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how,
		     const char **wrong)
{
	int err = take(iov);

	*wrong = err == EINVAL ? "wrong" : NULL;
	return err;
}

static int port_send_batch(struct eth_port *port, const struct eth_out *out, int n, int *sent, const char **wrong)
{
	int err = 0, pieces = 0;

	assert_in_range(n, 2, BATCH);
	for (int i = 0; i < n; i++)
		pieces += out[i].n;
	assert_in_range(pieces, n, 4 * BATCH);
	batches++;
	*wrong = NULL;
	for (*sent = 0; *sent < n && !(err = take(out[*sent].iov)); ++*sent)
		assert_false(out[*sent].how && (out[*sent].how->flags & ETH_SEND_STAMP));
	return err;
}

static int port_stamp(struct eth_port *port, uint64_t *time)
{
	if (!stamp_time)
		return EAGAIN;
	*time = stamp_time;
	stamp_time = 0;
	stamps_taken++;
	return 0;
}

static const char *port_check(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how)
{
	return check_refuses ? "wrong" : NULL;
}

static const struct eth_port_ops port_ops = { .send = port_send, .send_batch = port_send_batch, .stamp = port_stamp,
	.check = port_check };

/* --- memory and completions ------------------------------------------------------------------------------------- */

REPLACE(soft_cq_add)

struct ibv_wc completions[2 * QUEUE];
unsigned completed;
bool unregistered[QUEUE];
static unsigned checked;		/* of the completions, by assert_completed() */

/* In place of those of eth.c and receive.c. */
const struct eth_port_ops *soft_eth_ports = &port_ops;

int soft_eth_pieces(const struct soft_qp *of, const struct ibv_sge *sge, int n, int access, struct iovec *iov)
{
	assert_ptr_equal(of, &qp);
	assert_int_equal(access, 0);
	for (int i = 0; i < n; i++) {
		iov[i] = (struct iovec){ (void *)(uintptr_t)sge[i].addr, sge[i].length };
		if (unregistered[number_of(&iov[i])])
			return -1;
	}
	return n;
}

void __wrap_soft_cq_add(struct soft_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	assert_ptr_equal(cq, qp.qp.send_cq);
	assert_false(solicited);
	assert_int_not_equal(qp.lock.state, 0);
	completions[completed++] = *wc;
}

void assert_completed(uint64_t number, enum ibv_wc_status status)
{
	assert_in_range(checked, 0, completed - 1);
	assert_int_equal(completions[checked].wr_id, number);
	assert_int_equal(completions[checked].status, status);
	assert_int_equal(completions[checked].qp_num, 7);
	checked++;
}

void assert_all_completed(unsigned from, unsigned until)
{
	for (unsigned i = from; i < until; i++)
		assert_completed(i, IBV_WC_SUCCESS);
	assert_int_equal(checked, completed);
}

/* --- a case ----------------------------------------------------------------------------------------------------- */

static struct dapl_device device;
static struct ibv_cq cq;

int sends_set_up(void **state)
{
	memset(&qp, 0, sizeof qp);
	memset(&eth, 0, sizeof eth);
	qp.qp.qp_num = 7;
	qp.qp.send_cq = &cq;
	qp.dev = &device;
	qp.sq_size = QUEUE;
	qp.max_send_sge = SGES;
	qp.state = IBV_QPS_RTS;
	qp.eth = &eth;
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	eth.qp = &qp;
	eth.timer = -1;
	eth.config.max_frame = eth.config.max_tso = 0xffff;
	now = 100 * SECOND;
	timer_wait = timer_sets = batches = completed = checked = stamps_taken = 0;
	fails_timer = fails_watch = left_count = 0;
	fails_size = stamp_time = 0;
	check_refuses = false;
	memset(error_of, 0, sizeof error_of);
	memset(unregistered, 0, sizeof unregistered);
	return 0;
}

int sends_tear_down(void **state)
{
	soft_eth_end_sends(&eth);
	assert_false(timer_open);
	assert_false(watching);
	return 0;
}

void sends_restart(void)
{
	sends_tear_down(NULL);
	sends_set_up(NULL);
}

struct ibv_sge sge_of(int number) { return (struct ibv_sge){ .addr = (uintptr_t)&memory[number], .length = LENGTH }; }

int post_how(int number, const struct dapl_eth_send *how)
{
	struct ibv_sge sge = sge_of(number);
	struct dapl_eth_wr wr = { .wr = { .wr_id = (uint64_t)number, .sg_list = &sge, .num_sge = 1,
		.opcode = how ? IBV_WR_DRIVER1 : IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED } };
	struct ibv_send_wr *bad = NULL;
	int err;

	if (how)
		wr.how = *how;
	err = soft_eth_post_send(&qp.qp, &wr.wr, &bad);
	assert_ptr_equal(bad, err ? &wr.wr : NULL);
	assert_int_equal(qp.lock.state, 0);
	memset(&sge, 0xff, sizeof sge);		/* the list is the program's again */
	return err;
}

void post(int number) { assert_int_equal(post_how(number, NULL), 0); }

void post_flags(int number, uint32_t flags)
{
	const struct dapl_eth_send how = { .flags = flags };

	assert_int_equal(post_how(number, &how), 0);
}

struct dapl_eth_send launched(uint32_t flags, uint64_t launch)
{
	return (struct dapl_eth_send){ .flags = flags | ETH_SEND_LAUNCH, .launch = launch + WALL };
}

void post_at(int number, uint64_t launch)
{
	const struct dapl_eth_send how = launched(0, launch);

	assert_int_equal(post_how(number, &how), 0);
}

void set_rate(uint64_t rate, uint32_t burst)
{
	const struct dapl_eth_pace pace = { .bits_per_s = rate, .burst = burst };

	assert_int_equal(soft_eth_pace(&qp.qp, &pace), 0);
}

void assert_left(int from, int until)
{
	assert_int_equal(left_count, until);
	for (int i = from; i < until; i++)
		assert_int_equal(left[i], i);
}

void fill_ring(int n)
{
	post_at(0, now + MS);
	for (int i = 1; i < n; i++)
		post(i);
	assert_int_equal(left_count, 0);
}
