/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evd_wait.h - dat_evd_wait (evd_wait.c). */
#ifndef DAPL_EVD_WAIT_H
#define DAPL_EVD_WAIT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_evd_wait(DAT_EVD_HANDLE handle, DAT_TIMEOUT timeout, DAT_COUNT threshold,
			 DAT_EVENT *event, DAT_COUNT *nmore);

#endif
