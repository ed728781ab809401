/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional_connect.c - functional tests of waiting and of connections, which this process makes to its
 * adapter's own address. */
#include "../call.h"
#include "functional.h"
#include <string.h>

enum { EVENT_TIMEOUT = PATIENCE * 1000000 };	/* microseconds; ends a wait that would hang */

struct pair {
	struct channel active, passive;
	DAT_CONN_QUAL qualifier;
};

static bool wait_until_timeout(struct functional *f, DAT_TIMEOUT timeout)
{
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_COUNT more;
	double start;

	EXPECT_TYPE(dat_evd_create(f->adapter.ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &evd), DAT_SUCCESS);
	start = now();
	EXPECT_TYPE(dat_evd_wait(evd, timeout, 1, &event, &more), DAT_TIMEOUT_EXPIRED);
	EXPECT((now() - start) * 1e6 >= timeout);
	EXPECT_TYPE(dat_evd_free(evd), DAT_SUCCESS);
	return true;
}

static bool wait_some_time(struct functional *f)
{
	return wait_until_timeout(f, 1000) && wait_until_timeout(f, 100000);
}

static bool wait_no_time(struct functional *f)
{
	return wait_until_timeout(f, 0);
}

static bool open_pair(struct functional *f, struct pair *p, bool reserved)
{
	struct channel_options o = { .receives = 4, .requests = 4, .segments = 1, .wait = WAIT_BLOCK };
	bool taken = true;

	EXPECT(channel_open(&p->active, &f->adapter, &o));
	EXPECT(channel_open(&p->passive, &f->adapter, &o));
	for (p->qualifier = f->o->qualifier; taken && p->qualifier <= 65535; p->qualifier++)
		if (channel_listen(&p->passive, p->qualifier, reserved, &taken))
			return true;
	return complain("no free connection qualifier");
}

static DAT_RETURN start_connect(struct functional *f, struct pair *p, const char *data)
{
	return dat_ep_connect(p->active.ep, f->adapter.attr.ia_address_ptr, p->qualifier, EVENT_TIMEOUT,
			      (DAT_COUNT)strlen(data), (void *)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static bool expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	DAT_COUNT more;

	EXPECT_TYPE(dat_evd_wait(evd, EVENT_TIMEOUT, 1, event, &more), DAT_SUCCESS);
	EXPECT(event->event_number == number);
	return true;
}

static bool connect_pair(struct functional *f, struct pair *p, bool reserved)
{
	DAT_EVENT event;

	EXPECT(open_pair(f, p, reserved));
	EXPECT_TYPE(start_connect(f, p, "hello"), DAT_SUCCESS);
	EXPECT(channel_accept(&p->passive, "hello", 5, EVENT_TIMEOUT));
	EXPECT(expect_event(p->active.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event));
	p->active.connected = true;
	return true;
}

static bool end_pair(struct pair *p)
{
	DAT_EVENT event;

	EXPECT(channel_disconnect(&p->active, DAT_CLOSE_GRACEFUL_FLAG));
	EXPECT(expect_event(p->passive.conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event));
	channel_close(&p->active);
	channel_close(&p->passive);
	return true;
}

static bool connect_and_disconnect(struct functional *f)
{
	struct pair p;

	return connect_pair(f, &p, false) && end_pair(&p);
}

static bool connect_to_reserved(struct functional *f)
{
	struct pair p;

	return connect_pair(f, &p, true) && end_pair(&p);
}

static bool reject(struct functional *f)
{
	struct pair p;
	DAT_EVENT event;

	EXPECT(open_pair(f, &p, false));
	EXPECT_TYPE(start_connect(f, &p, "x"), DAT_SUCCESS);
	EXPECT(expect_event(p.passive.cr, DAT_CONNECTION_REQUEST_EVENT, &event));
	EXPECT_TYPE(dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL), DAT_SUCCESS);
	EXPECT(expect_event(p.active.conn, DAT_CONNECTION_EVENT_PEER_REJECTED, &event));
	channel_close(&p.active);
	channel_close(&p.passive);
	return true;
}

static bool connect_to_nobody(struct functional *f)
{
	struct pair p;
	DAT_EVENT event;

	EXPECT(open_pair(f, &p, false));
	EXPECT_TYPE(dat_psp_free(p.passive.psp), DAT_SUCCESS);
	p.passive.psp = DAT_HANDLE_NULL;
	EXPECT_TYPE(start_connect(f, &p, "x"), DAT_SUCCESS);
	EXPECT(expect_event(p.active.conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED, &event));
	channel_close(&p.active);
	channel_close(&p.passive);
	return true;
}

static bool listen_twice(struct functional *f)
{
	DAT_PSP_HANDLE psp;
	struct pair p;

	EXPECT(open_pair(f, &p, false));
	EXPECT_TYPE(dat_psp_create(f->adapter.ia, p.qualifier, p.active.cr, DAT_PSP_CONSUMER_FLAG, &psp),
		    DAT_CONN_QUAL_IN_USE);
	channel_close(&p.active);
	channel_close(&p.passive);
	return true;
}

static bool transfer(struct functional *f)
{
	struct layout l = { 1, 64, 64 };
	struct region from, to;
	DAT_RMR_TRIPLET remote;
	struct pair p;

	EXPECT(connect_pair(f, &p, false));
	EXPECT(region_create(&from, &f->adapter, 64) && region_create(&to, &f->adapter, 128));
	memset(from.start, 'm', 64);
	EXPECT(channel_post_receive(&p.passive, &to, 0, l));
	EXPECT(channel_send(&p.active, &from, 0, 64) && channel_receive(&p.passive, 64, "receive"));
	EXPECT(!memcmp(from.start, to.start, 64));
	remote = (DAT_RMR_TRIPLET){ (DAT_VADDR)(uintptr_t)to.start + 64, 64, to.remote };
	EXPECT(channel_post_rdma(&p.active, &from, l, true, &remote));
	EXPECT(channel_wait(&p.active, p.active.request, 64, "RDMA write"));
	memset(from.start, 0, 64);
	EXPECT(channel_post_rdma(&p.active, &from, l, false, &remote));
	EXPECT(channel_wait(&p.active, p.active.request, 64, "RDMA read"));
	EXPECT(!memcmp(from.start, to.start, 64));
	EXPECT(end_pair(&p));
	region_free(&from);
	region_free(&to);
	return true;
}

static const struct functional_case cases[] = {
	{ "dat_evd_wait waits as long as it is told", wait_some_time },
	{ "dat_evd_wait with timeout 0 does not wait", wait_no_time },
	{ "a connection carries private data, and ends at both sides", connect_and_disconnect },
	{ "a reserved service point connects its endpoint", connect_to_reserved },
	{ "a rejected request is reported as such", reject },
	{ "a request that meets no listener is reported as such", connect_to_nobody },
	{ "a qualifier has one listener", listen_twice },
	{ "a message, an RDMA write and an RDMA read carry data", transfer },
};
const struct feature feature_connmgt = { "connmgt", "Connect Management", cases, sizeof cases / sizeof *cases };
