/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace_file.h - reads the trace records of a process from a file: its standard error, or what datinfo --dump
 * printed, also as JSON. Lines that are no records are left out. */
#ifndef TOOLS_INFO_TRACE_FILE_H
#define TOOLS_INFO_TRACE_FILE_H
#include <jansson.h>

/* An object with
 *   "file", "pid" and "program" if a dump names them,
 *   "objects": "name" ("ep1": the kind, and a number in the order of their first records), "address", and the
 *     latest "ends" ("127.0.0.1 port 1, remote 127.0.0.1 port 2") of a connection,
 *   "records": "time" (seconds), "class", "thread", "object" (its name), "state" and "was" (null: none), "text".
 * A file that cannot be read, has no record, or one that is malformed or cut ends the tool with a line. */
json_t *trace_file_read(const char *name);

#endif
