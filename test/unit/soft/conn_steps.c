/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_steps.c - see conn_steps.h. */
#include <sys/epoll.h>
#include "common/lock.h"
#include "dapl/core/base/service.h"
#include "dapl/soft/cm/conn.h"
#include "dapl/soft/cm/conn_state.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/rdmap/ud.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/soft/conn_steps.h"
#include "test/unit/unit.h"

struct dapl_device dev;
struct soft_qp qp;
struct dapl_conn *conn;
int owner;
struct shm_conn rings;
unsigned progress_locks;
struct told told;
int allocations_left;
static int alive;			/* allocations that were not freed */
static bool conn_is_freed;
static bool in_cm_set, in_data_set;	/* epoll sets that the sockets are in */
static struct soft_pd pd;

/* --- the calls ------------------------------------------------------------------------------------------------ */

REPLACE(shm_conn_free, cm_set_state, dapl_task_queue, epoll_ctl, close)
EXTEND(soft_progress_lock, soft_conn_step, calloc, malloc, free)

static bool is_held(const struct dapl_mutex *mutex) { return mutex->state != MUTEX_FREE; }

void no_lock_is_held(void)
{
	assert_false(is_held(&dev.progress_lock));
	assert_false(is_held(&qp.lock));
}

/* The locks of the stream: that of the queue pair only if there is one. */
static void stream_is_locked(const struct dapl_conn *c)
{
	assert_true(is_held(&dev.progress_lock));
	assert_int_equal(is_held(&qp.lock), c->qp != NULL);
}

static int step_of(const char *object, const char *what)
{
	char word[64];

	snprintf(word, sizeof word, "%s:%s", object, what);
	return step(word);
}

void __wrap_soft_progress_lock(struct dapl_device *d)
{
	progress_locks++;
	__real_soft_progress_lock(d);
}

enum dapl_conn_step __wrap_soft_conn_step(const struct dapl_conn *c)
{
	stream_is_locked(c);
	return __real_soft_conn_step(c);
}

void __wrap_shm_conn_free(struct shm_conn *shm)
{
	if (shm)
		step("rings_free");
}

void __wrap_cm_set_state(struct dapl_conn *c, enum soft_conn_state state, const char *why)
{
	assert_int_equal(state, SOFT_CLOSED);
	stream_is_locked(c);
	c->state = state;
	step_of("closed", why);
}

void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *task))
{
	assert_ptr_equal(task, &conn->task);
	assert_ptr_equal(run, cm_conn_events.work);
	step("task");
}

void dapl_up_established(void *o, struct dapl_conn *c, const struct dapl_established *info)
{
	assert_ptr_equal(o, &owner);
	assert_ptr_equal(c, conn);
	no_lock_is_held();
	step("established");
}

void dapl_up_failed(void *o, struct dapl_conn *c, enum dapl_conn_failure why, const void *pdata, size_t length)
{
	assert_ptr_equal(o, &owner);
	assert_ptr_equal(c, conn);
	no_lock_is_held();
	told.pdata = pdata;
	told.length = length;
	step("failed");
}

void dapl_up_disconnected(void *o, struct dapl_conn *c, bool orderly)
{
	assert_ptr_equal(o, &owner);
	assert_ptr_equal(c, conn);
	no_lock_is_held();
	step_of("disconnected", orderly ? "orderly" : "broken");
}

void dapl_up_request(void *sp, struct dapl_conn *c, const struct dapl_request *request) { fail(); }
void dapl_up_joined(void *o, struct dapl_membership *membership, int err, const struct dapl_ud_peer *to) { fail(); }
void dapl_up_async(void *ia, const struct ibv_async_event *event) { fail(); }

