/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dequeue.h - dat_evd_dequeue (dequeue.c). */
#ifndef DAPL_DEQUEUE_H
#define DAPL_DEQUEUE_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_evd_dequeue(DAT_EVD_HANDLE handle, DAT_EVENT *event);

#endif
