/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional_object.c - functional tests of opening, endpoints, protection zones and memory: the life of
 * objects, and calls with objects that are in use or were freed. */
#include "functional.h"
#include <stdlib.h>

enum { BUFFER = 4096 };

static DAT_RETURN create_ep(struct functional *f, DAT_PZ_HANDLE pz, DAT_EP_HANDLE *ep)
{
	return dat_ep_create(f->adapter.ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL, NULL, ep);
}

static DAT_RETURN create_lmr(struct functional *f, void *start, size_t length, DAT_PZ_HANDLE pz, DAT_LMR_HANDLE *lmr)
{
	DAT_REGION_DESCRIPTION region = { .for_va = start };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	DAT_VLEN registered;
	DAT_VADDR address;

	return dat_lmr_create(f->adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, DAT_MEM_PRIV_ALL_FLAG,
			      DAT_VA_TYPE_VA, lmr, &context, &remote, &registered, &address);
}

/* --- hwconn ------------------------------------------------------------------- */

static bool open_and_close(struct functional *f)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = DAT_HANDLE_NULL;

	EXPECT_TYPE(dat_ia_open((char *)f->o->device, 8, &async, &ia), DAT_SUCCESS);
	EXPECT(ia != DAT_HANDLE_NULL && async != DAT_HANDLE_NULL);
	EXPECT_TYPE(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	EXPECT_TYPE(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
	return true;
}

static bool open_unknown_names(struct functional *f)
{
	static const char *const names[] = { "40", "x", "xsdf", "x34", "34x" };
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;

	(void)f;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		async = DAT_HANDLE_NULL;
		EXPECT_TYPE(dat_ia_open((char *)names[i], 8, &async, &ia), DAT_PROVIDER_NOT_FOUND);
	}
	return true;
}

