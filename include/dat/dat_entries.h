/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_entries.h - the entries of the registry with the place that each comes from, reading the
 * files again, and a check of the text of a dat.conf. Additions of this library (symbol version
 * DAT_2.2): the old registry has nothing like them. For tools; a program that opens IAs needs
 * dat_registry_list_providers() only. */
#ifndef _DAT_ENTRIES_H_
#define _DAT_ENTRIES_H_

#include "udat.h"
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dat_entry_origin {
	DAT_ENTRY_FILE,		/* a line of dat.conf, or of the file that DAT_OVERRIDE names */
	DAT_ENTRY_DROP_IN,	/* a line of a file in dat.conf.d */
	DAT_ENTRY_GENERATED	/* from a device present: "include auto", or there is no dat.conf */
} DAT_ENTRY_ORIGIN;

typedef struct dat_entry {
	DAT_PROVIDER_INFO info;
	const char *library;		/* lib_path */
	const char *ia_params;
	DAT_ENTRY_ORIGIN origin;
	const char *file;		/* NULL: generated */
	DAT_UINT32 line;
	DAT_BOOLEAN is_default;		/* false: cannot be opened, hides a generated entry */
	DAT_BOOLEAN is_repeated;	/* an earlier entry has the same name, version and
					 * thread safety */
} DAT_ENTRY;

/* Gives all entries that were read, in their order, as one block that the caller frees with free().
 * *list is NULL if there is none.
 *
 * DAT_SUCCESS
 * DAT_INVALID_PARAMETER	list or count is NULL
 * DAT_INSUFFICIENT_RESOURCES	no memory, or no descriptor, to read the files */
extern DAT_RETURN DAT_API dats_list_entries(OUT DAT_ENTRY **list, OUT DAT_COUNT *count);

/* Gives the entries that "include auto" makes of the devices present now, whatever the files say.
 * The list and the return codes are those of dats_list_entries(). */
extern DAT_RETURN DAT_API dats_list_generated(OUT DAT_ENTRY **list, OUT DAT_COUNT *count);

/* Has the registry read its files again: dat.conf, dat.conf.d, and the devices present, or the file
 * that DAT_OVERRIDE names. New entries can be opened from then on, removed ones cannot. An entry
 * that changed has its new contents at the next open. While IAs of it are open, it has them at the
 * first open after the last of these was closed. Open IAs are not touched. If a file cannot be
 * read, or a line is no entry, that is reported and nothing changes. Any thread may call it, except
 * for one within a provider's init or fini.
 *
 * `entries`, which may be NULL, gets the number of entries.
 *
 * DAT_SUCCESS
 * DAT_INVALID_PARAMETER	a file cannot be read, or has a line that is no entry
 * DAT_INVALID_STATE		the caller is a provider that is being loaded or unloaded
 * DAT_TIMEOUT_EXPIRED		for a second libraries were being loaded or unloaded
 * DAT_INSUFFICIENT_RESOURCES	no memory, or no descriptor, to read the files */
extern DAT_RETURN DAT_API dats_reread(OUT DAT_COUNT *entries);

/* What is wrong with a line. The texts are printable, and valid during the report only. */
typedef struct dat_conf_fault {
	DAT_UINT32 line, column;	/* from 1; the column counts bytes */
	const char *field;		/* "threadsafety" ...; "": the line as a whole */
	const char *found, *expected;
	const char *message;		/* found and expected in one sentence */
} DAT_CONF_FAULT;

typedef void (*DAT_CONF_FAULT_FUNC)(void *arg, const DAT_CONF_FAULT *fault);

/* Parses `length` bytes as the text of a dat.conf, and calls report(arg, fault) for each line that
 * the registry would leave out, in the calling thread, before the return. Gives the number of good
 * entries in *entries. Needs no file, and changes nothing of the registry.
 *
 * DAT_SUCCESS			also with faults
 * DAT_INVALID_PARAMETER	a pointer is NULL
 * DAT_INSUFFICIENT_RESOURCES	no memory */
extern DAT_RETURN DAT_API dats_check_conf(IN const char *text, IN size_t length,
	IN DAT_CONF_FAULT_FUNC report, IN void *arg, OUT DAT_COUNT *entries);

#ifdef __cplusplus
}
#endif

#endif
