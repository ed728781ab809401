/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sge_list.h - HOT: translates a consumer's list of segments to verbs (sge_list.c).
 *
 * A DAT_LMR_TRIPLET has the layout of a struct ibv_sge, and an LMR context is an lkey: the consumer's
 * iov is used as the scatter list. Only a list with empty segments is copied without them, because the
 * consumer may leave their address and context undefined. */
#ifndef DAPL_SGE_LIST_H
#define DAPL_SGE_LIST_H
#include <dat/udat.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

enum { DAPL_SGE_MAX = 256 };	/* segments of a copy; more than any device has */

/* Copies the segments that are not empty to `to`, which has DAPL_SGE_MAX places. *n becomes their
 * number. Returns `to`. */
struct ibv_sge *dapl_sge_nonempty(const DAT_LMR_TRIPLET *iov, int *n, struct ibv_sge *to);
/* Does the same as dapl_sge_nonempty, and cuts the list after `length` bytes. */
struct ibv_sge *dapl_sge_cut(const DAT_LMR_TRIPLET *iov, int *n, uint32_t length,
			     struct ibv_sge *to);

/* Sums the lengths. Returns true if a segment is empty. */
static inline bool dapl_sge_sum(const DAT_LMR_TRIPLET *iov, int n, uint64_t *total)
{
	bool empty = false;

	*total = 0;
	for (int i = 0; i < n; i++) {
		*total += iov[i].segment_length;
		empty |= iov[i].segment_length == 0;
	}
	return empty;
}

#endif
