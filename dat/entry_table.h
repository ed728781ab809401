/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* entry_table.h - the entries of the static registry, found by name, and their replacement when the
 * files are read again. The registry's lock guards all of it (registry_state.h); lookup.c decides
 * when a library is loaded.
 *
 * A reading is what sources_read() gave, with a count of its users: each entry made from it,
 * the table, and readers without the lock. An entry that is the same in the next reading moves
 * there with its loaded library. One that changed or went away while its library is loaded is
 * `replaced`: it is in no table, and is freed when its last user has closed. */
#ifndef DAT_ENTRY_TABLE_H
#define DAT_ENTRY_TABLE_H
#include <pthread.h>
#include <stdbool.h>
#include "dat/loader.h"
#include "dat/sources.h"

struct reading {
	struct sources sources;
	bool *repeated;		/* of each entry: an earlier one has the same key */
	unsigned refs;
};

/* An entry of dat.conf, and the state of its library. */
struct entry {
	const struct conf_entry *conf;
	struct reading *reading;	/* that has `conf` */
	struct entry *next_in_bucket;	/* in the order of the file */
	struct entry *next_busy;
	pthread_t busy_thread;
	bool busy, loaded;
	bool replaced;		/* in no table any more */
	bool repeated;		/* an earlier entry has the same key */
	bool no_memory;		/* dat_registry_add_provider() failed for its library */
	bool failure_reported;	/* the failure of its library has been reported */
	unsigned users;		/* of all providers that its library registered */
	struct library library;
};

struct entry_table {
	struct reading *reading;	/* NULL: the files have not been read */
	struct entry **entries;		/* in the order of the files */
	size_t count;
	struct entry **buckets;		/* entries by name */
	size_t bucket_count;		/* a power of two */
};

/* Reads the files. NULL: memory or descriptors were short. `again`: other files than regular ones are
 * unreadable, since the caller must not wait. */
struct reading *reading_make(bool with_soft, bool again);
void reading_get(struct reading *reading);
void reading_put(struct reading *reading);

bool same_key(const DAT_PROVIDER_INFO *a, const DAT_PROVIDER_INFO *b);

/* Takes over the reference to `reading`. Returns false if memory is short: then it takes over nothing. */
bool table_make(struct entry_table *table, struct reading *reading);
/* Makes `table` the table of `fresh`, which is empty afterwards. No entry is busy. */
void table_replace(struct entry_table *table, struct entry_table *fresh);
/* Frees entries, used or not. */
void table_free(struct entry_table *table);
/* Frees the entry if it was replaced and has no user any more. */
void entry_free_replaced(struct entry *entry);

/* Returns the first entry in the bucket of a name, or NULL. */
struct entry *table_first(const struct entry_table *table, const char *name);
/* Returns the next entry with this key that may be opened; with `after` NULL, the first. */
struct entry *table_next(const struct entry_table *table, const DAT_PROVIDER_INFO *key,
			 struct entry *after);

#endif
