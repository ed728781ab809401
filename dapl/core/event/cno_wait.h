/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cno_wait.h - waiting for triggers of a CNO (cno_wait.c). */
#ifndef DAPL_CNO_WAIT_H
#define DAPL_CNO_WAIT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle);

#endif
