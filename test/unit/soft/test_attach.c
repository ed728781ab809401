/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach.c - offers of shared memory and their tokens; what an initiator of the same and of another process gets;
 * what is refused, and what is left of it. The server and the connected socket are replaced here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include "dapl/soft/obj/device.h"
#include "dapl/soft/rdmap/conn.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/shm/attach_message.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_segment.h"
#include "test/unit/descriptors.h"

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW, ACCEPTOR = 4711 };

static const uint64_t own_name = 0x1122334455667788, other_name = 0x99aabbccddeeff00;

static struct dapl_device *devices[2];	/* 0 accepts, 1 connects */
static struct dapl_conn conn;		/* that offers */
static struct attach_offer *offer;
static uint8_t token[16];
static unsigned open_before;
static int server_err, connect_err;	/* errno of the replaced calls */
static int pair[2];			/* of the initiator, and of the acceptor; -1: closed, or given away */
static unsigned left;			/* devices that left the server */
static char calls[64];			/* letters of the calls that a fork makes */

bool __wrap_attach_server_use(struct dapl_device *dev, uint64_t *name);
uint64_t __wrap_attach_server_name(void);
void __wrap_attach_server_leave(struct dapl_device *dev);
int __wrap_attach_socket_connect(uint64_t name);
void __wrap_soft_stags_publish_all(struct dapl_device *device, struct shm_process *process);
void __wrap_revoke_close(struct dapl_device *dev);

bool __wrap_attach_server_use(struct dapl_device *dev, uint64_t *name)
{
	(void)dev;
	*name = own_name;
	errno = server_err;
	return !server_err;
}

uint64_t __wrap_attach_server_name(void)
{
	return own_name;
}

void __wrap_attach_server_leave(struct dapl_device *dev)
{
	assert_non_null(dev->process);
	left++;
}

int __wrap_attach_socket_connect(uint64_t name)
{
	int fd = pair[0];

	assert_int_equal(name, other_name);
	errno = connect_err;
	if (connect_err)
		return -1;
	pair[0] = -1;
	return fd;
}

void __wrap_soft_stags_publish_all(struct dapl_device *device, struct shm_process *process)
{
	device->process = process;
}

void __wrap_revoke_close(struct dapl_device *dev)
{
	assert_non_null(dev->process);		/* accesses to it are waited for */
}

static void called(const char *letter)
{
	strcat(calls, letter);
}

#define RECORD(name, letter)			\
	void __wrap_##name(void);		\
	void __wrap_##name(void)		\
	{					\
		called(letter);			\
	}

RECORD(attach_server_fork_prepare, "a")
RECORD(offers_fork_prepare, "o")
RECORD(shm_process_fork_prepare, "p")
RECORD(shm_segment_fork_prepare, "s")
RECORD(attach_server_fork_done, "a")
RECORD(offers_fork_done, "o")
RECORD(shm_process_fork_done, "p")
RECORD(shm_segment_fork_done, "s")
RECORD(attach_server_fork_child, "a")
RECORD(offers_fork_child, "o")
RECORD(shm_process_fork_child, "p")
RECORD(shm_segment_fork_child, "s")
RECORD(fence_fork_child, "f")

/* --- what the cases use ------------------------------------------------------------------------------------------ */

static int set_up(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		devices[i] = calloc(1, sizeof *devices[i]);
		devices[i]->data_epoll = epoll_create1(EPOLL_CLOEXEC);
		devices[i]->want_shm = true;
		dapl_mutex_init(&devices[i]->progress_lock, RANK_SOFT_PROGRESS);
	}
	server_err = connect_err = 0;
	offer = NULL;
	left = 0;
	open_before = open_descriptors();
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair);
}

static void close_end(int end)
{
	if (pair[end] >= 0)
		close(pair[end]);
	pair[end] = -1;
}

/* No case leaves a descriptor open. */
static int tear_down(void **state)
{
	(void)state;
	shm_segment_put(attach_offer_end(offer));
	close_end(0);
	close_end(1);
	for (int i = 0; i < 2; i++)
		shm_process_put(devices[i]->process);
	assert_int_equal(open_descriptors(), open_before);
	for (int i = 0; i < 2; i++) {
		close(devices[i]->data_epoll);
		free(devices[i]);
	}
	return 0;
}

