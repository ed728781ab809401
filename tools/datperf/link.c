/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - makes and frees a link: its memory, EVDs, endpoints and SRQ (link.h). transfer.c
 * posts requests, connect.c connects the endpoints. */
#include "link.h"
#include "../call.h"
#include "../cli.h"
#include "../messages.h"
#include <dat/dat_ib_extensions.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Returns the bytes of the memory: the areas `out`, `in` and the target. */
static size_t memory_size(const struct link *l)
{
	return 3 * l->block;
}

/* --- memory ------------------------------------------------------------------ */

/* Returns the descriptor of a memory file that cannot shrink, for a shared mapping, or -1. */
static int nameless_file(size_t size)
{
	int fd = memfd_create("datperf", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, (off_t)size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static DAT_MEM_PRIV_FLAGS rights(const struct link *l)
{
	return (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
				    (l->adapter->atomics ? DAT_IB_MEM_PRIV_REMOTE_ATOMIC : 0));
}

static DAT_RETURN register_memory(struct link *l, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region)
{
	DAT_VLEN length;
	DAT_VADDR start;

	return dat_lmr_create(l->adapter->ia, type, region, memory_size(l), l->adapter->pz, rights(l),
			      DAT_VA_TYPE_VA, &l->lmr, &l->lmr_context, &l->rmr_context, &length,
			      &start);
}

/* Registers shared memory, under a name that no other link of any process has. */
static DAT_RETURN register_shared(struct link *l)
{
	char name[DAT_LMR_COOKIE_SIZE] = "";
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { l->out, &name } };

	snprintf(name, sizeof name, "datperf %ld.%u", (long)getpid(), l->index);
	return register_memory(l, DAT_MEM_TYPE_SHARED_VIRTUAL, region);
}

/* Creates memory of the host. If the adapter does not accept it as shared memory, registers it without
 * that. */
static void create_host_memory(struct link *l, bool private)
{
	int fd = private ? -1 : nameless_file(memory_size(l));
	DAT_REGION_DESCRIPTION region;
	DAT_RETURN ret;

	l->out = mmap(NULL, memory_size(l), PROT_READ | PROT_WRITE,
		      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (l->out == MAP_FAILED)
		fail("no memory for 3 x %zu bytes", l->block);
	memset(l->out, 0, memory_size(l));
	region.for_va = l->out;
	messages_hold();
	l->shared = fd >= 0 && register_shared(l) == DAT_SUCCESS;
	messages_release(!l->shared);
	if (fd >= 0)
		close(fd);
	if (l->shared)
		return;
	messages_hold();
	ret = register_memory(l, DAT_MEM_TYPE_VIRTUAL, region);
	if (ret != DAT_SUCCESS)
		munmap(l->out, memory_size(l));
	good_held(ret, "dat_lmr_create");
}

void link_open(struct link *l, const struct adapter *a, unsigned index, enum memory_kind kind, size_t block)
{
	*l = (struct link){ .adapter = a, .index = index, .kind = kind, .block = block, .most = LINK_DEPTH,
			    .depth = LINK_DEPTH };
	create_host_memory(l, kind != MEMORY_SHARED);
	l->in = l->out + block;
	good_call(dat_cno_create(a->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &l->cno), "dat_cno_create");
}

void link_close(struct link *l)
{
	good(dat_lmr_free(l->lmr), "dat_lmr_free");
	good(dat_cno_free(l->cno), "dat_cno_free");
	munmap(l->out, memory_size(l));
}

static void create_target(struct link *l, unsigned threads)
{
	if (l->kind == MEMORY_DEVICE)
		target_open_device(&l->target, l->adapter, threads, l->block, rights(l));
	else
		l->target = (struct target){ .size = l->block,
					     .at = l->in + l->block,
					     .address = (uintptr_t)(l->in + l->block),
					     .lmr_context = l->lmr_context,
					     .rmr_context = l->rmr_context };
}

/* --- endpoints --------------------------------------------------------------- */

DAT_EVD_HANDLE link_create_evd(struct link *l, DAT_COUNT length, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	good_call(dat_evd_create(l->adapter->ia, length, DAT_HANDLE_NULL, flags, &evd),
		  "dat_evd_create");
	return evd;
}

/* Creates the EVD of requests, or that of receives. Both trigger the CNO. */
static DAT_EVD_HANDLE create_transfer_evd(struct link *l)
{
	bool extensions = l->adapter->atomics || l->adapter->immediate;
	DAT_EVD_HANDLE evd = link_create_evd(
		l, 2 * (DAT_COUNT)(l->most * l->count),
		(DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG | (extensions ? DAT_IB_EVD_EXTENSION_FLAG : 0)));

	good(dat_evd_modify_cno(evd, l->cno), "dat_evd_modify_cno");
	return evd;
}

static void create_srq(struct link *l)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = (DAT_COUNT)(l->most * l->count),
			      .max_recv_iov = 1,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };

	good_call(dat_srq_create(l->adapter->ia, l->adapter->pz, &attr, &l->srq), "dat_srq_create");
}

