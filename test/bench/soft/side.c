/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.c - see side.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <dat/dat_ib_extensions.h>
#include "side.h"
#include "two.h"

DAT_IA_HANDLE ia;
DAT_EVD_HANDLE conn_evd, evd;
DAT_PZ_HANDLE pz;
DAT_EP_HANDLE ep;
DAT_LMR_CONTEXT lmr_context;
char *out, *in, *target;
unsigned received, completed, posted;
bool waits;
DAT_CNO_HANDLE cno;

static DAT_EVD_HANDLE async_evd;
static unsigned spent;		/* receives to post again */

void good(DAT_RETURN rc, const char *what)
{
	const char *major = "?", *minor = "?";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail(what, major);
}

void open_ia(const char *name, int depth)
{
	good(dat_ia_open((char *)name, 8, &async_evd, &ia), "dat_ia_open");
	good(dat_pz_create(ia, &pz), "dat_pz_create");
	good(dat_evd_create(ia, depth, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
			    &conn_evd), "dat_evd_create");
	good(dat_evd_create(ia, depth, DAT_HANDLE_NULL,
			    DAT_EVD_DTO_FLAG | (int)DAT_IB_EVD_EXTENSION_FLAG, &evd),
	     "dat_evd_create");
}

void set_target(char *at, DAT_VADDR name, DAT_RMR_CONTEXT context)
{
	target = at;
	shared->target[me] = name;
	shared->context[me] = context;
}

/* Peers access this region from `at` on, which lies in it. */
static void register_target(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length, char *at,
			    DAT_LMR_CONTEXT *context)
{
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN size;
	DAT_VADDR address;

	good(dat_lmr_create(ia, type, region, length, pz,
			    DAT_MEM_PRIV_ALL_FLAG | (int)DAT_IB_MEM_PRIV_REMOTE_ATOMIC,
			    DAT_VA_TYPE_VA, &lmr, context, &remote, &size, &address),
	     "dat_lmr_create");
	set_target(at, (uintptr_t)at, remote);
}

void register_memory(void)
{
	DAT_REGION_DESCRIPTION region;

	out = aligned_alloc(2 * LARGE, 4 * LARGE);	/* not touched before it is registered: it gets huge pages */
	in = out + LARGE;
	region.for_va = out;
	register_target(DAT_MEM_TYPE_VIRTUAL, region, 4 * LARGE, in + LARGE, &lmr_context);
}

void target_mapped(void)
{
	int fd = memfd_create("bench", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	char name[DAT_LMR_COOKIE_SIZE] = "bench", *at;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;

	if (fd < 0 || ftruncate(fd, LARGE) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		fail("memfd_create", strerror(errno));
	at = mmap(NULL, LARGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		fail("mmap", strerror(errno));
	name[sizeof name - 1] = (char)('0' + me);
	region.for_shared_memory = (DAT_SHARED_MEMORY){ at, &name };
	register_target(DAT_MEM_TYPE_SHARED_VIRTUAL, region, LARGE, at, &context);
	close(fd);
	together();
}

void post_receive(void)
{
	DAT_LMR_TRIPLET to = { .virtual_address = (uintptr_t)in, .segment_length = LARGE,
			       .lmr_context = lmr_context };
	static const DAT_DTO_COOKIE cookie;

	good(dat_ep_post_recv(ep, 1, &to, cookie, DAT_COMPLETION_DEFAULT_FLAG),
	     "dat_ep_post_recv");
}

void post(size_t size, bool write)
{
	DAT_LMR_TRIPLET from = { .virtual_address = (uintptr_t)out, .segment_length = size,
				 .lmr_context = lmr_context };
	DAT_RMR_TRIPLET to = { .virtual_address = shared->target[!me], .segment_length = size,
			       .rmr_context = shared->context[!me] };
	static const DAT_DTO_COOKIE cookie;

	posted++;
	if (write)
		good(dat_ep_post_rdma_write(ep, 1, &from, cookie, &to, DAT_COMPLETION_DEFAULT_FLAG),
		     "dat_ep_post_rdma_write");
	else
		good(dat_ep_post_send(ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG),
		     "dat_ep_post_send");
}

/* Takes what is there, or waits for it. */
void poll_once(void)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVD_HANDLE triggered;
	DAT_EVENT event;
	DAT_COUNT more;

	if (waits) {
		good(dat_evd_wait(evd, DAT_TIMEOUT_INFINITE, 1, &event, &more), "dat_evd_wait");
	} else if (dat_evd_dequeue(evd, &event) != DAT_SUCCESS) {
		if (cno)
			good(dat_cno_wait(cno, DAT_TIMEOUT_INFINITE, &triggered), "dat_cno_wait");
		return;
	}
	dto = &event.event_data.dto_completion_event_data;
	if ((event.event_number != DAT_DTO_COMPLETION_EVENT &&
	     event.event_number != (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT) ||
	    dto->status != DAT_DTO_SUCCESS)
		fail("completion", "not a success");
	if (dto->operation == DAT_DTO_RECEIVE) {
		received++;
		spent++;
	} else {
		completed++;
	}
}

void renew(void)
{
	for (; spent; spent--)
		post_receive();
}

DAT_EVENT wait_for(DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;
	DAT_COUNT more;

	good(dat_evd_wait(conn_evd, 20000000, 1, &event, &more), "dat_evd_wait");
	if (event.event_number != number)
		fail("connection", "not the event that was expected");
	return event;
}

static void own_address(struct sockaddr_in *to)
{
	DAT_IA_ATTR attr;

	good(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	memcpy(to, attr.ia_address_ptr, sizeof *to);
}

void listen_any(DAT_PSP_HANDLE *psp)
{
	DAT_CONN_QUAL port;

	good(dat_psp_create_any(ia, &port, conn_evd, DAT_PSP_CONSUMER_FLAG, psp),
	     "dat_psp_create_any");
	shared->port = port;
}

void connect_ep(DAT_EP_HANDLE from)
{
	struct sockaddr_in to;

	own_address(&to);
	good(dat_ep_connect(from, (DAT_IA_ADDRESS_PTR)&to, shared->port, 20000000, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG), "dat_ep_connect");
}
