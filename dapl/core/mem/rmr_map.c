/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rmr_map.c - memory of peers that consumers have mapped. Each mapping belongs to an endpoint and ends with
 * it. The device maps the memory, if it can. */
#include <stdlib.h>
#include <sys/mman.h>
#include "dapl/core/base/status.h"
#include "dapl/core/mem/rmr_map.h"

struct dapl_map {
	struct dapl_map *next;
	struct dapl_mapping is;
};

static void drop(struct dapl_map *map)
{
	munmap(map->is.pages, map->is.size);
	free(map);
}

/* Maps the memory and lists the mapping. Called with ep->lock held. */
static DAT_RETURN map_now(struct dapl_ep *ep, const DAT_RMR_TRIPLET *rmr, struct dapl_map *new)
{
	int err;

	if (ep->is_ud)
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (ep->state != DAT_EP_STATE_CONNECTED)
		return dapl_status_bad_ep_state(ep->state);
	err = dapl_device_ops.map_remote(ep->qp, rmr->rmr_context, rmr->virtual_address,
					 rmr->segment_length, &new->is);
	if (err)
		return dapl_status(err, DAT_RESOURCE_MEMORY);
	new->next = ep->maps;
	ep->maps = new;
	return DAT_SUCCESS;
}

DAT_RETURN dapl_map_rmr(struct dapl_ep *ep, const DAT_RMR_TRIPLET *rmr, DAT_PVOID *address)
{
	struct dapl_map *new;
	DAT_RETURN ret;

	if (!rmr || !rmr->segment_length)
		return BAD_PARAM(2);
	if (!address)
		return BAD_PARAM(3);
	new = malloc(sizeof *new);
	if (!new)
		return NO_RESOURCE(MEMORY);
	dapl_mutex_lock(&ep->lock);
	ret = map_now(ep, rmr, new);
	dapl_mutex_unlock(&ep->lock);
	if (ret == DAT_SUCCESS)
		*address = new->is.at;
	else
		free(new);
	return ret;
}

DAT_RETURN dapl_map_unmap(struct dapl_ep *ep, DAT_PVOID address)
{
	struct dapl_map **at, *map;

	dapl_mutex_lock(&ep->lock);
	for (at = &ep->maps; *at && (*at)->is.at != address; at = &(*at)->next)
		;
	map = *at;
	if (map)
		*at = map->next;
	dapl_mutex_unlock(&ep->lock);
	if (!map)
		return BAD_PARAM(2);
	drop(map);
	return DAT_SUCCESS;
}

void dapl_map_end(struct dapl_ep *ep)
{
	struct dapl_map *map;

	while ((map = ep->maps)) {
		ep->maps = map->next;
		drop(map);
	}
}
