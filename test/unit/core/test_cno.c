/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_cno.c - which thread watches the completion channel of an EVD that has a CNO: the waiter, or the
 * service thread for an agent. */
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <cmocka.h>
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "dapl/core/event/evd_notify.h"
#include "test/unit/core/core_device.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;
static struct dapl_cno *cno;

static void agent(DAT_PVOID context, DAT_EVD_HANDLE handle)
{
	(void)context, (void)handle;
}

static void make(bool with_agent)
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { NULL, with_agent ? agent : NULL };
	DAT_CNO_HANDLE handle;

	assert_int_equal(dapl_cno_create((DAT_IA_HANDLE)ia, proxy, &handle), DAT_SUCCESS);
	cno = (struct dapl_cno *)handle;
}

static int set_up(void **state)
{
	(void)state;
	core_device = (struct core_device){ .polling = NULL };
	if (dapl_service_get())
		return -1;
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(dapl_cno_free((DAT_CNO_HANDLE)cno), DAT_SUCCESS);
	cno = NULL;
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
	return 0;
}

static DAT_RETURN modify(struct dapl_cno *to)
{
	return dapl_evd_modify_cno((DAT_EVD_HANDLE)evd, (DAT_CNO_HANDLE)to);
}

static void waiter_watches_the_channel_itself(void **state)
{
	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_false(evd->watched);
	assert_ptr_equal(evd->cno, cno);
	assert_true(dapl_in_use(&cno->obj));
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_false(dapl_in_use(&cno->obj));
}

static void service_thread_watches_for_an_agent_only(void **state)
{
	(void)state;
	make(true);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(modify(cno), DAT_SUCCESS);
		assert_true(evd->watched);
		assert_int_equal(modify(NULL), DAT_SUCCESS);
		assert_false(evd->watched);
		assert_null(evd->cno);
	}
}

/* There may be no waiter from now on. */
static void agent_that_is_set_later_takes_over_the_channels(void **state)
{
	struct dapl_evd *other = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	DAT_OS_WAIT_PROXY_AGENT late = { NULL, agent };

	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_false(evd->watched);
	assert_int_equal(dapl_cno_modify_agent((DAT_CNO_HANDLE)cno, late), DAT_SUCCESS);
	assert_true(evd->watched);
	assert_false(other->watched);	/* it has another CNO, or none */
	assert_int_equal(evd->obj.calls + other->obj.calls, 0);
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_false(evd->watched);
	core_evd_free(other);
}

/* Its CQ must be emptied by the service thread, CNO or not. */
static void channel_of_a_spilling_evd_stays_watched(void **state)
{
	(void)state;
	make(true);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	evd->spill = true;
	assert_int_equal(modify(NULL), DAT_SUCCESS);
	assert_true(evd->watched);
	evd->spill = false;
}

static void cno_that_is_in_use_cannot_be_freed(void **state)
{
	(void)state;
	make(false);
	assert_int_equal(modify(cno), DAT_SUCCESS);
	assert_int_equal(DAT_GET_TYPE(dapl_cno_free((DAT_CNO_HANDLE)cno)), DAT_INVALID_STATE);
	assert_int_equal(modify(NULL), DAT_SUCCESS);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(waiter_watches_the_channel_itself),
		CASE(service_thread_watches_for_an_agent_only),
		CASE(agent_that_is_set_later_takes_over_the_channels),
		CASE(channel_of_a_spilling_evd_stays_watched),
		CASE(cno_that_is_in_use_cannot_be_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
