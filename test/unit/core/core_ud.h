/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* core_ud.h - a datagram endpoint of the objects of core_objects.h, and its events (core_ud.c). */
#ifndef TEST_CORE_UD_H
#define TEST_CORE_UD_H
#include <dat/dat_ib_extensions.h>
#include "dapl/core/dapl.h"

enum { CORE_UD_MESSAGE = 1500 };	/* bytes: the longest */

/* An UNCONNECTED one, which can send. The device has datagrams from now on. */
struct dapl_ep *core_ud_ep(void);

/* An event of an endpoint about one of its peers or groups. */
struct core_ud_event {
	int number;			/* 0: there is none */
	int status;
	DAT_IB_EXT_TYPE type;
	DAT_IB_ADDR_HANDLE to;
	DAT_CONTEXT context;
	char pdata[16];
};
/* The next of core_conn_evd, which is one of `ep`. */
struct core_ud_event core_ud_next_event(const struct dapl_ep *ep);

/* Sends from the endpoint, with n segments that have this length together. */
DAT_RETURN core_ud_send(struct dapl_ep *ep, DAT_COUNT n, uint64_t length, const DAT_IB_ADDR_HANDLE *to);

#endif
