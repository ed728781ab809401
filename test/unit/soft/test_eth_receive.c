/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_eth_receive.c - how raw Ethernet QPs of the software device receive (eth/receive.c): posted receives, those of
 * an SRQ, and the ring; when the socket is watched. */
#include <sys/epoll.h>
#include "dapl/soft/obj/rnic.h"
#include "test/unit/soft/eth_port.h"
#include "test/unit/unit.h"

enum { BATCH = 64 };

/* --- posted receives -------------------------------------------------------------------------------------------- */

static int post_receive(void)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = receive_of(&sge), *bad = NULL;
	int err = raw->context->ops.post_recv(raw, &wr, &bad);

	if (err)
		assert_ptr_equal(bad, &wr);
	assert_int_equal(((struct soft_qp *)raw)->lock.state, 0);
	return err;
}

static void assert_received(unsigned from, unsigned until)
{
	assert_int_equal(around.completions, until);
	for (unsigned i = from; i < until; i++) {
		assert_int_equal(around.wc[i].opcode, IBV_WC_RECV);
		assert_int_equal(around.wc[i].src_qp, i);
	}
}

#define CASE(name) UNIT_TEST_WITH(name, eth_port_set_up, eth_port_tear_down)

CASE(socket_is_watched_while_receives_are_posted)
{
	assert_int_equal(post_receive(), 0);
	assert_int_equal(post_receive(), 0);
	assert_int_equal(around.watches, 1);
	progress_owner();
	assert_true(around.watching);
	around.frames = 5;
	progress_owner();
	assert_received(0, 2);
	assert_false(around.watching);
	assert_int_equal(around.frames, 3);	/* they wait in the kernel */
	assert_int_equal(post_receive(), 0);
	assert_int_equal(around.watches, 2);
	progress_owner();
	assert_received(2, 3);
}

CASE(frame_is_described_beside_its_completion)
{
	for (int i = 0; i < FRAMES + 1; i++) {
		around.frames = i + 1;
		assert_int_equal(post_receive(), 0);
		progress_owner();
		assert_int_equal(around.status, IBV_WC_SUCCESS);
		assert_int_equal(around.wc[i].byte_len, LENGTH);
		assert_int_equal(around.config.frames[i % FRAMES].tag, i);
	}
}

/* The frame is for the next receive. */
CASE(receive_without_registered_memory_fails)
{
	around.frames = 1;
	around.unregistered = true;
	assert_int_equal(post_receive(), 0);
	progress_owner();
	assert_int_equal(around.status, IBV_WC_LOC_PROT_ERR);
	assert_received(0, 1);
	assert_int_equal(around.frames, 1);
	around.unregistered = false;
	assert_int_equal(post_receive(), 0);
	progress_owner();
	assert_int_equal(around.status, IBV_WC_SUCCESS);
	assert_received(1, 2);
}

CASE(other_inputs_have_their_turn)
{
	for (int i = 0; i < BATCH + 1; i++)
		assert_int_equal(post_receive(), 0);
	around.frames = BATCH + 1;
	progress_owner();
	assert_received(0, BATCH);
	assert_true(around.watching);
	progress_owner();
	assert_received(0, BATCH + 1);
}

CASE(receive_that_is_not_posted_is_not_waited_for)
{
	struct ibv_recv_wr wr = { .num_sge = SOFT_MAX_SGE + 1 }, *bad = NULL;

	assert_int_equal(raw->context->ops.post_recv(raw, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(around.watches, 0);
	assert_int_equal(fail_qp(raw), 0);
	assert_int_equal(post_receive(), 0);	/* it is flushed */
	assert_int_equal(around.watches, 0);
}

CASE(watch_that_fails_is_tried_again)
{
	around.watch_error = ENOMEM;
	assert_int_equal(post_receive(), 0);
	around.watch_error = 0;
	assert_int_equal(post_receive(), 0);
	assert_true(around.watching);
	assert_int_equal(around.watches, 2);
}

CASE(disconnected_qp_receives_nothing)
{
	assert_int_equal(post_receive(), 0);
	assert_int_equal(fail_qp(raw), 0);
	around.frames = 1;
	progress_owner();
	assert_int_equal(around.completions, 0);
	assert_false(around.watching);
}

CASE(ring_and_shared_receives_cannot_be_posted)
{
	raw_renew(false, 4);
	assert_int_equal(post_receive(), EOPNOTSUPP);
	raw_renew(true, 0);
	assert_int_equal(post_receive(), EOPNOTSUPP);
	assert_int_equal(((struct soft_qp *)raw)->rq.tail, 0);
}

/* --- receives of an SRQ ----------------------------------------------------------------------------------------- */

static void call_srq_posted(void)
{
	struct soft_qp *qp = (struct soft_qp *)raw;

	soft_progress_lock(&eth_device);
	dapl_mutex_lock(&qp->lock);
	qp->srq_posted(qp);
	dapl_mutex_unlock(&qp->lock);
	soft_progress_unlock(&eth_device);
}

/* A QP that waits for frames holds none. */
CASE(shared_receive_is_taken_for_a_frame_that_is_there)
{
	raw_renew(true, 0);
	assert_true(around.watching);
	post_shared(2);
	progress_owner();
	assert_int_equal(around.completions, 0);
	assert_false(((struct soft_qp *)raw)->taken_valid);
	around.frames = 3;
	progress_owner();
	assert_received(0, 2);
	assert_false(around.watching);
	post_shared(1);
	assert_true(around.watching);
	progress_owner();
	assert_received(2, 3);
	post_shared(BATCH + 1);
	around.frames = BATCH + 1;
	progress_owner();
	assert_int_equal(around.completions, 3 + BATCH);
}

CASE(shared_receives_are_waited_for_until_an_error)
{
	struct ibv_qp *qp;

	raw_renew(true, 0);
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), 0);
	assert_true(around.watching);
	assert_int_equal(fail_qp(raw), 0);
	progress_owner();
	assert_false(around.watching);
	call_srq_posted();
	assert_false(around.watching);
	qp = raw_new(true);
	around.watch_error = ENOMEM;
	assert_int_equal(begin(qp, 0), ENOMEM);
	assert_int_equal(soft_eth_destroy_qp(qp), 0);
}

