/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_net_port.h - libdatnet: one connection qualifier for a service on several IAs. Apart from
 * dat_net.h, which needs no DAT type. */
#ifndef _DAT_NET_PORT_H_
#define _DAT_NET_PORT_H_

#include "udat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The protocol that a service point listens for: bits of its flags, for dat_net_port(),
 * dat_psp_create() and dat_psp_create_any(). Each protocol has numbers of its own. Without a bit:
 * connections, and datagrams if the IA has them and the number is free for these, too. With a bit,
 * what it names, or none: DAT_MODEL_NOT_SUPPORTED if the IA has no datagrams, DAT_CONN_QUAL_IN_USE
 * if the number is not free for one of them. */
#define DAT_PSP_RC_FLAG 0x100	/* reliable connections */
#define DAT_PSP_UD_FLAG 0x200	/* datagrams: endpoints of DAT_IB_SERVICE_TYPE_UD */

struct dat_net_port_list {
	const DAT_IA_HANDLE *ias;	/* open */
	const DAT_EVD_HANDLE *evds;	/* one for each IA: where its connection requests go */
	DAT_COUNT count;
};

/* Makes a public service point with the same qualifier on each IA of `list`, or on none. *qual 0: a
 * number that is free on all, which *qual gets; up to 64 numbers of the first IA are tried. psps
 * has room for list->count handles. *failed gets the index of the IA that refused; NULL is allowed.
 *
 * DAT_SUCCESS
 * DAT_INVALID_PARAMETER	list, an array of it, qual or psps is NULL, or count is not positive
 * DAT_CONN_QUAL_IN_USE		the IA `failed` has a service of this number; with *qual 0: each
 *				number that was tried was in use
 * others			as dat_psp_create() and dat_psp_create_any() of the IA `failed` */
extern DAT_RETURN DAT_API dat_net_port(IN const struct dat_net_port_list *list, IN DAT_PSP_FLAGS flags,
	INOUT DAT_CONN_QUAL *qual, OUT DAT_PSP_HANDLE *psps, OUT DAT_COUNT *failed);

#ifdef __cplusplus
}
#endif

#endif