static void create_endpoint(struct link *l, struct endpoint *e)
{
	const struct adapter *a = l->adapter;
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = l->block,
		.max_rdma_size = l->block,
		.qos = DAT_QOS_BEST_EFFORT,
		.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,
		.max_recv_dtos = (DAT_COUNT)l->most,
		.max_request_dtos = (DAT_COUNT)l->most,
		.max_recv_iov = 1,
		.max_request_iov = 1,
		.max_rdma_read_in = a->reads,
		.max_rdma_read_out = a->reads,
		.max_rdma_read_iov = 1,
		.max_rdma_write_iov = 1,
	};

	if (l->srq)
		good_call(dat_ep_create_with_srq(a->ia, a->pz, l->recv, l->request, l->conn, l->srq,
						 &attr, &e->ep),
			  "dat_ep_create_with_srq");
	else
		good_call(dat_ep_create(a->ia, a->pz, l->recv, l->request, l->conn, &attr, &e->ep),
			  "dat_ep_create");
	for (unsigned i = 0; i < l->most; i++)
		link_post_receive(l, e);
}

void link_create_endpoints(struct link *l, unsigned threads, unsigned count, unsigned most, bool srq)
{
	l->most = most;
	create_target(l, threads);
	l->endpoints = calloc(count, sizeof *l->endpoints);
	if (!l->endpoints)
		fail("no memory for %u endpoints", count);
	l->count = count;
	l->turn = l->from = l->unfinished = 0;
	/* the connection of an endpoint has two events, with some adapters three */
	l->conn = link_create_evd(l, 4 * (DAT_COUNT)count, DAT_EVD_CONNECTION_FLAG);
	l->probe_conn = link_create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	l->request = create_transfer_evd(l);
	l->recv = create_transfer_evd(l);
	if (srq)
		create_srq(l);
	for (unsigned i = 0; i < count; i++)
		create_endpoint(l, &l->endpoints[i]);
}

void link_free_evd(DAT_EVD_HANDLE *evd)
{
	if (*evd)
		good(dat_evd_free(*evd), "dat_evd_free");
	*evd = DAT_HANDLE_NULL;
}

void link_free_endpoints(struct link *l)
{
	for (unsigned i = 0; i < l->count; i++)
		if (l->endpoints[i].ep)
			good(dat_ep_free(l->endpoints[i].ep), "dat_ep_free");
	free(l->endpoints);
	l->endpoints = NULL;
	l->count = 0;
	if (l->probe)
		good(dat_ep_free(l->probe), "dat_ep_free");
	l->probe = DAT_HANDLE_NULL;
	if (l->srq)
		good(dat_srq_free(l->srq), "dat_srq_free");
	l->srq = DAT_HANDLE_NULL;
	link_free_evd(&l->recv);
	link_free_evd(&l->request);
	link_free_evd(&l->conn);
	link_free_evd(&l->probe_conn);
	datagrams_close(l);
	l->has_message = false;
	target_close(&l->target);
}
