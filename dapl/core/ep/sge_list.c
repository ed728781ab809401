/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sge_list.c - copies of lists of segments (sge_list.h). */
#include "dapl/core/ep/sge_list.h"

_Static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ibv_sge), "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ibv_sge, addr),
	       "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ibv_sge, length),
	       "a triplet is an sge");
_Static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ibv_sge, lkey),
	       "a triplet is an sge");

struct ibv_sge *dapl_sge_nonempty(const DAT_LMR_TRIPLET *iov, int *n, struct ibv_sge *to)
{
	int used = 0;

	for (int i = 0; i < *n && used < DAPL_SGE_MAX; i++)
		if (iov[i].segment_length)
			to[used++] = (struct ibv_sge){ iov[i].virtual_address,
				iov[i].segment_length, iov[i].lmr_context };
	*n = used;
	return to;
}

struct ibv_sge *dapl_sge_cut(const DAT_LMR_TRIPLET *iov, int *n, uint32_t length, struct ibv_sge *to)
{
	int used = 0;

	for (int i = 0; i < *n && length && used < DAPL_SGE_MAX; i++) {
		uint32_t len = iov[i].segment_length < length ? iov[i].segment_length : length;

		if (len)
			to[used++] = (struct ibv_sge){ iov[i].virtual_address, len,
				iov[i].lmr_context };
		length -= len;
	}
	*n = used;
	return to;
}
