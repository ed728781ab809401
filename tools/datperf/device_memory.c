/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_memory.c - memory of the device for a link (--dm). The tests check the data that
 * arrive, so the memory must be mapped. */
#include "device_memory.h"
#include "../call.h"
#include "../cli.h"
#include <dat/dat_dm_extensions.h>
#include <stdlib.h>
#include <string.h>

/* Returns the value of a named attribute of the IA, which is valid until the next query, or NULL if the IA
 * has no such attribute. */
static const char *attribute(struct link *l, const char *name)
{
	DAT_PROVIDER_ATTR attr;

	good(dat_ia_query(l->adapter->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &attr), "dat_ia_query");
	for (int i = 0; i < attr.num_provider_specific_attr; i++)
		if (!strcmp(attr.provider_specific_attr[i].name, name))
			return attr.provider_specific_attr[i].value;
	return NULL;
}

void device_memory_take(struct link *l, size_t size, DAT_MEM_PRIV_FLAGS rights)
{
	const char *all = attribute(l, DAT_DM_ATTR_SIZE);
	DAT_PVOID at;

	if (!all || !attribute(l, DAT_DM_ATTR_MAP))
		fail("%s has no device memory that this process can map (attribute "
		     DAT_DM_ATTR_MAP ")", l->adapter->name);
	if (strtoull(all, NULL, 10) < size)
		fail("--dm: a thread needs %zu bytes of device memory, %s has %s (attribute " DAT_DM_ATTR_SIZE ")",
		     size, l->adapter->name, all);
	good_call(dat_dm_alloc(l->adapter->ia, size, 12, &l->dm), "dat_dm_alloc");
	good_call(dat_dm_map(l->dm, &at), "dat_dm_map");
	good_call(dat_dm_lmr_create(l->dm, 0, size, l->adapter->pz, rights, &l->lmr, &l->lmr_context,
				    &l->rmr_context), "dat_dm_lmr_create");
	l->out = at;
	l->base = (uintptr_t)at;
}

void device_memory_free(struct link *l)
{
	good(dat_dm_free(l->dm), "dat_dm_free");
}
