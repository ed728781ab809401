/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* registry.h - which IAs exist, who provides them, and how many users each provider has.
 * Opening an IA (ia.c) is: get a provider, call it, put it when the IA closes. */
#ifndef DAT_REGISTRY_H
#define DAT_REGISTRY_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>

/* One registration. Readable while its user holds it (registry_get). */
struct provider {
	struct provider *next;
	DAT_PROVIDER_INFO info;
	const DAT_PROVIDER *table;
	struct entry *owner;	/* whose library registered it; NULL: nobody's */
	unsigned users;		/* under the registry's lock */
};

/* Reads variables and files, once. Each exported call that may be a program's first
 * begins with it; also in the constructor of a library that was loaded before ours. */
void registry_start(void);

/* Finds, loads if need be, and holds the provider of an IA, or says what was not found. */
DAT_RETURN registry_get(const char *name, DAT_UINT32 major, DAT_UINT32 minor,
			DAT_BOOLEAN thread_safe, struct provider **provider);
/* The last user of a library unloads it. */
void registry_put(struct provider *provider);

/* Reports a name that no open can find, with the names there are (unknown_ia.h). */
void registry_report_unknown(const char *name);

/* Whether an open could find something by this name. */
bool registry_knows(const char *name);

#endif
