/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.c - one end of a connection (ends.h). */
#include "test/ends.h"
#include <stdint.h>

#define STEP(call) do { DAT_RETURN ret_ = (call); \
		if (ret_ != DAT_SUCCESS) { e->step = #call; return ret_; } } while (0)

static DAT_RETURN evd_create(struct end *e, DAT_COUNT entries, DAT_EVD_FLAGS flags, DAT_EVD_HANDLE *evd)
{
	if (entries && !*evd)
		STEP(dat_evd_create(e->ia, entries, DAT_HANDLE_NULL, flags, evd));
	return DAT_SUCCESS;
}

DAT_RETURN end_open(struct end *e, const char *ia, struct end_events events)
{
	DAT_RETURN ret;

	if (!e->ia)
		STEP(dat_ia_open((DAT_NAME_PTR)ia, 8, &e->async, &e->ia));
	if (!e->pz)
		STEP(dat_pz_create(e->ia, &e->pz));
	if ((ret = evd_create(e, events.cr, DAT_EVD_CR_FLAG, &e->cr)) ||
	    (ret = evd_create(e, events.recv, DAT_EVD_DTO_FLAG, &e->recv)) ||
	    (ret = evd_create(e, events.request, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &e->request)) ||
	    (ret = evd_create(e, events.conn, DAT_EVD_CONNECTION_FLAG, &e->conn)))
		return ret;
	if (!e->request)
		e->request = e->recv;
	return DAT_SUCCESS;
}

DAT_RETURN end_register(struct end *e, void *memory, size_t size)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };

	e->memory = memory;
	STEP(dat_lmr_create(e->ia, DAT_MEM_TYPE_VIRTUAL, region, size, e->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			    &e->lmr, &e->local, &e->remote, NULL, NULL));
	return DAT_SUCCESS;
}

DAT_RETURN end_create_ep(struct end *e, const DAT_EP_ATTR *attr)
{
	STEP(dat_ep_create(e->ia, e->pz, e->recv, e->request, e->conn, (DAT_EP_ATTR *)attr, &e->ep));
	return DAT_SUCCESS;
}

DAT_LMR_TRIPLET end_segment(const struct end *e, const void *at, size_t length)
{
	return (DAT_LMR_TRIPLET){ .lmr_context = e->local, .virtual_address = (uintptr_t)at, .segment_length = length };
}

DAT_RETURN end_close(struct end *e)
{
	DAT_RETURN ret = e->ia ? dat_ia_close(e->ia, DAT_CLOSE_ABRUPT_FLAG) : DAT_SUCCESS;

	e->ia = NULL;
	return ret;
}
