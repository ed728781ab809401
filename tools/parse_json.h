/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parse_json.h - JSON texts that a tool reads. Where there is no memory left, the tool fails with that line. jansson of
 * version 2.14 (lex_scan_string) goes on with a shorter buffer then, and writes past its end.
 * Not responsible for: what the texts say. */
#ifndef TOOLS_PARSE_JSON_H
#define TOOLS_PARSE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* Both return a value that the caller releases with json_decref(), or NULL if the text is malformed. A text may be NULL
 * if its length is 0. `error` says where and why. */
json_t *parse_json(const char *text, size_t length);
json_t *parse_json_file(FILE *file, json_error_t *error);

#endif
