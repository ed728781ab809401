/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reload.c - a program that loads libdat2 itself: after it closed the IA and the library, nothing of the
 * libraries is left, and it can load them again, as often as it likes. */
#include "life.h"
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The DAT calls of life.c. Each is looked up in the library that is loaded at the time. */
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

/* --- how often ----------------------------------------------------------------------------- */

/* LIFE_ROUNDS is for emulated machines, where a round takes a good part of a second. */
static int rounds(void)
{
	const char *given = getenv("LIFE_ROUNDS");

	return given ? atoi(given) : SANITIZED ? 50 : 1000;
}

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

static void expect_same_descriptors(int before, int round)
{
	if (open_descriptors() != before)
		fail("%d descriptors after round %d, %d before:%s", open_descriptors(), round, before,
		     what_is_open());
}

/* Freed memory that the C library keeps for its threads (tcache), and the freed objects that the
 * registry keeps, count as in use. About 300 rounds fill both, more on a busy machine. In the 500
 * rounds that are then compared, a leak of 17 bytes a round exceeds MEMORY_GROWTH, each time. */
enum { FILL_CACHES = 400 /* rounds */, MEMORY_GROWTH = 8192 /* bytes */, COMPARISONS = 3 };

static size_t bytes_in_use(void)
{
	return mallinfo2().uordblks;
}

static void repeat_sessions(void (*session)(void))
{
	int n = rounds(), descriptors = open_descriptors();
	bool compared = !SANITIZED && n / 2 >= FILL_CACHES;
	size_t before, now = 0;
	int round = 0, part = 0;

	do {
		for (int last = round + n / 2; round < last;) {
			session();
			expect_same_descriptors(descriptors, ++round);
		}
		before = now;
		now = bytes_in_use();
	} while (part++ == 0 || (compared && now > before + MEMORY_GROWTH && part <= COMPARISONS));
	if (compared && now > before + MEMORY_GROWTH)
		fail("%zu bytes in use after round %d, %zu after round %d", now, round, before, round - n / 2);
}

static void use_a_fresh_library(void)
{
	load();
	whole_session();
	EXPECT(!mapped("libdapl"));
	/* a thread that was joined is still listed for a moment */
	for (int i = 0; count_threads("dapl") && i < 1000; i++)
		usleep(1000);
	EXPECT(!count_threads("dapl"));
	dlclose(library);
	EXPECT(!mapped("libdat2"));
}

static void nothing_is_left(void)
{
	repeat_sessions(use_a_fresh_library);
}

static void use_a_fresh_provider(void)
{
	whole_session();
	EXPECT(!mapped("libdapl"));
}

/* The library stays loaded. The provider is loaded and unloaded in each round. */
static void the_provider_comes_and_goes(void)
{
	load();
	repeat_sessions(use_a_fresh_provider);
	dlclose(library);
}

/* A program that does not close its IA unloads the library all the same. */
static void unloading_with_an_open_ia_does_no_harm(void)
{
	static struct session s;

	load();
	OK(session_open(&s, MOMENT));
	EXPECT(session_exchange(&s, 1));
	dlclose(library);
	usleep(50000);
}

/* --- many rounds --------------------------------------------------------------------------- */

/* RSS_GROWTH: pages; with the fewest rounds that compare, 650 bytes a round. */
enum { WARM_UP = 100, COMPARE_RSS = 500, RSS_GROWTH = 64 };

static bool rss_is_compared(void)
{
	return !SANITIZED && rounds() >= COMPARE_RSS;
}

static long resident_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long total, resident;

	if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2)
		fail("/proc/self/statm cannot be read");
	fclose(file);
	return resident;
}

static DAT_IA_HANDLE open_ia(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	OK(dat_ia_openv(LIFE_IA, 8, &async, &ia, 2, 0, DAT_FALSE));
	return ia;
}

static void close_ia(DAT_IA_HANDLE ia)
{
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* The first round may leave descriptors open: those of librdmacm, which stays loaded. Later
 * rounds may not. Resident memory settles in the first WARM_UP rounds. */
static void repeat(void (*round)(void))
{
	int n = rounds(), descriptors;
	long pages = 0;

	if (n < 2)
		fail("LIFE_ROUNDS is %d; expected at least 2", n);
	round();
	descriptors = open_descriptors();
	for (int i = 2; i <= n; i++) {
		round();
		expect_same_descriptors(descriptors, i);
		if (i == WARM_UP)
			pages = resident_pages();
	}
	if (rss_is_compared() && resident_pages() > pages + RSS_GROWTH)
		fail("%ld resident pages after round %d, %ld after round %d", resident_pages(), n,
		     pages, WARM_UP);
}

static void open_and_close(void)
{
	close_ia(open_ia());
}

static void load_open_close_and_unload(void)
{
	load();
	open_and_close();
	dlclose(library);
}

static void loading_many_times(void)
{
	repeat(load_open_close_and_unload);
}

static void opening_many_times(void)
{
	load();
	repeat(open_and_close);
}

static void loading_many_times_beside_an_ia(void)
{
	DAT_IA_HANDLE ia;

	load();
	ia = open_ia();
	repeat(load_open_close_and_unload);
	close_ia(ia);
}

static void opening_many_times_beside_an_ia(void)
{
	DAT_IA_HANDLE ia;

	load();
	ia = open_ia();
	repeat(open_and_close);
	close_ia(ia);
}

static const struct life_case cases[] = {
	CASE(nothing_is_left),
	CASE(loading_many_times),
	CASE(opening_many_times),
	CASE(loading_many_times_beside_an_ia),
	CASE(opening_many_times_beside_an_ia),
	CASE(the_provider_comes_and_goes),
	CASE(unloading_with_an_open_ia_does_no_harm),
};

int main(int argc, char **argv)
{
	printf("# many times: %d rounds; descriptors are compared after each, resident memory %s\n",
	       rounds(), rss_is_compared() ? "at the end" : "is not (too few rounds)");
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