/* --- the ring --------------------------------------------------------------------------------------------------- */

CASE(arm_completes_once)
{
	raw_renew(false, 4);
	assert_int_equal(soft_eth_ops.arm(raw, 99), 0);
	assert_int_equal(soft_eth_ops.arm(raw, 98), 0);
	assert_int_equal(around.watches, 1);
	progress_owner();
	assert_int_equal(around.completions, 1);
	assert_int_equal(around.wc[0].wr_id, 99);
	assert_int_equal(around.wc[0].opcode, IBV_WC_RECV);
	assert_int_equal(around.wc[0].qp_num, 7);
	assert_false(around.watching);
	progress_owner();
	assert_int_equal(around.completions, 1);
	assert_int_equal(soft_eth_ops.arm(raw, 97), 0);
	assert_int_equal(fail_qp(raw), 0);
	progress_owner();
	assert_int_equal(around.completions, 1);
	assert_false(around.watching);
}

CASE(arm_that_fails_can_be_repeated)
{
	raw_renew(false, 4);
	around.watch_error = ENOMEM;
	assert_int_equal(soft_eth_ops.arm(raw, 99), ENOMEM);
	around.watch_error = 0;
	assert_int_equal(soft_eth_ops.arm(raw, 98), 0);
	progress_owner();
	assert_int_equal(around.wc[0].wr_id, 98);
}

CASE(reset_ends_an_arm)
{
	raw_renew(false, 4);
	assert_int_equal(soft_eth_ops.arm(raw, 9), 0);
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), 0);
	assert_false(around.watching);
	assert_false(eth_of(raw)->armed);
	assert_int_equal(soft_eth_ops.arm(raw, 9), 0);
	assert_true(around.watching);
}

/* The socket is also ready for a time of departure, which is taken first. */
CASE(time_of_departure_is_no_frame)
{
	raw_renew(false, 4);
	eth_of(raw)->stamps = true;
	assert_int_equal(soft_eth_ops.arm(raw, 99), 0);
	progress_owner_with(EPOLLERR);
	assert_int_equal(around.stamps, 1);
	assert_int_equal(around.completions, 0);
	assert_true(around.watching);
	progress_owner_with(EPOLLERR | EPOLLIN);
	assert_int_equal(around.completions, 1);
}

/* Returns a socket with an error: it is connected to a port of which it has just been told that nothing listens. */
static int socket_with_error(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof at;

	assert_int_equal(bind(other, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(other, (struct sockaddr *)&at, &size), 0);
	close(other);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(send(fd, "x", 1, 0), 1);
	return fd;
}

/* Until the error is taken, the socket stays ready. */
CASE(error_of_the_socket_is_reported_once)
{
	int before = eth_socket[0], err = 1;
	socklen_t size = sizeof err;

	raw_renew(false, 4);
	eth_socket[0] = socket_with_error();
	assert_int_equal(soft_eth_ops.arm(raw, 99), 0);
	progress_owner_with(EPOLLERR);
	assert_int_equal(around.completions, 1);
	assert_false(around.watching);
	assert_int_equal(getsockopt(eth_socket[0], SOL_SOCKET, SO_ERROR, &err, &size), 0);
	assert_int_equal(err, 0);
	assert_int_equal(soft_eth_ops.arm(raw, 98), 0);
	progress_owner_with(EPOLLERR);
	assert_int_equal(around.completions, 1);
	assert_true(around.watching);
	assert_int_equal(soft_eth_reset_qp(&eth_device, raw), 0);
	close(eth_socket[0]);
	eth_socket[0] = before;
}

/* The descriptor of AF_XDP sockets is no socket, and also readable for errors and times of departure: the port
 * knows. */
CASE(port_of_af_xdp_tells_of_frames)
{
	raw_renew(false, 4);
	eth_of(raw)->config.xdp = true;
	assert_int_equal(soft_eth_ops.arm(raw, 99), 0);
	progress_owner();
	assert_int_equal(around.completions, 0);
	assert_true(around.watching);
	around.frames = 1;
	progress_owner();
	assert_int_equal(around.completions, 1);
	assert_false(around.watching);
}

CASE(ring_is_the_ports)
{
	struct dapl_eth_stats now;
	struct dapl_eth_frame frame;

	raw_renew(false, 4);
	assert_int_equal(soft_eth_ops.poll(raw, &frame, 1), 1);
	assert_int_equal(frame.tag, 5);
	assert_int_equal(soft_eth_ops.release(raw, 2), 0);
	assert_int_equal(soft_eth_ops.release(raw, 3), EINVAL);
	eth_of(raw)->late = 6;
	soft_eth_ops.stats(raw, &now);
	assert_int_equal(now.received, 7);
	assert_int_equal(now.late, 6);
}

UNIT_MAIN(NULL, NULL)
