/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pz.h - protection zones (pz.c). */
#ifndef DAPL_PZ_H
#define DAPL_PZ_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *handle);
DAT_RETURN dapl_pz_query(DAT_PZ_HANDLE handle, DAT_PZ_PARAM_MASK mask, DAT_PZ_PARAM *param);
DAT_RETURN dapl_pz_free(DAT_PZ_HANDLE handle);

#endif
