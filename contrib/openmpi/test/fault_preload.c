/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_preload.c - makes calls of the component fail (LD_PRELOAD, for the script faults). FAULT_CALL names
 * the function. FAULT_AT is the number of the first call that fails, counted from 1, and FAULT_LAST that of
 * the last one (default: FAULT_AT). FAULT_RANK is the rank in which they fail (default: all). Of calls to
 * the C library, only those by the component are counted. If FAULT_COUNT names a file, each of these ranks
 * appends to it, at exit, a line for each function: its name and the number of calls. */
#include <dat/udat.h>
#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FUNCTIONS(X) \
	X(calloc) X(malloc) X(mmap) X(getifaddrs) \
	X(dat_registry_list_providers) X(dat_ia_open) X(dat_ia_query) X(dat_pz_create) X(dat_evd_create) \
	X(dat_evd_resize) X(dat_lmr_create) X(dat_psp_create_any) X(dat_srq_create) X(dat_srq_query) \
	X(dat_srq_post_recv) X(dat_ep_create) X(dat_ep_create_with_srq) X(dat_ep_connect) X(dat_cr_query) \
	X(dat_cr_accept) X(dat_ep_post_recv) X(dat_ep_post_send) X(dat_ep_post_rdma_write) X(dat_ep_post_rdma_read)

enum function {
#define ID(name) CALL_##name,
	FUNCTIONS(ID)
	CALLS
};

static const char *const names[CALLS] = {
#define NAME(name) [CALL_##name] = #name,
	FUNCTIONS(NAME)
};

static unsigned calls[CALLS], first, last;
static enum function chosen = CALLS;
static bool counting;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("FAULT_AT"), *to = getenv("FAULT_LAST");
	const char *call = getenv("FAULT_CALL"), *where = getenv("FAULT_RANK");
	const char *rank = getenv("OMPI_COMM_WORLD_RANK");

	first = at ? (unsigned)strtoul(at, NULL, 10) : 0;
	last = to ? (unsigned)strtoul(to, NULL, 10) : first;
	for (chosen = 0; chosen < CALLS && call && strcmp(names[chosen], call) != 0;)
		chosen++;
	counting = rank && (!where || !strcmp(rank, where));
}

__attribute__((destructor)) static void end(void)
{
	const char *report = counting ? getenv("FAULT_COUNT") : NULL;
	FILE *file = report ? fopen(report, "ae") : NULL;

	for (int i = 0; file && i < CALLS; i++)
		fprintf(file, "%s %u\n", names[i], calls[i]);
	if (file)
		fclose(file);
}

static bool fails(enum function function)
{
	unsigned call = counting ? __atomic_add_fetch(&calls[function], 1, __ATOMIC_RELAXED) : 0;

	return call && call >= first && call <= last && function == chosen;
}

static bool is_component(const void *caller)
{
	Dl_info info;

	return counting && dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "mca_btl_udapl");
}

#define NEXT(name)	((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAILS_HERE(name)	(is_component(__builtin_return_address(0)) && fails(CALL_##name))

/* --- the C library --------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);

void *malloc(size_t size)
{
	return FAILS_HERE(malloc) ? errno = ENOMEM, NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return FAILS_HERE(calloc) ? errno = ENOMEM, NULL : __libc_calloc(n, size);
}

void *mmap(void *address, size_t length, int protection, int flags, int fd, off_t offset)
{
	return FAILS_HERE(mmap) ? errno = ENOMEM, MAP_FAILED
			   : NEXT(mmap)(address, length, protection, flags, fd, offset);
}

int getifaddrs(struct ifaddrs **all)
{
	return FAILS_HERE(getifaddrs) ? errno = EMFILE, -1 : NEXT(getifaddrs)(all);
}

/* --- libdat2 ----------------------------------------------------------------------------------------- */

