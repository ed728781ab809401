/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls.h - the DAT calls of this folder of which each is the only function that its file gives to others. */
#ifndef DAPL_EVENT_CALLS_H
#define DAPL_EVENT_CALLS_H
#include "dapl/core/dapl.h"

/* dequeue.c */
DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event);

/* evd_wait.c */
DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);

/* cno_wait.c */
DAT_RETURN dapl_cno_wait(DAT_CNO_HANDLE handle, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd_handle);

#endif
