/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach.c - offers of shared memory and their tokens; what an initiator of the same and of another process gets;
 * what is refused, and what is left of it. This process listens for the other one, too. */
#include <sys/eventfd.h>
#include <sys/resource.h>
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/attach_message.h"
#include "dapl/soft/shm/attach_server.h"
#include "dapl/soft/shm/attach_socket.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/core/base/service.h"
#include "dapl/core/device.h"
#include "dapl/soft/obj/random.h"
#include "test/unit/child.h"
#include "test/unit/descriptors.h"
#include "test/unit/device_harness.h"
#include "test/unit/unit.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW, ACCEPTOR = 4711 };

static const struct dapl_device_ops *ops = &dapl_device_ops;
static struct dapl_device *devices[2];	/* 0 accepts, 1 connects */
static struct dapl_conn conn;		/* that offers */
static struct attach_offer *offer;
static uint8_t token[16];
static unsigned open_before;
static uint64_t other_name;		/* of the other process */
static int listener, accepted;		/* its sockets; -1: closed */
static int send_err;			/* errno of sendmsg() */

EXTEND(sendmsg)

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	errno = send_err;
	return send_err ? -1 : __real_sendmsg(fd, message, flags);
}

/* --- what the cases use ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	dapl_service_get();
	open_before = open_descriptors();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ops->open("lo 0", NULL, &devices[i]), 0);
		devices[i]->want_shm = true;
	}
	send_err = 0;
	offer = NULL;
	other_name = soft_random_64() | 1;
	listener = attach_socket_listen(other_name, false);
	accepted = -1;
	return listener < 0;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void close_devices(void)
{
	for (int i = 0; i < 2; i++)
		if (devices[i])
			ops->close(devices[i]);
	memset(devices, 0, sizeof devices);
	dapl_service_flush();
}

/* No case leaves a descriptor open. */
UNIT_FIXTURE(tear_down)
{
	shm_segment_put(attach_offer_end(offer));
	close_one(&listener);
	close_one(&accepted);
	close_devices();
	assert_int_equal(open_descriptors(), open_before);
	dapl_service_put();
}

static struct attach_offer *try_offer(struct dapl_device *dev)
{
	struct attach_offer *made;

	soft_progress_lock(dev);
	errno = EXFULL;
	made = attach_offer_new(dev, &conn, token);
	soft_progress_unlock(dev);
	return made;
}

static void make_offer(void)
{
	offer = try_offer(devices[0]);
	assert_non_null(offer);
}

static void make_token(uint64_t name, uint64_t key)
{
	memcpy(token, &name, 8);
	memcpy(token + 8, &key, 8);
}

/* errno is set before to a value that the call never sets. */
static enum soft_attach begin(struct dapl_device *dev, int *fd, struct shm_segment **segment,
			      struct dapl_conn **acceptor)
{
	enum soft_attach result;

	*fd = -1;
	*segment = NULL;
	soft_progress_lock(dev);
	errno = EXFULL;
	result = soft_attach_begin(dev, token, fd, segment, acceptor);
	soft_progress_unlock(dev);
	return result;
}

static void expect_no(int err)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_NO);
	assert_int_equal(errno, err);
	assert_int_equal(fd, -1);
	assert_null(segment);
	assert_null(acceptor);
}

/* The initiator has sent its request to another process. Returns its socket. */
static int ask(void)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	make_token(other_name, 77);
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_WAIT);
	assert_true(fd >= 0);
	assert_null(acceptor);
	accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	return fd;
}

static void make_acceptor(struct shm_process *process)
{
	process->wake_fd = eventfd(0, EFD_NONBLOCK);
	process->file = sealed_file_new(sizeof(struct shm_mr_dir), SEALS);
	process->pending_file = sealed_file_new(sizeof(struct shm_pending), SEALS);
	assert_true(process->wake_fd >= 0 && process->file >= 0 && process->pending_file >= 0);
}

/* The acceptor replies; its own descriptors are closed. */
static void reply(int segment_file, struct shm_process *process)
{
	struct attach_reply message = { .process = ACCEPTOR };

	assert_int_equal(attach_send_reply(accepted, &message, segment_file, process), 0);
	close(segment_file);
	close(process->wake_fd);
	close(process->file);
	close(process->pending_file);
}

static void expect_no_segment(int fd, int err)
{
	struct shm_segment *segment = NULL;

	assert_int_equal(soft_attach_go_on(devices[1], fd, &segment), SOFT_ATTACH_NO);
	assert_int_equal(errno, err);
	assert_null(segment);
	assert_int_equal(devices[1]->shm.process->refs, 1);
	close(fd);
}

/* --- the acceptor ----------------------------------------------------------------------------------------------- */

UNIT_CASE(unwanted_memory_is_not_offered)
{
	devices[0]->want_shm = false;
	assert_null(try_offer(devices[0]));
	assert_int_equal(errno, 0);
	assert_null(devices[0]->shm.process);
}

