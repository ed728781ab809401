/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_endpoint.c - see core_endpoint.h. */
#include "test/unit/core/core_endpoint.h"
#include "test/unit/unit.h"

struct dapl_ia *ia;
struct dapl_evd *evd;
struct dapl_ep *ep;

void core_endpoint_open(int qlen, int flags, uint32_t posts)
{
	core_device = (struct core_device){ .polling = NULL };
	ia = core_ia_new();
	evd = flags ? core_evd_new(ia, qlen, (DAT_EVD_FLAGS)flags) : NULL;
	ep = core_ep_new(ia, evd, posts);
}

int core_endpoint_close(void **state)
{
	core_ep_free(ep);
	if (evd)
		core_evd_free(evd);
	core_ia_free(ia);
	return 0;
}

int core_endpoint_close_unused(void **state)
{
	assert_int_equal(ep->obj.calls, 0);
	assert_true(dapl_post_try(&ep->sq.lock));
	dapl_post_unlock(&ep->sq.lock);
	return core_endpoint_close(state);
}
