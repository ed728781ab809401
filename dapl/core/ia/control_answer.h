/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_answer.h - what the answers of several verbs of the control socket contain: addresses, objects, and a part
 * for each IA or object. */
#ifndef DAPL_CONTROL_ANSWER_H
#define DAPL_CONTROL_ANSWER_H
#include <sys/socket.h>
#include "common/json_write.h"
#include "dapl/core/dapl.h"

/* Address and port, or null if the address is unknown. */
void dapl_answer_address(struct json_writer *json, const char *key, const struct sockaddr_storage *address);
/* The address without its port, or null. */
void dapl_answer_host(struct json_writer *json, const char *key, const struct sockaddr_storage *address);
/* The name under which trace records and messages show an object. */
void dapl_answer_object(struct json_writer *json, const void *object);
/* Why a request without the member `key` is refused; the text is in `why`, of `size` bytes, which is returned. */
const char *dapl_answer_missing(char *why, size_t size, const char *key);
/* Writes an array: calls `write` for each open IA until it fails. Returns NULL, or why there is no answer. */
const char *dapl_answer_each_ia(struct json_writer *json, const char *key,
				const char *(*write)(struct json_writer *json, struct dapl_ia *ia));
/* Calls `write` for each object of the kind. Returns NULL, or why there is no answer. */
const char *dapl_answer_each_object(struct json_writer *json, struct dapl_ia *ia, enum dapl_kind kind,
				    void (*write)(struct json_writer *json, struct dapl_object *obj));

#endif