/* Returns the function of libdat2. RTLD_NEXT does not find it if libdat2 was loaded with the component. */
static void *original(const char *name)
{
	return dlsym(dlopen("libdat2.so.2", RTLD_LAZY | RTLD_NOLOAD), name);
}

#define WRAP(name, parameters, arguments) \
	DAT_RETURN name parameters \
	{ \
		if (fails(CALL_##name)) \
			return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY; \
		return ((__typeof__(&name))original(#name)) arguments; \
	}

WRAP(dat_registry_list_providers, (DAT_COUNT room, DAT_COUNT *returned, DAT_PROVIDER_INFO *list[]),
     (room, returned, list))
WRAP(dat_ia_query, (DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *attr,
		    DAT_PROVIDER_ATTR_MASK mask, DAT_PROVIDER_ATTR *provider), (ia, evd, ia_mask, attr, mask, provider))
WRAP(dat_pz_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz), (ia, pz))
WRAP(dat_evd_create, (DAT_IA_HANDLE ia, DAT_COUNT qlen, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
		      DAT_EVD_HANDLE *evd), (ia, qlen, cno, flags, evd))
WRAP(dat_evd_resize, (DAT_EVD_HANDLE evd, DAT_COUNT qlen), (evd, qlen))
WRAP(dat_lmr_create, (DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
		      DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS may, DAT_VA_TYPE va_type, DAT_LMR_HANDLE *lmr,
		      DAT_LMR_CONTEXT *context, DAT_RMR_CONTEXT *remote, DAT_VLEN *size, DAT_VADDR *address),
     (ia, type, region, length, pz, may, va_type, lmr, context, remote, size, address))
WRAP(dat_psp_create_any, (DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
			  DAT_PSP_HANDLE *psp), (ia, qual, evd, flags, psp))
WRAP(dat_srq_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *srq),
     (ia, pz, attr, srq))
WRAP(dat_srq_query, (DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM_MASK mask, DAT_SRQ_PARAM *param), (srq, mask, param))
WRAP(dat_srq_post_recv, (DAT_SRQ_HANDLE srq, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie),
     (srq, n, local, cookie))
WRAP(dat_ep_create, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
		     DAT_EVD_HANDLE conn, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep),
     (ia, pz, recv, request, conn, attr, ep))
WRAP(dat_ep_create_with_srq, (DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			      DAT_EVD_HANDLE conn, DAT_SRQ_HANDLE srq, const DAT_EP_ATTR *attr,
			      DAT_EP_HANDLE *ep), (ia, pz, recv, request, conn, srq, attr, ep))
WRAP(dat_ep_connect, (DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR to, DAT_CONN_QUAL qual, DAT_TIMEOUT timeout,
		      DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags),
     (ep, to, qual, timeout, size, data, qos, flags))
WRAP(dat_cr_query, (DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param), (cr, mask, param))
WRAP(dat_cr_accept, (DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data),
     (cr, ep, size, data))
WRAP(dat_ep_post_recv, (DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags), (ep, n, local, cookie, flags))
WRAP(dat_ep_post_send, (DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			DAT_COMPLETION_FLAGS flags), (ep, n, local, cookie, flags))
WRAP(dat_ep_post_rdma_write, (DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			      const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags),
     (ep, n, local, cookie, remote, flags))
WRAP(dat_ep_post_rdma_read, (DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *local, DAT_DTO_COOKIE cookie,
			     const DAT_RMR_TRIPLET *remote, DAT_COMPLETION_FLAGS flags),
     (ep, n, local, cookie, remote, flags))

/* dat_ia_open() is a macro that calls this function. */
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *evd, DAT_IA_HANDLE *ia,
			DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN thread_safe)
{
	if (fails(CALL_dat_ia_open))
		return DAT_CLASS_ERROR | DAT_INSUFFICIENT_RESOURCES | DAT_RESOURCE_MEMORY;
	return ((__typeof__(&dat_ia_openv))original("dat_ia_openv"))(name, qlen, evd, ia, major, minor, thread_safe);
}
