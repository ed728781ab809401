/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reload.c - a program that loads libdat2 itself: after it closed the IA and the library,
 * nothing of ours is left, and it can begin anew as often as it likes. */
#include "life.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What life.c calls: here each call is looked up in the library that is just loaded. */
static void *library;
#define CALL(function, ...) ((__typeof__(&function))find(#function))(__VA_ARGS__)

static void *find(const char *name)
{
	void *function = dlsym(library, name);

	if (!function)
		fail("%s: %s", name, dlerror());
	return function;
}

DAT_RETURN dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{ return CALL(dat_strerror, ret, major, minor); }
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async, DAT_IA_HANDLE *ia,
			DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{ return CALL(dat_ia_openv, name, qlen, async, ia, major, minor, safe); }
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags)
{ return CALL(dat_ia_close, ia, flags); }
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *evd, DAT_IA_ATTR_MASK mask, DAT_IA_ATTR *attr,
			DAT_PROVIDER_ATTR_MASK pmask, DAT_PROVIDER_ATTR *pattr)
{ return CALL(dat_ia_query, ia, evd, mask, attr, pmask, pattr); }
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{ return CALL(dat_pz_create, ia, pz); }
DAT_RETURN dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT n, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{ return CALL(dat_evd_create, ia, n, cno, flags, evd); }
DAT_RETURN dat_evd_wait(DAT_EVD_HANDLE evd, DAT_TIMEOUT t, DAT_COUNT n, DAT_EVENT *event, DAT_COUNT *more)
{ return CALL(dat_evd_wait, evd, t, n, event, more); }
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qual, DAT_EVD_HANDLE evd, DAT_PSP_FLAGS flags,
			      DAT_PSP_HANDLE *psp)
{ return CALL(dat_psp_create_any, ia, qual, evd, flags, psp); }
DAT_RETURN dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length,
			  DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS flags, DAT_VA_TYPE va, DAT_LMR_HANDLE *lmr,
			  DAT_LMR_CONTEXT *local, DAT_RMR_CONTEXT *remote, DAT_VLEN *size, DAT_VADDR *at)
{ return CALL(dat_lmr_create, ia, type, region, length, pz, flags, va, lmr, local, remote, size, at); }
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request,
			 DAT_EVD_HANDLE conn, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{ return CALL(dat_ep_create, ia, pz, recv, request, conn, attr, ep); }
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR address, DAT_CONN_QUAL qual, DAT_TIMEOUT t,
			  DAT_COUNT n, const DAT_PVOID data, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{ return CALL(dat_ep_connect, ep, address, qual, t, n, data, qos, flags); }
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT n, const DAT_PVOID data)
{ return CALL(dat_cr_accept, cr, ep, n, data); }
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags)
{ return CALL(dat_ep_post_recv, ep, n, iov, cookie, flags); }
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
			    DAT_COMPLETION_FLAGS flags)
{ return CALL(dat_ep_post_send, ep, n, iov, cookie, flags); }
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT n, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
				  const DAT_RMR_TRIPLET *there, DAT_COMPLETION_FLAGS flags)
{ return CALL(dat_ep_post_rdma_write, ep, n, iov, cookie, there, flags); }

/* --- what is left -------------------------------------------------------------------------- */

static bool mapped(const char *what)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[600];

	while (fgets(line, sizeof line, maps))
		found |= strstr(line, what) != NULL;
	fclose(maps);
	return found;
}

static void load(void)
{
	library = dlopen(life_library("libdat2.so.2"), RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fail("%s", dlerror());
}

static size_t in_use(void)
{
	return mallinfo2().uordblks;
}

static void nothing_is_left(void)
{
	int descriptors = open_descriptors();
	size_t memory = 0;

	for (int i = 0; i < 50; i++) {
		load();
		whole_session();
		EXPECT(!mapped("libdapl"));
		/* a thread that was joined is still listed for a moment */
		for (int j = 0; count_threads("dapl") && j < 1000; j++)
			usleep(1000);
		EXPECT(!count_threads("dapl"));
		dlclose(library);
		EXPECT(!mapped("libdat2"));
		if (open_descriptors() != descriptors)
			fail("round %d: %d descriptors, %d at the beginning", i, open_descriptors(),
			     descriptors);
		if (i == 9)
			memory = in_use();
	}
	if (!SANITIZED && in_use() > memory + 16384)
		fail("%zu bytes in use after 50 rounds, %zu after 10", in_use(), memory);
}

/* The library stays loaded, the provider comes and goes. */
static void the_provider_comes_and_goes(void)
{
	int descriptors = open_descriptors();
	size_t memory = 0;

	load();
	for (int i = 0; i < 50; i++) {
		whole_session();
		EXPECT(!mapped("libdapl"));
		EXPECT(open_descriptors() == descriptors);
		if (i == 9)
			memory = in_use();
	}
	if (!SANITIZED && in_use() > memory + 16384)
		fail("%zu bytes in use after 50 rounds, %zu after 10", in_use(), memory);
	dlclose(library);
}

/* What programs do that forget to close the IA. */
static void unloading_with_an_open_ia(void)
{
	static struct session s;

	load();
	OK(session_open(&s, MOMENT));
	EXPECT(session_exchange(&s, 1));
	dlclose(library);
	usleep(50000);
}

static const struct life_case cases[] = {
	CASE(nothing_is_left),
	CASE(the_provider_comes_and_goes),
	CASE(unloading_with_an_open_ia),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
