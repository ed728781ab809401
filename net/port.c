/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c - dat_net_port(): one connection qualifier on several IAs, or on none of them. */
#include "net/netlink.h"
#include <dat/dat_net.h>
#include <dat/dat_net_port.h>
#include <stddef.h>

enum { TRIES = 64 };	/* numbers of the first IA that are tried on the others */

static void free_points(DAT_PSP_HANDLE *psps, DAT_COUNT from, DAT_COUNT to)
{
	for (DAT_COUNT i = from; i < to; i++)
		dat_psp_free(psps[i]);
}

/* Makes a service point on each IA from `first` on. All or none. */
static DAT_RETURN create_from(const struct dat_net_port_list *list, DAT_COUNT first, DAT_CONN_QUAL qual,
			      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psps, DAT_COUNT *failed)
{
	DAT_RETURN ret;

	for (DAT_COUNT i = first; i < list->count; i++) {
		ret = dat_psp_create(list->ias[i], qual, list->evds[i], flags, &psps[i]);
		if (ret == DAT_SUCCESS)
			continue;
		free_points(psps, first, i);
		*failed = i;
		return ret;
	}
	return DAT_SUCCESS;
}

/* The first IA keeps the numbers that others refused until one is found, so it gives another each
 * time. */
static DAT_RETURN create_any(const struct dat_net_port_list *list, DAT_CONN_QUAL *qual, DAT_PSP_FLAGS flags,
			     DAT_PSP_HANDLE *psps, DAT_COUNT *failed)
{
	DAT_PSP_HANDLE refused[TRIES];
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_COUNT tries = 0;

	do {
		ret = dat_psp_create_any(list->ias[0], qual, list->evds[0], flags, &psps[0]);
		if (ret != DAT_SUCCESS) {
			*failed = 0;
			break;
		}
		ret = create_from(list, 1, *qual, flags, psps, failed);
		if (ret != DAT_SUCCESS)
			refused[tries++] = psps[0];
	} while (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE && tries < TRIES);
	free_points(refused, 0, tries);
	return ret;
}

NET_PUBLIC DAT_RETURN dat_net_port(const struct dat_net_port_list *list, DAT_PSP_FLAGS flags,
				   DAT_CONN_QUAL *qual, DAT_PSP_HANDLE *psps, DAT_COUNT *failed)
{
	DAT_COUNT unused;
	DAT_CONN_QUAL found = 0;
	DAT_RETURN ret;

	if (!list || list->count <= 0 || !list->ias || !list->evds)
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG1;
	if (!qual)
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG3;
	if (!psps)
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER | DAT_INVALID_ARG4;
	if (!failed)
		failed = &unused;
	if (*qual)
		return create_from(list, 0, *qual, flags, psps, failed);
	ret = create_any(list, &found, flags, psps, failed);
	if (ret == DAT_SUCCESS)
		*qual = found;
	return ret;
}