static bool close_null(struct functional *f)
{
	(void)f;
	EXPECT_TYPE(dat_ia_close(DAT_HANDLE_NULL, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_HANDLE);
	return true;
}

static bool close_with_endpoint(struct functional *f)
{
	DAT_EP_HANDLE ep;

	EXPECT_TYPE(create_ep(f, f->adapter.pz, &ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_ia_close(f->adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE);
	EXPECT_TYPE(dat_ep_free(ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(f->adapter.pz), DAT_SUCCESS);
	EXPECT_TYPE(dat_ia_close(f->adapter.ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_SUCCESS);
	f->adapter.ia = DAT_HANDLE_NULL;
	return true;
}

static bool close_abruptly_with_endpoint(struct functional *f)
{
	DAT_EP_HANDLE ep;

	EXPECT_TYPE(create_ep(f, f->adapter.pz, &ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_ia_close(f->adapter.ia, DAT_CLOSE_ABRUPT_FLAG), DAT_SUCCESS);
	f->adapter.ia = DAT_HANDLE_NULL;
	return true;
}

/* --- endpoint ----------------------------------------------------------------- */

static bool endpoint_without_evds(struct functional *f)
{
	DAT_EP_HANDLE ep;
	DAT_EP_STATE state;

	EXPECT_TYPE(create_ep(f, f->adapter.pz, &ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_ep_get_status(ep, &state, NULL, NULL), DAT_SUCCESS);
	EXPECT(state == DAT_EP_STATE_UNCONNECTED);
	EXPECT_TYPE(dat_ep_free(ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_ep_free(ep), DAT_INVALID_HANDLE);
	return true;
}

static bool endpoint_with_freed_pz(struct functional *f)
{
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	EXPECT_TYPE(dat_pz_create(f->adapter.ia, &pz), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_SUCCESS);
	EXPECT_TYPE(create_ep(f, pz, &ep), DAT_INVALID_HANDLE);
	return true;
}

static bool endpoint_with_receives(struct functional *f)
{
	struct channel_options o = { .receives = 4, .requests = 4, .segments = 1, .wait = WAIT_BLOCK };
	struct layout l = { 1, BUFFER, BUFFER };
	struct region region;
	struct channel c;

	EXPECT(channel_open(&c, &f->adapter, &o));
	EXPECT(region_create(&region, &f->adapter, BUFFER));
	EXPECT(channel_post_receive(&c, &region, 0, l));
	EXPECT_TYPE(dat_ep_free(c.ep), DAT_SUCCESS);
	c.ep = DAT_HANDLE_NULL;
	EXPECT_TYPE(dat_lmr_free(region.lmr), DAT_SUCCESS);
	region.lmr = DAT_HANDLE_NULL;
	channel_close(&c);
	region_free(&region);
	return true;
}

static bool send_without_connection(struct functional *f)
{
	struct channel_options o = { .receives = 4, .requests = 4, .segments = 1, .wait = WAIT_BLOCK };
	DAT_LMR_TRIPLET from;
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct region region;
	struct channel c;

	EXPECT(channel_open(&c, &f->adapter, &o));
	EXPECT(region_create(&region, &f->adapter, BUFFER));
	from = (DAT_LMR_TRIPLET){ (DAT_VADDR)(uintptr_t)region.start, BUFFER, region.context };
	EXPECT_TYPE(dat_ep_post_send(c.ep, 1, &from, cookie, DAT_COMPLETION_DEFAULT_FLAG), DAT_INVALID_STATE);
	channel_close(&c);
	region_free(&region);
	return true;
}

/* --- pz ----------------------------------------------------------------------- */

static bool create_and_free_pz(struct functional *f)
{
	DAT_PZ_HANDLE pz;

	EXPECT_TYPE(dat_pz_create(f->adapter.ia, &pz), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_INVALID_HANDLE);
	return true;
}

static bool free_pz_of_endpoint(struct functional *f)
{
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;

	EXPECT_TYPE(dat_pz_create(f->adapter.ia, &pz), DAT_SUCCESS);
	EXPECT_TYPE(create_ep(f, pz, &ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_INVALID_STATE);
	EXPECT_TYPE(dat_ep_free(ep), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_SUCCESS);
	return true;
}

static bool free_pz_of_memory(struct functional *f)
{
	static char buffer[BUFFER];
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;

	EXPECT_TYPE(dat_pz_create(f->adapter.ia, &pz), DAT_SUCCESS);
	EXPECT_TYPE(create_lmr(f, buffer, BUFFER, pz, &lmr), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_INVALID_STATE);
	EXPECT_TYPE(dat_lmr_free(lmr), DAT_SUCCESS);
	EXPECT_TYPE(dat_pz_free(pz), DAT_SUCCESS);
	return true;
}

/* --- mem ---------------------------------------------------------------------- */

static bool register_sizes(struct functional *f)
{
	for (size_t size = 1; size <= 16 << 20; size *= 4) {
		char *buffer = malloc(size);
		DAT_LMR_HANDLE lmr;

		EXPECT(buffer);
		EXPECT_TYPE(create_lmr(f, buffer, size, f->adapter.pz, &lmr), DAT_SUCCESS);
		EXPECT_TYPE(dat_lmr_free(lmr), DAT_SUCCESS);
		free(buffer);
	}
	return true;
}

static bool register_again(struct functional *f)
{
	static char buffer[BUFFER];
	DAT_LMR_HANDLE lmr;

	for (int i = 0; i < 2; i++) {
		EXPECT_TYPE(create_lmr(f, buffer, BUFFER, f->adapter.pz, &lmr), DAT_SUCCESS);
		EXPECT_TYPE(dat_lmr_free(lmr), DAT_SUCCESS);
		EXPECT_TYPE(dat_lmr_free(lmr), DAT_INVALID_HANDLE);
	}
	return true;
}

/* Some providers create a region of no bytes, others refuse it. A region that was created can be freed. */
static bool register_nothing(struct functional *f)
{
	static char buffer[BUFFER];
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_RETURN rc = create_lmr(f, buffer, 0, f->adapter.pz, &lmr);

	if (rc == DAT_SUCCESS)
		EXPECT_TYPE(dat_lmr_free(lmr), DAT_SUCCESS);
	else if (DAT_GET_TYPE(rc) != DAT_LENGTH_ERROR)
		EXPECT_TYPE(rc, DAT_INVALID_PARAMETER);
	return true;
}

static bool register_without_pz(struct functional *f)
{
	static char buffer[BUFFER];
	DAT_LMR_HANDLE lmr;

	EXPECT_TYPE(create_lmr(f, buffer, BUFFER, DAT_HANDLE_NULL, &lmr), DAT_INVALID_HANDLE);
	return true;
}

static bool free_null_lmr(struct functional *f)
{
	(void)f;
	EXPECT_TYPE(dat_lmr_free(DAT_HANDLE_NULL), DAT_INVALID_HANDLE);
	return true;
}

/* --- tables ------------------------------------------------------------------- */

#define FEATURE(name, title, cases) \
	const struct feature feature_##name = { #name, title, cases, sizeof (cases) / sizeof *(cases) }

static const struct functional_case hwconn[] = {
	{ "an adapter can be opened and closed, once", open_and_close },
	{ "names that dat.conf does not have cannot be opened", open_unknown_names },
	{ "the null handle cannot be closed", close_null },
	{ "an adapter with an endpoint cannot be closed gracefully", close_with_endpoint },
	{ "an abrupt close frees the endpoint too", close_abruptly_with_endpoint },
};
FEATURE(hwconn, "Hardware connection", hwconn);

static const struct functional_case endpoint[] = {
	{ "an endpoint without EVDs can be created and freed, once", endpoint_without_evds },
	{ "an endpoint cannot be created in a freed PZ", endpoint_with_freed_pz },
	{ "an endpoint with receives posted can be freed, and then their memory", endpoint_with_receives },
	{ "an unconnected endpoint does not send", send_without_connection },
};
FEATURE(endpoint, "EndPoint management", endpoint);

static const struct functional_case pz[] = {
	{ "a PZ can be created and freed, once", create_and_free_pz },
	{ "the PZ of an endpoint cannot be freed", free_pz_of_endpoint },
	{ "the PZ of registered memory cannot be freed", free_pz_of_memory },
};
FEATURE(pz, "Protection Zone management", pz);

static const struct functional_case mem[] = {
	{ "1 byte to 16 MiB can be registered", register_sizes },
	{ "memory can be registered again after its LMR was freed", register_again },
	{ "a region of no bytes is refused, or can be freed", register_nothing },
	{ "memory cannot be registered without a PZ", register_without_pz },
	{ "the null handle cannot be freed", free_null_lmr },
};
FEATURE(mem, "Memory register/deregister", mem);
