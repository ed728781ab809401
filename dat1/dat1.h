/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat1.h - how libdat.so.1 exports the calls of DAT 1.2 and reaches those of libdat2.
 *
 * Both libraries have functions of the same names, under the versions DAT_1.2 and DAT_2.0. In this
 * folder dat1_X is exported as dat_X, and dat_X is libdat2's, or the inline function of the DAT 1.2
 * header that calls libdat2's. For the linker libdat2's is dat_X@DAT_2.0, an undefined symbol with a
 * version. That header converts the structures; this folder converts what only binaries see:
 * numbers, masks, and the structures whose members the header leaves alone. */
#ifndef DAT1_H
#define DAT1_H

/* What the inline functions of the header call. */
#define DAT_1_2_SYMBOL(call) "dat2_" #call
#include <dat-1.2/dat/udat.h>
#include "dat1/numbers.h"

/* Begins the definition of the exported call. */
#define EXPORT_1_2(call, ...) \
	__attribute__((visibility("default"))) DAT_RETURN dat1_##call(__VA_ARGS__) \
		__asm__("dat_" #call); \
	DAT_RETURN dat1_##call(__VA_ARGS__)

#define FROM_2_0(call) __asm__(".symver dat2_" #call ",dat_" #call "@DAT_2.0")
/* The header declares these as DAT 2.0 does. */
#define PLAIN_FROM_2_0(call) \
	extern __typeof__(dat_##call) dat_##call __asm__(DAT_1_2_SYMBOL(call)); \
	FROM_2_0(call)

FROM_2_0(ia_openv);
FROM_2_0(lmr_create);
FROM_2_0(lmr_free);
FROM_2_0(lmr_sync_rdma_read);
FROM_2_0(lmr_sync_rdma_write);
FROM_2_0(rmr_bind);
FROM_2_0(rmr_query);
FROM_2_0(cr_reject);
FROM_2_0(cno_query);
FROM_2_0(evd_wait);
FROM_2_0(evd_dequeue);
FROM_2_0(evd_post_se);
FROM_2_0(ep_create);
FROM_2_0(ep_create_with_srq);
FROM_2_0(ep_query);
FROM_2_0(ep_modify);
FROM_2_0(ep_post_send);
FROM_2_0(ep_post_recv);
FROM_2_0(ep_post_rdma_read);
FROM_2_0(ep_post_rdma_write);
FROM_2_0(srq_post_recv);

PLAIN_FROM_2_0(cno_create);
PLAIN_FROM_2_0(cno_free);
PLAIN_FROM_2_0(cno_modify_agent);
PLAIN_FROM_2_0(cno_wait);
PLAIN_FROM_2_0(cr_accept);
PLAIN_FROM_2_0(cr_handoff);
PLAIN_FROM_2_0(cr_query);
PLAIN_FROM_2_0(ep_connect);
PLAIN_FROM_2_0(ep_disconnect);
PLAIN_FROM_2_0(ep_dup_connect);
PLAIN_FROM_2_0(ep_free);
PLAIN_FROM_2_0(ep_get_status);
PLAIN_FROM_2_0(ep_recv_query);
PLAIN_FROM_2_0(ep_reset);
PLAIN_FROM_2_0(ep_set_watermark);
PLAIN_FROM_2_0(evd_clear_unwaitable);
PLAIN_FROM_2_0(evd_create);
PLAIN_FROM_2_0(evd_disable);
PLAIN_FROM_2_0(evd_enable);
PLAIN_FROM_2_0(evd_free);
PLAIN_FROM_2_0(evd_modify_cno);
PLAIN_FROM_2_0(evd_query);
PLAIN_FROM_2_0(evd_resize);
PLAIN_FROM_2_0(evd_set_unwaitable);
PLAIN_FROM_2_0(get_consumer_context);
PLAIN_FROM_2_0(get_handle_type);
PLAIN_FROM_2_0(ia_close);
PLAIN_FROM_2_0(ia_query);
PLAIN_FROM_2_0(lmr_query);
PLAIN_FROM_2_0(psp_create);
PLAIN_FROM_2_0(psp_create_any);
PLAIN_FROM_2_0(psp_free);
PLAIN_FROM_2_0(psp_query);
PLAIN_FROM_2_0(pz_create);
PLAIN_FROM_2_0(pz_free);
PLAIN_FROM_2_0(pz_query);
PLAIN_FROM_2_0(registry_list_providers);
PLAIN_FROM_2_0(rmr_create);
PLAIN_FROM_2_0(rmr_free);
PLAIN_FROM_2_0(rsp_create);
PLAIN_FROM_2_0(rsp_free);
PLAIN_FROM_2_0(rsp_query);
PLAIN_FROM_2_0(set_consumer_context);
PLAIN_FROM_2_0(srq_create);
PLAIN_FROM_2_0(srq_free);
PLAIN_FROM_2_0(srq_query);
PLAIN_FROM_2_0(srq_resize);
PLAIN_FROM_2_0(srq_set_lw);
PLAIN_FROM_2_0(strerror);

#endif
