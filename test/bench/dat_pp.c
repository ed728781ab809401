/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_pp.c - 8-byte ping-pong through the public DAT API; see common.h. WHERE is an IA. */
#include "common.h"
#include <arpa/inet.h>
#include <dat/udat.h>

static DAT_IA_HANDLE ia;
static DAT_EVD_HANDLE async_evd, cr_evd, conn_evd, send_evd, recv_evd;
static DAT_PZ_HANDLE pz;
static DAT_PSP_HANDLE psp;
static DAT_LMR_HANDLE lmr;
static DAT_LMR_CONTEXT context;
static DAT_EP_HANDLE ep;
static char buffer[2 * MESSAGE];	/* sent from the first half */

static void good(DAT_RETURN rc, const char *what)
{
	const char *major = "?", *minor = "?";
	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fprintf(stderr, "%s: %s %s\n", what, major, minor);
	exit(1);
}

OP static void op_post_send(void)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = context, .segment_length = MESSAGE,
		.virtual_address = (DAT_VADDR)(uintptr_t)buffer };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_RETURN rc = dat_ep_post_send(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	if (rc != DAT_SUCCESS)
		good(rc, "dat_ep_post_send");
}

OP static void op_post_recv(void)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = context, .segment_length = MESSAGE,
		.virtual_address = (DAT_VADDR)(uintptr_t)(buffer + MESSAGE) };
	DAT_DTO_COOKIE cookie = { .as_64 = 2 };
	DAT_RETURN rc = dat_ep_post_recv(ep, 1, &iov, cookie, DAT_COMPLETION_DEFAULT_FLAG);
	if (rc != DAT_SUCCESS)
		good(rc, "dat_ep_post_recv");
}

static int taken(DAT_RETURN rc, const DAT_EVENT *e, const char *what)
{
	if (DAT_GET_TYPE(rc) == DAT_QUEUE_EMPTY)
		return 0;
	good(rc, what);
	CHECK(e->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS,
	      "%s: status %d", what, e->event_data.dto_completion_event_data.status);
	return 1;
}

OP static int op_reap_send(void)
{
	DAT_EVENT e;
	DAT_RETURN rc = dat_evd_dequeue(send_evd, &e);
	if (rc == DAT_SUCCESS &&
	    e.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		return 1;
	return taken(rc, &e, "send");
}

OP static int op_reap_recv(void)
{
	DAT_EVENT e;
	DAT_RETURN rc = dat_evd_dequeue(recv_evd, &e);
	if (rc == DAT_SUCCESS &&
	    e.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		return 1;
	return taken(rc, &e, "recv");
}

static void setup(const char *where, const char *addr, int port)
{
	DAT_REGION_DESCRIPTION region = { .for_va = buffer };
	DAT_RMR_CONTEXT rmr;
	DAT_VLEN length;
	DAT_VADDR start;
	DAT_EVENT e;
	DAT_COUNT more;

	good(dat_ia_open((char *)where, 8, &async_evd, &ia), "dat_ia_open");
	good(dat_pz_create(ia, &pz), "dat_pz_create");
	good(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &cr_evd), "dat_evd_create");
	good(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &conn_evd), "dat_evd_create");
	good(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &send_evd), "dat_evd_create");
	good(dat_evd_create(ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &recv_evd), "dat_evd_create");
	good(dat_ep_create(ia, pz, recv_evd, send_evd, conn_evd, NULL, &ep), "dat_ep_create");
	good(dat_lmr_create(ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof buffer, pz,
			    DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
			    DAT_VA_TYPE_VA, &lmr, &context, &rmr, &length, &start),
	     "dat_lmr_create");
	op_post_recv();
	if (addr) {
		struct sockaddr_in to = { .sin_family = AF_INET };
		inet_pton(AF_INET, addr, &to.sin_addr);
		good(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, port, 20 * 1000 * 1000, 0, NULL,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG),
		     "dat_ep_connect");
	} else {
		good(dat_psp_create(ia, port, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp), "dat_psp_create");
		puts("ready");
		fflush(stdout);
		good(dat_evd_wait(cr_evd, 30 * 1000 * 1000, 1, &e, &more), "dat_evd_wait (CR)");
		good(dat_cr_accept(e.event_data.cr_arrival_event_data.cr_handle, ep, 0, NULL),
		     "dat_cr_accept");
	}
	good(dat_evd_wait(conn_evd, 30 * 1000 * 1000, 1, &e, &more), "dat_evd_wait (connection)");
	CHECK(e.event_number == DAT_CONNECTION_EVENT_ESTABLISHED, "connection event 0x%x",
	      e.event_number);
}

static void finish(void)
{
	DAT_EVENT e;
	DAT_COUNT more;

	dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG);
	dat_evd_wait(conn_evd, 5 * 1000 * 1000, 1, &e, &more);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}
