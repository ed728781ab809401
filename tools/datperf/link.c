/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - opening and closing of a link, its memory (link.h). Requests are transfer.c's job,
 * connections connect.c's. */
#include "device_memory.h"
#include "link.h"
#include "../cli.h"
#include <dat/dat_ib_extensions.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MEMORY = 3 * LINK_BLOCK };

void good(DAT_RETURN rc, const char *call)
{
	const char *major = "?", *minor = "";

	if (rc == DAT_SUCCESS)
		return;
	dat_strerror(rc, &major, &minor);
	fail("%s: %s %s", call, major, minor);
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Of a file without a name that can't shrink, for a shared mapping; -1: there is none. */
static int nameless_file(void)
{
	int fd = memfd_create("datperf", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && !ftruncate(fd, MEMORY) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static DAT_MEM_PRIV_FLAGS rights(const struct link *l)
{
	return (DAT_MEM_PRIV_FLAGS)(DAT_MEM_PRIV_ALL_FLAG |
				    (l->atomics ? DAT_IB_MEM_PRIV_REMOTE_ATOMIC : 0));
}

static DAT_RETURN register_memory(struct link *l, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region)
{
	DAT_VLEN length;
	DAT_VADDR start;

	return dat_lmr_create(l->ia, type, region, MEMORY, l->pz, rights(l),
		DAT_VA_TYPE_VA, &l->lmr, &l->lmr_context, &l->rmr_context, &length, &start);
}

/* Under a name that no other process has. */
static DAT_RETURN register_shared(struct link *l)
{
	char name[DAT_LMR_COOKIE_SIZE] = "";
	DAT_REGION_DESCRIPTION region = { .for_shared_memory = { l->out, &name } };

	snprintf(name, sizeof name, "datperf %ld", (long)getpid());
	return register_memory(l, DAT_MEM_TYPE_SHARED_VIRTUAL, region);
}

/* What an adapter does not take as shared memory is registered as any other. */
static void create_host_memory(struct link *l, bool private)
{
	int fd = private ? -1 : nameless_file();
	DAT_REGION_DESCRIPTION region;

	l->out = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
		      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
	if (l->out == MAP_FAILED)
		fail("no memory");
	memset(l->out, 0, MEMORY);
	region.for_va = l->out;
	l->shared = fd >= 0 && register_shared(l) == DAT_SUCCESS;
	if (!l->shared)
		good(register_memory(l, DAT_MEM_TYPE_VIRTUAL, region), "dat_lmr_create");
	if (fd >= 0)
		close(fd);
}

static void create_memory(struct link *l, enum memory_kind kind)
{
	if (kind == MEMORY_DEVICE)
		device_memory_take(l, MEMORY, rights(l));
	else
		create_host_memory(l, kind == MEMORY_PRIVATE);
	l->in = l->out + LINK_BLOCK;
	l->target = l->in + LINK_BLOCK;
}

static DAT_EVD_HANDLE create_evd(struct link *l, DAT_COUNT length, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	good(dat_evd_create(l->ia, length, DAT_HANDLE_NULL, flags, &evd), "dat_evd_create");
	return evd;
}

/* What the IA has beyond DAT itself. */
static void find_features(struct link *l)
{
	DAT_IA_ATTR ia;
	DAT_PROVIDER_ATTR provider;

	good(dat_ia_query(l->ia, NULL, DAT_IA_FIELD_ALL, &ia, DAT_PROVIDER_FIELD_ALL, &provider),
	     "dat_ia_query");
	l->reads = ia.max_rdma_read_per_ep_out < LINK_READS ? ia.max_rdma_read_per_ep_out
							    : LINK_READS;
	if (ia.max_rdma_read_per_ep_in < l->reads)
		l->reads = ia.max_rdma_read_per_ep_in;
	for (int i = 0; i < provider.num_provider_specific_attr; i++) {
		const char *name = provider.provider_specific_attr[i].name;

		l->atomics |= !strcmp(name, DAT_IB_ATTR_FETCH_AND_ADD);
		l->immediate |= !strcmp(name, DAT_IB_ATTR_IMMED_DATA);
	}
}

static DAT_EVD_FLAGS dto_flags(const struct link *l)
{
	return (DAT_EVD_FLAGS)(DAT_EVD_DTO_FLAG |
			       (l->atomics || l->immediate ? DAT_IB_EVD_EXTENSION_FLAG : 0));
}

void link_open(struct link *l, const char *ia, enum memory_kind kind)
{
	DAT_RETURN rc;

	*l = (struct link){ .name = ia };
	rc = dat_ia_open((char *)ia, 8, &l->async, &l->ia);
	if (rc != DAT_SUCCESS) {
		char call[DAT_NAME_MAX_LENGTH + 32];
		snprintf(call, sizeof call, "dat_ia_open of %s", ia);
		good(rc, call);
	}
	find_features(l);
	good(dat_pz_create(l->ia, &l->pz), "dat_pz_create");
	good(dat_cno_create(l->ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &l->cno), "dat_cno_create");
	l->cr = create_evd(l, 8, DAT_EVD_CR_FLAG);
	l->conn = create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	l->probe_conn = create_evd(l, 8, DAT_EVD_CONNECTION_FLAG);
	l->request = create_evd(l, 2 * LINK_DEPTH, dto_flags(l));
	l->recv = create_evd(l, 2 * LINK_DEPTH, dto_flags(l));
	good(dat_evd_modify_cno(l->request, l->cno), "dat_evd_modify_cno");
	good(dat_evd_modify_cno(l->recv, l->cno), "dat_evd_modify_cno");
	create_memory(l, kind);
}

void link_address(struct link *l, struct sockaddr_storage *address)
{
	DAT_IA_ATTR attr;
	const struct sockaddr *own;

	good(dat_ia_query(l->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), "dat_ia_query");
	own = (const struct sockaddr *)attr.ia_address_ptr;
	memset(address, 0, sizeof *address);
	memcpy(address, own,
	       own->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					  : sizeof(struct sockaddr_in));
}

void link_close(struct link *l)
{
	good(dat_lmr_free(l->lmr), "dat_lmr_free");
	if (l->dm)
		device_memory_free(l);
	if (l->psp)
		good(dat_psp_free(l->psp), "dat_psp_free");
	good(dat_evd_free(l->recv), "dat_evd_free");
	good(dat_evd_free(l->request), "dat_evd_free");
	good(dat_evd_free(l->conn), "dat_evd_free");
	good(dat_evd_free(l->probe_conn), "dat_evd_free");
	good(dat_cno_free(l->cno), "dat_cno_free");
	good(dat_evd_free(l->cr), "dat_evd_free");
	good(dat_pz_free(l->pz), "dat_pz_free");
	good(dat_ia_close(l->ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	if (!l->dm)
		munmap(l->out, MEMORY);
}
