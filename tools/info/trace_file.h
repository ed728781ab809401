/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace_file.h - reads the trace records of a process from a file with its standard error, or with the
 * output of datinfo --dump, with or without --json. Other lines are left out. */
#ifndef TOOLS_INFO_TRACE_FILE_H
#define TOOLS_INFO_TRACE_FILE_H
#include <jansson.h>

/* Returns an object with
 *   "file", "pid" and "program" if a dump names them,
 *   "objects": "name" ("ep1": the kind, and a number in the order of their first records), "address", and the
 *     latest "ends" ("127.0.0.1 port 1, remote 127.0.0.1 port 2") of a connection,
 *   "records": "time" (seconds), "class", "thread", "object" (its name), "state" and "was" (null: none), "text".
 * If the file cannot be read, has no record, or has a malformed or cut record, the tool ends with a line. */
json_t *trace_file_read(const char *name);

#endif
