/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno.c - which thread watches the completion channel of an EVD that has a CNO: the waiter, or the
 * service thread for an agent. */
#include <sys/epoll.h>
#include "test/unit/core/core_cno.h"
#include "test/unit/unit.h"

static int watch_error;		/* of the service thread; 0: it watches what it is given */
static void (*before_publish)(void);	/* called once; NULL: nothing happens meanwhile */

EXTEND(dapl_watch_start)
int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*ready)(struct dapl_watch *))
{
	return watch_error ? watch_error : __real_dapl_watch_start(watch, fd, ready);
}

EXTEND(dapl_object_publish)
void __wrap_dapl_object_publish(struct dapl_object *obj)
{
	void (*meanwhile)(void) = before_publish;

	before_publish = NULL;
	if (meanwhile)
		meanwhile();
	__real_dapl_object_publish(obj);
}

static void agent(DAT_PVOID context, DAT_EVD_HANDLE handle) { (void)context, (void)handle; }

static int set_up(void **state)
{
	watch_error = 0;
	before_publish = NULL;
	return open_evd(state);
}

#define CASE(name) UNIT_TEST_WITH(name, set_up, close_cno)

CASE(waiter_watches_the_channel_itself)
{
	create_cno(NULL);
	set_cno(cno);
	assert_false(evd->watched);
	assert_ptr_equal(evd->cno, cno);
	assert_true(dapl_in_use(&cno->obj));
	set_cno(NULL);
	assert_false(dapl_in_use(&cno->obj));
}

CASE(service_thread_watches_for_an_agent_only)
{
	create_cno(agent);
	for (int i = 0; i < 2; i++) {
		set_cno(cno);
		assert_true(evd->watched);
		set_cno(NULL);
		assert_false(evd->watched);
		assert_null(evd->cno);
	}
}

/* There may be no waiter from now on. */
CASE(agent_that_is_set_later_takes_over_the_channels)
{
	struct dapl_evd *other = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	DAT_OS_WAIT_PROXY_AGENT late = { NULL, agent };

	create_cno(NULL);
	set_cno(cno);
	assert_false(evd->watched);
	assert_int_equal(dapl_cno_modify_agent((DAT_CNO_HANDLE)cno, late), DAT_SUCCESS);
	assert_true(evd->watched);
	assert_false(other->watched);	/* it has another CNO, or none */
	assert_int_equal(evd->obj.calls + other->obj.calls, 0);
	set_cno(NULL);
	assert_false(evd->watched);
	core_evd_free(other);
}

static DAT_RETURN set_agent(void)
{
	return dapl_cno_modify_agent((DAT_CNO_HANDLE)cno, (DAT_OS_WAIT_PROXY_AGENT){ NULL, agent });
}

/* The CNO still has none, so its waiter watches the channel. */
CASE(agent_that_would_miss_completions_is_refused)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = evd };
	DAT_CNO_PARAM param;

	create_cno(NULL);
	set_cno(cno);
	watch_error = ENOMEM;
	assert_int_equal(set_agent(), NO_RESOURCE(MEMORY));
	assert_int_equal(dapl_cno_query((DAT_CNO_HANDLE)cno, DAT_CNO_FIELD_ALL, &param), DAT_SUCCESS);
	assert_int_equal(param.proxy_type, DAT_PROXY_TYPE_NONE);
	assert_false(evd->watched);
	assert_int_equal(epoll_ctl(cno->epfd, EPOLL_CTL_MOD, evd->channel->fd, &event), 0);
	assert_int_equal(evd->obj.calls, 0);
	set_cno(NULL);
}

static DAT_RETURN create_evd(DAT_EVD_HANDLE *handle)
{
	return dapl_evd_create((DAT_IA_HANDLE)ia, 8, (DAT_CNO_HANDLE)cno, DAT_EVD_DTO_FLAG, handle);
}

CASE(evd_that_no_thread_would_watch_is_not_created)
{
	DAT_EVD_HANDLE handle;

	ia->ia_attr.max_evd_qlen = 8;
	create_cno(agent);
	watch_error = ENOMEM;
	assert_int_equal(create_evd(&handle), NO_RESOURCE(MEMORY));
	assert_null(handle);
	assert_false(dapl_in_use(&cno->obj));
}

/* What another thread does after the new EVD was attached, and before it is listed. */
static void set_agent_meanwhile(void)
{
	assert_int_equal(set_agent(), DAT_SUCCESS);
	watch_error = ENOMEM;
}

CASE(evd_that_is_created_beside_a_new_agent_is_watched_or_refused)
{
	DAT_EVD_HANDLE handle;

	ia->ia_attr.max_evd_qlen = 8;
	create_cno(NULL);
	before_publish = set_agent_meanwhile;
	assert_int_equal(create_evd(&handle), NO_RESOURCE(MEMORY));
	assert_null(handle);
	assert_false(dapl_in_use(&cno->obj));
	watch_error = 0;
	assert_int_equal(dapl_object_count(ia, DAPL_EVD), 1);
}

/* Its CQ must be emptied by the service thread, CNO or not. */
CASE(channel_of_a_spilling_evd_stays_watched)
{
	create_cno(agent);
	set_cno(cno);
	evd->spill = true;
	set_cno(NULL);
	assert_true(evd->watched);
	evd->spill = false;
}

UNIT_MAIN(NULL, NULL)