static struct attach_offer *try_offer(void)
{
	struct attach_offer *made;

	dapl_mutex_lock(&devices[0]->progress_lock);
	made = attach_offer_new(devices[0], &conn, token);
	dapl_mutex_unlock(&devices[0]->progress_lock);
	return made;
}

static void make_offer(void)
{
	offer = try_offer();
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
	dapl_mutex_lock(&dev->progress_lock);
	errno = EXFULL;
	result = soft_attach_begin(dev, token, fd, segment, acceptor);
	dapl_mutex_unlock(&dev->progress_lock);
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

	assert_int_equal(attach_send_reply(pair[1], &message, segment_file, process), 0);
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
	assert_int_equal(devices[1]->process->refs, 1);
	close(fd);
}

/* --- the acceptor ----------------------------------------------------------------------------------------------- */

static void token_holds_the_server_and_the_offer(void **state)
{
	struct dapl_conn *offering = NULL;
	struct shm_process *process;
	uint64_t name, key;

	(void)state;
	make_offer();
	memcpy(&name, token, 8);
	memcpy(&key, token + 8, 8);
	assert_int_equal(name, own_name);
	process = offer_take(key, devices[0], &offering);
	assert_ptr_equal(process, devices[0]->process);
	assert_ptr_equal(offering, &conn);
	shm_process_put(process);
}

static void unwanted_memory_is_not_offered(void **state)
{
	(void)state;
	devices[0]->want_shm = false;
	errno = EXFULL;
	assert_null(try_offer());
	assert_int_equal(errno, 0);
	assert_null(devices[0]->process);
}

static void offer_needs_a_server_and_a_process(void **state)
{
	int epoll = devices[0]->data_epoll;

	(void)state;
	server_err = EMFILE;
	assert_null(try_offer());
	assert_int_equal(errno, EMFILE);
	shm_process_put(devices[0]->process);
	devices[0]->process = NULL;
	server_err = 0;
	devices[0]->data_epoll = -1;
	assert_null(try_offer());
	assert_int_equal(errno, EBADF);
	devices[0]->data_epoll = epoll;
}

/* --- an initiator of the same process --------------------------------------------------------------------------- */

static void device_of_this_process_gets_the_segment_at_once(void **state)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	(void)state;
	make_offer();
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_DONE);
	assert_null(acceptor);			/* of another device */
	assert_true(segment->here);
	assert_ptr_equal(segment->process[0], devices[1]->process);
	assert_ptr_equal(segment->process[1], devices[0]->process);
	assert_ptr_equal(attach_offer_end(offer), segment);
	offer = NULL;
	shm_segment_put(segment);
	shm_segment_put(segment);
	assert_int_equal(devices[0]->process->refs, 1);
	assert_int_equal(devices[1]->process->refs, 1);
}

static void acceptor_of_the_same_device_is_named(void **state)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	(void)state;
	make_offer();
	assert_int_equal(begin(devices[0], &fd, &segment, &acceptor), SOFT_ATTACH_DONE);
	assert_ptr_equal(acceptor, &conn);
	shm_segment_put(segment);
}

static void offer_is_valid_once(void **state)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	(void)state;
	make_offer();
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_DONE);
	shm_segment_put(segment);
	expect_no(ENODATA);
}

static void no_offer_is_no_error(void **state)
{
	(void)state;
	make_token(own_name, 0);
	expect_no(0);
	assert_null(devices[1]->process);
	make_token(other_name, 77);
	devices[1]->want_shm = false;
	expect_no(0);
	assert_null(devices[1]->process);
}

/* --- an initiator of another process ---------------------------------------------------------------------------- */

static void other_process_is_asked(void **state)
{
	struct attach_request request;
	int fds[ATTACH_REQUEST_FDS], fd = ask();

	(void)state;
	assert_int_equal(attach_receive_request(pair[1], &request, fds), 1);
	assert_int_equal(request.key, 77);
	assert_int_equal(request.process, devices[1]->process->id);
	for (int i = 0; i < ATTACH_REQUEST_FDS; i++)
		close(fds[i]);
	close(fd);
}

static void full_backlog_is_tried_again(void **state)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	(void)state;
	make_token(other_name, 77);
	connect_err = EAGAIN;
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_AGAIN);
	connect_err = ECONNREFUSED;
	expect_no(ECONNREFUSED);
}

