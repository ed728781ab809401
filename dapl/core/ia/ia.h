/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia.h - interface adapters (ia.c). */
#ifndef DAPL_IA_H
#define DAPL_IA_H
#include "dapl/core/dapl.h"

/* The entry of one ia_name: a line of dat.conf that the registry has passed to dat_provider_init. Not freed
 * before the library is unloaded, because stale handles point to the table. */
struct dapl_entry {
	DAT_PROVIDER table;	/* first: DAT_PROVIDER * is struct dapl_entry * */
	DAT_PROVIDER_INFO info;
	const char *params;	/* stays until the library is unloaded, also if a later init has others */
	int inits;		/* guarded by the list's lock in provider.c */
	struct dapl_entry *next;
};

/* Opens the device of an entry. Messages of the device name the adapter meanwhile. Returns 0 or an
 * errno. */
int dapl_ia_open_device(struct dapl_ia *ia, const struct dapl_entry *entry);
/* The slot of the provider table; the entry is found by its name. */
DAT_RETURN dapl_ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd,
			DAT_IA_HANDLE *handle);
/* The DAT code for the errno with which a device was not opened or queried. EINVAL: ia_params of the entry
 * are wrong, so the first argument, the name of the IA, is invalid. */
DAT_RETURN dapl_ia_open_status(int err);

DAT_RETURN dapl_ia_query(DAT_IA_HANDLE handle, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask,
			 DAT_IA_ATTR *ia_attr, DAT_PROVIDER_ATTR_MASK provider_mask,
			 DAT_PROVIDER_ATTR *provider_attr);
DAT_RETURN dapl_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags);

#endif
