/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lmr_table.h - maps LMR contexts to LMR handles, for programs written for DAT 1.2. Their
 * dat_rmr_bind() names an LMR by its context only; that of DAT 2.0 takes the handle. The header of
 * the 1.2 view and libdat.so.1 keep the table; a program for DAT 2.0 leaves it empty. */
#ifndef DAT_LMR_TABLE_H
#define DAT_LMR_TABLE_H
#include <dat/udat.h>
#include <stdbool.h>

/* Exported. A context is unique among the LMRs of one IA; a second entry replaces the first.
 * Fails without memory only. */
DAT_RETURN dats_lmr_add(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);
/* Exported. Does nothing if the entry is of another LMR. */
void dats_lmr_remove(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context, DAT_LMR_HANDLE lmr);
/* Exported. Returns DAT_HANDLE_NULL if there is no entry. */
DAT_LMR_HANDLE dats_lmr_find(DAT_IA_HANDLE ia, DAT_LMR_CONTEXT context);

/* Removes the entries of an IA that has been closed. */
void lmr_table_drop(DAT_IA_HANDLE ia);
/* Called around a fork, so that no other thread is in the middle of a change. */
void lmr_table_fork(bool begins);
/* Called at unload of the registry. */
void lmr_table_fini(void);

#endif