static void request_that_cannot_be_sent_closes_the_socket(void **state)
{
	struct shm_segment *segment;
	struct dapl_conn *acceptor;
	int fd;

	(void)state;
	close_end(1);
	make_token(other_name, 77);
	assert_int_equal(begin(devices[1], &fd, &segment, &acceptor), SOFT_ATTACH_NO);
	assert_int_equal(errno, EPIPE);
	shm_process_put(devices[1]->process);
	devices[1]->process = NULL;
	assert_int_equal(open_descriptors(), open_before);
}

static void reply_brings_the_segment(void **state)
{
	int file = sealed_file_new(sizeof(struct ring_memory), SEALS), fd = ask();
	struct shm_process process;
	struct shm_segment *segment = NULL;

	(void)state;
	make_acceptor(&process);
	assert_int_equal(soft_attach_go_on(devices[1], fd, &segment), SOFT_ATTACH_WAIT);
	assert_int_equal(pwrite(file, "\7", 1, offsetof(struct ring_memory, slot)), 1);
	reply(file, &process);
	assert_int_equal(soft_attach_go_on(devices[1], fd, &segment), SOFT_ATTACH_DONE);
	assert_false(segment->here);
	assert_int_equal(segment->memory->slot[0][0].seq, 7);
	assert_ptr_equal(segment->process[0], devices[1]->process);
	assert_int_equal(segment->process[1]->id, ACCEPTOR);
	assert_int_equal(devices[1]->process->refs, 2);
	shm_segment_put(segment);
	assert_int_equal(devices[1]->process->refs, 1);
	close(fd);
}

static void acceptor_that_closes_gives_nothing(void **state)
{
	int fd = ask();

	(void)state;
	close_end(1);
	expect_no_segment(fd, ECONNRESET);	/* it had not read the request */
}

static void segment_that_can_shrink_is_refused(void **state)
{
	int fd = ask();
	struct shm_process process;

	(void)state;
	make_acceptor(&process);
	reply(sealed_file_new(sizeof(struct ring_memory), F_SEAL_GROW), &process);
	expect_no_segment(fd, EPROTO);
}

static void acceptor_without_a_wake_up_is_refused(void **state)
{
	int fd = ask();
	struct shm_process process;

	(void)state;
	make_acceptor(&process);
	close(process.wake_fd);
	process.wake_fd = eventfd(0, 0);
	reply(sealed_file_new(sizeof(struct ring_memory), SEALS), &process);
	expect_no_segment(fd, EPROTO);
}

/* --- the end ---------------------------------------------------------------------------------------------------- */

static void closed_device_has_no_process(void **state)
{
	(void)state;
	make_offer();
	assert_null(attach_offer_end(offer));
	offer = NULL;
	soft_shm_close(devices[0]);
	assert_int_equal(left, 1);
	assert_null(devices[0]->process);
}

static void fork_releases_the_locks_in_reverse(void **state)
{
	(void)state;
	*calls = '\0';
	soft_shm_fork_prepare();
	assert_string_equal(calls, "aops");
	*calls = '\0';
	soft_shm_fork_done();
	assert_string_equal(calls, "spoa");
	*calls = '\0';
	soft_shm_fork_child();
	for (const char *part = "aopsf"; *part; part++)
		assert_non_null(strchr(calls, *part));
}

static int drop_spares(void **state)
{
	(void)state;
	shm_segment_drop_spares();
	return 0;
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(token_holds_the_server_and_the_offer),
		CASE(unwanted_memory_is_not_offered),
		CASE(offer_needs_a_server_and_a_process),
		CASE(device_of_this_process_gets_the_segment_at_once),
		CASE(acceptor_of_the_same_device_is_named),
		CASE(offer_is_valid_once),
		CASE(no_offer_is_no_error),
		CASE(other_process_is_asked),
		CASE(full_backlog_is_tried_again),
		CASE(request_that_cannot_be_sent_closes_the_socket),
		CASE(reply_brings_the_segment),
		CASE(acceptor_that_closes_gives_nothing),
		CASE(segment_that_can_shrink_is_refused),
		CASE(acceptor_without_a_wake_up_is_refused),
		CASE(closed_device_has_no_process),
		CASE(fork_releases_the_locks_in_reverse),
	};

	return cmocka_run_group_tests(tests, NULL, drop_spares);
}
