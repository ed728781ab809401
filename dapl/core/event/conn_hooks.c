/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_hooks.c - the table behind conn_hooks.h. */
#include "dapl/core/event/conn_hooks.h"

struct dapl_conn_hooks dapl_conn_hooks;