UNIT_CASE(offer_needs_a_server)
{
	struct rlimit usual, none;

	close(ask());				/* now the device has a process */
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	none = usual;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_null(try_offer(devices[1]));
	assert_int_equal(errno, EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	assert_int_equal(attach_server_name(), 0);
}

/* --- an initiator of the same process --------------------------------------------------------------------------- */

UNIT_CASE(device_of_this_process_gets_the_segment_at_once)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	make_offer();
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_DONE);
	assert_null(acceptor);			/* of another device */
	assert_true(segment->here);
	assert_ptr_equal(segment->process[0], devices[1]->shm.process);
	assert_ptr_equal(segment->process[1], devices[0]->shm.process);
	assert_ptr_equal(attach_offer_end(offer), segment);
	offer = NULL;
	shm_segment_put(segment);
	shm_segment_put(segment);
	assert_int_equal(devices[0]->shm.process->refs, 1);
	assert_int_equal(devices[1]->shm.process->refs, 1);
}

UNIT_CASE(offer_is_valid_once)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	make_offer();
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_DONE);
	shm_segment_put(segment);
	expect_no(ENODATA);
}

UNIT_CASE(no_offer_is_no_error)
{
	make_token(other_name, 0);
	expect_no(0);
	assert_null(devices[1]->shm.process);
	make_token(other_name, 77);
	devices[1]->want_shm = false;
	expect_no(0);
	assert_null(devices[1]->shm.process);
}

/* --- an initiator of another process ---------------------------------------------------------------------------- */

UNIT_CASE(full_backlog_is_tried_again)
{
	enum soft_attach result = SOFT_ATTACH_WAIT;
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	make_token(other_name, 77);
	assert_int_equal(listen(listener, 0), 0);
	for (int i = 0; i < 3 && result == SOFT_ATTACH_WAIT; i++) {
		result = begin(devices[1], &fd, &segment, &acceptor);
		close_one(&fd);
	}
	assert_int_equal(result, SOFT_ATTACH_AGAIN);
	close_one(&listener);
	expect_no(ECONNREFUSED);
}

UNIT_CASE(request_that_cannot_be_sent_closes_the_socket)
{
	make_token(other_name, 77);
	send_err = EPIPE;
	expect_no(EPIPE);
	accepted = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	assert_int_equal(read(accepted, token, 1), 0);
}

UNIT_CASE(reply_brings_the_segment)
{
	int file = sealed_file_new(sizeof(struct ring_memory), SEALS), fd = ask();
	struct shm_process process;
	struct shm_segment *segment = NULL;

	make_acceptor(&process);
	assert_int_equal(soft_attach_go_on(devices[1], fd, &segment), SOFT_ATTACH_WAIT);
	assert_int_equal(pwrite(file, "\7", 1, offsetof(struct ring_memory, slot)), 1);
	reply(file, &process);
	assert_int_equal(soft_attach_go_on(devices[1], fd, &segment), SOFT_ATTACH_DONE);
	assert_false(segment->here);
	assert_int_equal(segment->memory->slot[0][0].seq, 7);
	assert_ptr_equal(segment->process[0], devices[1]->shm.process);
	assert_int_equal(segment->process[1]->id, ACCEPTOR);
	assert_int_equal(devices[1]->shm.process->refs, 2);
	shm_segment_put(segment);
	assert_int_equal(devices[1]->shm.process->refs, 1);
	close(fd);
}

UNIT_CASE(segment_that_can_shrink_is_refused)
{
	int fd = ask();
	struct shm_process process;

	make_acceptor(&process);
	reply(sealed_file_new(sizeof(struct ring_memory), F_SEAL_GROW), &process);
	expect_no_segment(fd, EPROTO);
}

UNIT_CASE(acceptor_without_a_wake_up_is_refused)
{
	int fd = ask();
	struct shm_process process;

	make_acceptor(&process);
	close(process.wake_fd);
	process.wake_fd = eventfd(0, 0);
	reply(sealed_file_new(sizeof(struct ring_memory), SEALS), &process);
	expect_no_segment(fd, EPROTO);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

UNIT_CASE(child_has_no_offers)
{
	struct shm_process *process;
	uint64_t key;
	pid_t child;

	make_offer();
	memcpy(&key, token + 8, 8);
	child = fork_child();
	if (!child)
		_exit(attach_server_name() || offer_take(key, NULL, NULL));
	expect_success(child);
	process = offer_take(key, NULL, NULL);	/* the parent has its locks, and its offer */
	assert_ptr_equal(process, devices[0]->shm.process);
	shm_process_put(process);
}

UNIT_FIXTURE(drop_spares) { shm_segment_drop_spares(); }

UNIT_MAIN(NULL, drop_spares)
