/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ops.h - the calls of dat_eth_extensions.h as extended operations (ops.c). */
#ifndef DAPL_ETH_OPS_H
#define DAPL_ETH_OPS_H
#include <stdarg.h>
#include "dapl/core/dapl.h"

/* Calls the operation DAT_ETH_*_OP with the arguments of its call, and returns its errors. NOT_IMPLEMENTED:
 * the device has no raw endpoints. Called with no lock held. */
DAT_RETURN dapl_eth_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

#endif
