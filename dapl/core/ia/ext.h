/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.h - extension operations (ext.c). */
#ifndef DAPL_EXT_H
#define DAPL_EXT_H
#include "dapl/core/dapl.h"

DAT_RETURN dapl_extension_op(DAT_HANDLE handle, DAT_EXTENDED_OP op, va_list args);

#endif
