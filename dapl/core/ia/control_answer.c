/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_answer.c - see control_answer.h. Enters all objects of a kind first, and reads them then, because the lock of
 * an endpoint is taken before that of its IA. */
#include "dapl/core/ia/control_answer.h"
#include <stdio.h>
#include <stdlib.h>
#include "common/address.h"
#include "dapl/core/base/qual.h"
#include "dapl/core/event/async.h"

static const char no_memory[] = "no memory";

void dapl_answer_address(struct json_writer *json, const char *key, const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN];
	const char *host = address_host((const struct sockaddr *)address, text);

	if (host)
		json_write_format(json, key, address->ss_family == AF_INET6 ? "[%s]:%u" : "%s:%u", host,
				  (unsigned)dapl_port_of(address));
	else
		json_write_text(json, key, NULL);
}

void dapl_answer_host(struct json_writer *json, const char *key, const struct sockaddr_storage *address)
{
	char text[INET6_ADDRSTRLEN];

	json_write_text(json, key, address_host((const struct sockaddr *)address, text));
}

void dapl_answer_object(struct json_writer *json, const void *object)
{
	json_write_format(json, "object", "%p", object);
}

const char *dapl_answer_missing(char *why, size_t size, const char *key)
{
	snprintf(why, size, "the request has no member \"%s\"", key);
	return why;
}

struct set {
	struct dapl_object **objects;
	size_t count;
};

static void leave_all(struct set *set)
{
	for (size_t i = 0; i < set->count; i++)
		dapl_object_leave(set->objects[i]);
	free(set->objects);
}

const char *dapl_answer_each_ia(struct json_writer *json, const char *key,
				const char *(*write)(struct json_writer *json, struct dapl_ia *ia))
{
	const char *failed = NULL;
	struct set ias;

	if (!dapl_async_enter_ias(&ias.objects, &ias.count))
		return no_memory;
	json_write_open(json, key, '[');
	for (size_t i = 0; i < ias.count && !failed; i++)
		failed = write(json, (struct dapl_ia *)ias.objects[i]);
	json_write_close(json, ']');
	leave_all(&ias);
	return failed;
}

const char *dapl_answer_each_object(struct json_writer *json, struct dapl_ia *ia, enum dapl_kind kind,
				    void (*write)(struct json_writer *json, struct dapl_object *obj))
{
	struct set set;

	if (!dapl_object_enter_all(ia, kind, &set.objects, &set.count))
		return no_memory;
	for (size_t i = 0; i < set.count; i++)
		write(json, set.objects[i]);
	leave_all(&set);
	return NULL;
}