void dapl_up_released(void *o)
{
	assert_ptr_equal(o, &owner);
	no_lock_is_held();
	step("released");
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	bool *in = epoll == DATA_EPOLL ? &in_data_set : &in_cm_set;

	assert_true(epoll == EPOLL || epoll == DATA_EPOLL);
	assert_int_equal(fd, SOCKET);
	assert_int_equal(*in, op != EPOLL_CTL_ADD);
	if (step_fails(epoll == EPOLL ? "watch" : "data"))
		return -1;
	if (op != EPOLL_CTL_DEL)
		assert_ptr_equal(event->data.ptr, epoll == EPOLL ? (void *)conn : &conn->progress.input);
	*in = op != EPOLL_CTL_DEL;
	return 0;
}

int __wrap_close(int fd)
{
	assert_int_equal(fd, SOCKET);
	assert_false(in_cm_set || in_data_set);
	return step("socket:close");
}

static bool may_allocate(void)
{
	if (!allocations_left)
		return false;
	if (allocations_left > 0)
		allocations_left--;
	alive++;
	return true;
}

void *__wrap_calloc(size_t n, size_t size) { return may_allocate() ? __real_calloc(n, size) : NULL; }
void *__wrap_malloc(size_t size) { return may_allocate() ? __real_malloc(size) : NULL; }

void __wrap_free(void *p)
{
	alive -= p != NULL;
	conn_is_freed |= p && p == conn;
	__real_free(p);
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

void set_address(struct sockaddr_storage *storage, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };

	memcpy(storage, &address, sizeof address);
}

uint16_t port_of(const struct sockaddr_storage *storage)
{
	assert_int_equal(storage->ss_family, AF_INET);
	return ntohs(((const struct sockaddr_in *)storage)->sin_port);
}

void lock(void) { dapl_mutex_lock(&dev.progress_lock); }

void unlock(void)
{
	dapl_mutex_unlock(&dev.progress_lock);
	no_lock_is_held();
}

int conn_begin(void **state)
{
	memset(&dev, 0, sizeof dev);
	memset(&qp, 0, sizeof qp);
	memset(&told, 0, sizeof told);
	dapl_mutex_init(&dev.progress_lock, RANK_SOFT_PROGRESS);
	dapl_mutex_init(&qp.lock, RANK_SOFT_QP);
	LIST_INIT(&dev.cm.conns);
	TAILQ_INIT(&dev.half_open.list);
	dev.cm.epoll = EPOLL;
	dev.data_epoll = DATA_EPOLL;
	dev.cm.sweep_ns = 1;		/* a sweep is due: none needs to be started */
	set_address(&dev.address, DEVICE_PORT);
	qp.dev = &dev;
	qp.qp.qp_type = IBV_QPT_RC;
	soft_qp_set_state(&qp, IBV_QPS_INIT);
	alive = 0;
	allocations_left = -1;
	conn_is_freed = false;
	progress_locks = 0;
	in_cm_set = in_data_set = false;
	forget_steps();
	conn = cm_conn_new(&dev);
	assert_non_null(conn);
	conn->fd = SOCKET;
	conn->owner = &owner;
	LIST_INSERT_HEAD(&dev.cm.conns, conn, link);
	return 0;
}

int conn_end(void **state)
{
	if (!conn_is_freed)
		cm_conn_free(conn);
	return alive ? -1 : 0;
}

void conn_is_gone(void)
{
	assert_true(conn_is_freed);
	assert_int_equal(alive, 0);
}

struct ibv_ah *new_ah(void)
{
	struct ibv_ah *ah = calloc(1, sizeof(struct soft_ah));

	assert_non_null(ah);
	ah->pd = &pd.pd;
	return ah;
}

void left_is_at(const char *expected, const char *file, int line)
{
	char objects[128];

	snprintf(objects, sizeof objects, "%s%s%s%s", in_cm_set ? "cm " : "", in_data_set ? "data " : "",
		 dev.half_open.count ? "half_open " : "", conn_is_freed ? "freed" : conn->up ? "upcall" : "");
	words_are_at(objects, expected, file, line);
}

void work(uint32_t up)
{
	conn->up = up;
	cm_conn_events.work(&conn->task);
	no_lock_is_held();
}
