/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_cno.h - a CNO and an EVD with their IA and the service thread, above the device of core_device.h.
 * Each program that includes this header has objects of its own. */
#ifndef TEST_CORE_CNO_H
#define TEST_CORE_CNO_H
#include "dapl/core/event/cno.h"
#include "dapl/core/event/evd.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

static struct dapl_ia *ia;
static struct dapl_evd *evd;
static struct dapl_cno *cno;

/* Opens the IA and the EVD. The test makes the CNO. */
static inline int open_evd(void **state)
{
	core_device = (struct core_device){ .polling = NULL };
	if (dapl_service_get())
		return -1;
	ia = core_ia_new();
	evd = core_evd_new(ia, 8, DAT_EVD_DTO_FLAG);
	return 0;
}

/* `agent` is called for events of the CNO; NULL: no agent. */
static inline void create_cno(void (*agent)(DAT_PVOID context, DAT_EVD_HANDLE evd))
{
	DAT_OS_WAIT_PROXY_AGENT proxy = { NULL, agent };
	DAT_CNO_HANDLE handle;

	assert_int_equal(dapl_cno_create((DAT_IA_HANDLE)ia, proxy, &handle), DAT_SUCCESS);
	cno = (struct dapl_cno *)handle;
}

/* Frees the CNO, which no EVD uses any more, the EVD and the IA. */
static inline int close_cno(void **state)
{
	assert_int_equal(dapl_cno_free((DAT_CNO_HANDLE)cno), DAT_SUCCESS);
	cno = NULL;
	core_evd_free(evd);
	core_ia_free(ia);
	dapl_service_put();
	return 0;
}

/* `to` NULL: the EVD gets no CNO. */
static inline void set_cno(struct dapl_cno *to)
{
	assert_int_equal(dapl_evd_modify_cno((DAT_EVD_HANDLE)evd, (DAT_CNO_HANDLE)to), DAT_SUCCESS);
}

#endif
