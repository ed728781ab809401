/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_conn.c - see core_conn.h. */
#include "dapl/core/conn/ep_free.h"
#include "dapl/core/event/event.h"
#include "test/unit/core/core_conn.h"
#include "test/unit/core/core_ud.h"
#include "test/unit/unit.h"

struct core_conn core_conn;
static char connection;
struct dapl_conn *const core_connection = (struct dapl_conn *)&connection;

static void note_error(struct ibv_qp *qp)
{
	assert_ptr_equal(qp, ep->qp);
	core_conn.flushes++;
}

static void note_disconnect(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, core_connection);
	core_conn.disconnects++;
}

static void note_release(struct dapl_conn *conn)
{
	assert_ptr_equal(conn, core_connection);
	core_conn.releases++;
}

static void explain(struct dapl_conn *conn, struct dapl_conn_cause *cause)
{
	assert_ptr_equal(conn, core_connection);
	assert_int_equal(core_conn.releases, 0);	/* or it is gone */
	cause->err = core_conn.known_error;
	cause->step = DAPL_STEP_REPLY;
}

/* --- fixture ----------------------------------------------------------------------------------------------- */

static int open_objects(void **state)
{
	dapl_conn_hooks = (struct dapl_conn_hooks){ .broken = NULL };
	if (core_objects_open(state))	/* which fills the hooks */
		return -1;
	core_device.error_qp = note_error;
	core_device.disconnect = note_disconnect;
	core_device.release = note_release;
	core_device.explain = explain;
	core_conn = (struct core_conn){ .made = 0 };
	return 0;
}

int core_conn_open(void **state)
{
	if (open_objects(state))
		return -1;
	ep = core_objects_ep(NULL, NULL);
	return 0;
}

int core_conn_open_datagrams(void **state)
{
	if (open_objects(state))
		return -1;
	ep = core_ud_ep();
	return 0;
}

int core_conn_close(void **state)
{
	DAT_EVENT event;

	assert_int_equal(core_next_event(core_conn_evd, &event), 0);
	assert_int_equal(ep->lock.state, MUTEX_FREE);
	assert_int_equal(ep->obj.refs, 1 + core_conn.made);
	assert_int_equal(dapl_ep_free((DAT_EP_HANDLE)ep), DAT_SUCCESS);
	assert_int_equal(core_conn.releases, core_conn.made);
	while (core_conn.made--)
		dapl_up_released(ep);
	return core_objects_close(state);
}

void core_conn_again(void **state)
{
	assert_int_equal(core_conn_close(state), 0);
	assert_int_equal(core_conn_open(state), 0);
}

void core_conn_begin(enum dapl_ep_event how)
{
	struct sockaddr_in *local = (struct sockaddr_in *)&ep->local, *remote = (struct sockaddr_in *)&ep->remote;

	dapl_mutex_lock(&ep->lock);
	assert_true(dapl_ep_step(ep, how, NULL));
	ep->conn = core_connection;
	*local = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(CORE_LOCAL_PORT) };
	*remote = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(CORE_REMOTE_PORT) };
	dapl_object_get(&ep->obj);
	core_conn.made++;
	dapl_mutex_unlock(&ep->lock);
}

void core_conn_establish(void)
{
	dapl_up_established(ep, core_connection, &(struct dapl_established){ .pdata = NULL });
}

void core_conn_begin_connected(void)
{
	core_conn_begin(EP_DO_CONNECT);
	core_conn_establish();
	core_conn_event_is(DAT_CONNECTION_EVENT_ESTABLISHED, NULL, 0);
	memset(core_ia->counters, 0, sizeof core_ia->counters);
}

void core_conn_event_is(int number, const char *data, int length)
{
	DAT_EVENT event;
	const DAT_CONNECTION_EVENT_DATA *of = &event.event_data.connect_event_data;

	assert_int_equal(core_next_event(core_conn_evd, &event), number);
	assert_ptr_equal(of->ep_handle, ep);
	assert_int_equal(of->private_data_size, length);
	if (length)
		assert_memory_equal(of->private_data, data, (size_t)length);
}

void core_conn_is_dropped(void)
{
	assert_int_equal(ep->state, DAT_EP_STATE_DISCONNECTED);
	assert_null(ep->conn);
	assert_int_equal(core_conn.flushes, 1);
	assert_int_equal(core_conn.disconnects, 1);
	assert_int_equal(core_conn.releases, 1);
}

void core_conn_is_unchanged(DAT_EP_STATE before)
{
	DAT_EVENT event;

	assert_int_equal(ep->state, before);
	assert_int_equal(core_next_event(core_conn_evd, &event), 0);
	assert_int_equal(core_conn.flushes + core_conn.disconnects + core_conn.releases, 0);
	assert_int_equal(ep->failure.event, 0);
}

void core_conn_counted(unsigned counter)
{
	for (unsigned i = DCNT_IA_CM_LISTEN; i <= DCNT_IA_CM_ERR_UNEXPECTED; i++)
		assert_int_equal(core_ia->counters[i], i == counter);
}
