/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* limit.c - see limit.h. Creates objects in `width` sets in turn. Each set has an adapter of its own, and
 * the other objects that the created ones need. */
#include "limit.h"
#include "../cli.h"
#include "../messages.h"
#include "channel.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = 65536,			/* objects without -m; a larger limit does not matter to programs */
	EVD_LENGTH = 8,
	BUFFER = 4096,			/* bytes of an LMR or a receive */
};

struct set {
	struct adapter adapter;
	struct channel channel;
	struct region region;
	DAT_SRQ_HANDLE srq;
};

/* The result of one creation. `second` is the endpoint of an RSP, or the memory of an LMR. */
struct object {
	void *handle, *second;
};

struct limit {
	const char *name, *things, *description;
	/* `n` is the number of the object in its set, from 0. */
	DAT_RETURN (*create)(struct set *s, unsigned n, struct object *made);
	DAT_RETURN (*free)(const struct object *made);
	/* Instead of `create`: creates an object of this size. The size doubles from first_size to
	 * last_size, or until that fails. */
	DAT_RETURN (*create_size)(struct set *s, unsigned long size, struct object *made);
	unsigned long first_size, last_size;
	bool with_srq;
};

static unsigned next_qualifier;		/* the next one that a service point tries */

/* --- creation of each object -------------------------------------------------- */

static DAT_RETURN create_ia(struct set *s, unsigned n, struct object *made)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	(void)n;
	return dat_ia_open((char *)s->adapter.name, EVD_LENGTH, &async, &made->handle);
}

static DAT_RETURN free_ia(const struct object *made)
{
	return dat_ia_close(made->handle, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN create_pz(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return dat_pz_create(s->adapter.ia, &made->handle);
}

static DAT_RETURN free_pz(const struct object *made)
{
	return dat_pz_free(made->handle);
}

static DAT_RETURN create_cno(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return dat_cno_create(s->adapter.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &made->handle);
}

static DAT_RETURN free_cno(const struct object *made)
{
	return dat_cno_free(made->handle);
}

static DAT_RETURN create_evd_of(struct set *s, unsigned long length, struct object *made)
{
	return dat_evd_create(s->adapter.ia, (DAT_COUNT)length, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &made->handle);
}

static DAT_RETURN create_evd(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return create_evd_of(s, EVD_LENGTH, made);
}

static DAT_RETURN free_evd(const struct object *made)
{
	return dat_evd_free(made->handle);
}

static DAT_RETURN create_ep(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return dat_ep_create(s->adapter.ia, s->adapter.pz, s->channel.recv, s->channel.request, s->channel.conn, NULL,
			     &made->handle);
}

static DAT_RETURN create_ep_of(struct set *s, unsigned long depth, struct object *made)
{
	DAT_EP_ATTR attr = {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = s->adapter.attr.max_message_size,
		.max_rdma_size = s->adapter.attr.max_rdma_size,
		.max_recv_dtos = (DAT_COUNT)depth, .max_request_dtos = (DAT_COUNT)depth,
		.max_recv_iov = 1, .max_request_iov = 1, .max_rdma_read_iov = 1, .max_rdma_write_iov = 1,
	};

	return dat_ep_create(s->adapter.ia, s->adapter.pz, s->channel.recv, s->channel.request, s->channel.conn, &attr,
			     &made->handle);
}

static DAT_RETURN free_ep(const struct object *made)
{
	return dat_ep_free(made->handle);
}

/* Skips qualifiers that are in use. */
static DAT_RETURN create_psp(struct set *s, unsigned n, struct object *made)
{
	DAT_RETURN rc;

	(void)n;
	do {
		if (next_qualifier > 65535)
			return DAT_INSUFFICIENT_RESOURCES;
		rc = dat_psp_create(s->adapter.ia, next_qualifier++, s->channel.cr, DAT_PSP_CONSUMER_FLAG,
				    &made->handle);
	} while (DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE);
	return rc;
}

static DAT_RETURN free_psp(const struct object *made)
{
	return dat_psp_free(made->handle);
}

static DAT_RETURN create_rsp(struct set *s, unsigned n, struct object *made)
{
	DAT_RETURN rc = create_ep(s, n, made);

	made->second = made->handle;
	if (rc != DAT_SUCCESS)
		return rc;
	do {
		rc = next_qualifier > 65535 ? DAT_INSUFFICIENT_RESOURCES :
			dat_rsp_create(s->adapter.ia, next_qualifier++, made->second, s->channel.cr, &made->handle);
	} while (DAT_GET_TYPE(rc) == DAT_CONN_QUAL_IN_USE);
	if (rc != DAT_SUCCESS)
		dat_ep_free(made->second);
	return rc;
}

static DAT_RETURN free_rsp(const struct object *made)
{
	DAT_RETURN rc = dat_rsp_free(made->handle);

	return rc == DAT_SUCCESS ? dat_ep_free(made->second) : rc;
}

static DAT_RETURN register_memory(struct set *s, void *start, size_t length, struct object *made)
{
	DAT_REGION_DESCRIPTION region = { .for_va = start };
	DAT_LMR_CONTEXT context;
	DAT_RMR_CONTEXT remote;
	DAT_VLEN registered;
	DAT_VADDR address;

	return dat_lmr_create(s->adapter.ia, DAT_MEM_TYPE_VIRTUAL, region, length, s->adapter.pz, DAT_MEM_PRIV_ALL_FLAG,
			      DAT_VA_TYPE_VA, &made->handle, &context, &remote, &registered, &address);
}

static DAT_RETURN create_lmr(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return register_memory(s, s->region.start, BUFFER, made);
}

static DAT_RETURN create_lmr_of(struct set *s, unsigned long size, struct object *made)
{
	void *start = malloc(size);
	DAT_RETURN rc;

	if (!start)
		return DAT_INSUFFICIENT_RESOURCES;
	rc = register_memory(s, start, size, made);
	made->second = start;
	if (rc != DAT_SUCCESS)
		free(start);
	return rc;
}

static DAT_RETURN free_lmr(const struct object *made)
{
	DAT_RETURN rc = dat_lmr_free(made->handle);

	free(made->second);
	return rc;
}

static DAT_RETURN create_rmr(struct set *s, unsigned n, struct object *made)
{
	(void)n;
	return dat_rmr_create(s->adapter.pz, &made->handle);
}

static DAT_RETURN free_rmr(const struct object *made)
{
	return dat_rmr_free(made->handle);
}

static DAT_RETURN create_srq(struct set *s, unsigned n, struct object *made)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 16, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT };

	(void)n;
	return dat_srq_create(s->adapter.ia, s->adapter.pz, &attr, &made->handle);
}

static DAT_RETURN free_srq(const struct object *made)
{
	return dat_srq_free(made->handle);
}

/* Receives are freed with their endpoint or SRQ. */
static DAT_RETURN free_nothing(const struct object *made)
{
	(void)made;
	return DAT_SUCCESS;
}

static DAT_LMR_TRIPLET segment(const struct set *s)
{
	return (DAT_LMR_TRIPLET){ (DAT_VADDR)(uintptr_t)s->region.start, BUFFER, s->region.context };
}

static DAT_RETURN post_receive(struct set *s, unsigned n, struct object *made)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET into = segment(s);

	(void)made;
	return dat_ep_post_recv(s->channel.ep, 1, &into, cookie, DAT_COMPLETION_DEFAULT_FLAG);
}

static DAT_RETURN post_srq(struct set *s, unsigned n, struct object *made)
{
	DAT_DTO_COOKIE cookie = { .as_64 = n };
	DAT_LMR_TRIPLET into = segment(s);

	(void)made;
	return dat_srq_post_recv(s->srq, 1, &into, cookie);
}

static const struct limit limits[] = {
	{ .name = "limit_ia", .things = "IAs opened", .description = "opens of one IA",
	  .create = create_ia, .free = free_ia },
	{ .name = "limit_pz", .things = "PZs created", .description = "protection zones",
	  .create = create_pz, .free = free_pz },
	{ .name = "limit_cno", .things = "CNOs created", .description = "consumer notification objects",
	  .create = create_cno, .free = free_cno },
	{ .name = "limit_evd", .things = "EVDs created", .description = "event dispatchers",
	  .create = create_evd, .free = free_evd },
	{ .name = "limit_ep", .things = "EPs created", .description = "endpoints",
	  .create = create_ep, .free = free_ep },
	{ .name = "limit_rsp", .things = "RSPs created", .description = "reserved service points",
	  .create = create_rsp, .free = free_rsp },
	{ .name = "limit_psp", .things = "PSPs created", .description = "public service points",
	  .create = create_psp, .free = free_psp },
	{ .name = "limit_lmr", .things = "LMRs created", .description = "local memory regions of 4 KiB",
	  .create = create_lmr, .free = free_lmr },
	{ .name = "limit_rpost", .things = "recv buffers posted", .description = "receives of an endpoint",
	  .create = post_receive, .free = free_nothing },
	{ .name = "limit_size_lmr", .things = "LMR", .description = "bytes of a local memory region",
	  .create_size = create_lmr_of, .free = free_lmr, .first_size = BUFFER, .last_size = 1UL << 30 },
	/* the old dapltest does not have the following */
	{ .name = "limit_rmr", .things = "RMRs created", .description = "remote memory regions",
	  .create = create_rmr, .free = free_rmr },
	{ .name = "limit_srq", .things = "SRQs created", .description = "shared receive queues",
	  .create = create_srq, .free = free_srq },
	{ .name = "limit_srq_rpost", .things = "recv buffers posted",
		.description = "receives of a shared receive queue",
	  .create = post_srq, .free = free_nothing, .with_srq = true },
	{ .name = "limit_size_evd", .things = "EVD", .description = "entries of an event dispatcher",
	  .create_size = create_evd_of, .free = free_evd, .first_size = EVD_LENGTH, .last_size = 1UL << 24 },
	{ .name = "limit_size_ep", .things = "EP", .description = "DTOs of an endpoint, in each direction",
	  .create_size = create_ep_of, .free = free_ep, .first_size = 1, .last_size = 1UL << 20 },
};
enum { LIMITS = sizeof limits / sizeof *limits };

/* --- sets --------------------------------------------------------------------- */

static bool open_set(struct set *s, const struct options *o, const struct limit *l)
{
	struct channel_options c = { .receives = 16, .requests = 16, .segments = 1, .qos = o->qos, .wait = WAIT_BLOCK };
	struct object srq;

	if (!adapter_open(&s->adapter, o->device) || !channel_open(&s->channel, &s->adapter, &c) ||
	    !region_create(&s->region, &s->adapter, BUFFER))
		return false;
	if (!l->with_srq)
		return true;
	if (!succeeded_call(create_srq(s, 0, &srq), "dat_srq_create"))
		return false;
	s->srq = srq.handle;
	return true;
}

static void close_set(struct set *s)
{
	channel_close(&s->channel);
	if (s->srq)
		dat_srq_free(s->srq);
	region_free(&s->region);
	adapter_close(&s->adapter);
}

/* --- the tests ---------------------------------------------------------------- */

/* Prints the failure of a call that followed messages_hold(). Returns whether its code is one for a
 * limit. */
static bool is_limit(DAT_RETURN rc, const char *what, unsigned long n)
{
	const char *major = "?", *minor = "", *cause = messages_release(true);

	dat_strerror(rc, &major, &minor);
	printf("LimitTest: %s #%lu fails: %s %s%s%s\n", what, n, major, minor, cause ? ": " : "", cause ? cause : "");
	switch (DAT_GET_TYPE(rc)) {
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_INVALID_PARAMETER:	/* a size above what the attributes of the IA allow */
	case DAT_MODEL_NOT_SUPPORTED:
	case DAT_NOT_IMPLEMENTED:
		return true;
	default:
		return complain("%s: %s found at the limit, DAT_INSUFFICIENT_RESOURCES expected", what, major);
	}
}

static bool create_up_to(const struct limit *l, struct set *sets, unsigned width, unsigned most,
			 struct object *made, unsigned *count)
{
	DAT_RETURN rc;

	for (*count = 0; *count < most; ++*count) {
		messages_hold();
		rc = l->create(&sets[*count % width], *count / width, &made[*count]);
		if (rc != DAT_SUCCESS)
			return is_limit(rc, l->name, *count + 1UL);
		messages_release(false);
	}
	return true;
}

/* Frees all objects, and checks that one can be created again. */
static bool free_and_retry(const struct limit *l, struct set *sets, struct object *made, unsigned count)
{
	struct object again = { 0 };

	while (count--)
		if (!succeeded(l->free(&made[count]), l->name))
			return false;
	if (l->free == free_nothing)
		return true;
	next_qualifier--;	/* for a service point: the last qualifier, which is free again */
	return succeeded_call(l->create(&sets[0], 0, &again), "creating one after all were freed") &&
	       succeeded(l->free(&again), l->name);
}

static bool run_count(const struct limit *l, const struct options *o, struct set *sets)
{
	unsigned most = o->maximum ? o->maximum : MOST, count;
	struct object *made = calloc(most, sizeof *made);
	bool good;

	if (!made)
		return complain("no memory for %u objects", most);
	next_qualifier = o->qualifier;
	good = create_up_to(l, sets, o->width, most, made, &count);
	printf("LimitTest: %s: %u\n", l->things, count);
	if (count)
		good = free_and_retry(l, sets, made, count) && good;
	free(made);
	return good;
}

static bool run_size(const struct limit *l, struct set *sets)
{
	unsigned long size;
	struct object made = { 0 };
	DAT_RETURN rc;

	for (size = l->first_size; size <= l->last_size; size *= 2) {
		messages_hold();
		rc = l->create_size(&sets[0], size, &made);
		if (rc != DAT_SUCCESS) {
			printf("LimitTest: %s of 0x%lx OK, of 0x%lx not\n", l->things,
			       size > l->first_size ? size / 2 : 0, size);
			return is_limit(rc, l->name, size);
		}
		messages_release(false);
		if (!succeeded(l->free(&made), l->name))
			return false;
		made = (struct object){ 0 };
	}
	printf("LimitTest: %s of 0x%lx OK - stopping now.\n", l->things, size / 2);
	return true;
}

static bool run_limit(const struct limit *l, const struct options *o)
{
	static const char line[] = "**********************************************************************";
	struct set *sets = calloc(o->width, sizeof *sets);
	unsigned opened = 0;
	bool good = sets;

	printf("%s\nLimitation Test                      %s\nDescription:  %s\n", line, l->name, l->description);
	while (good && opened < o->width)
		good = open_set(&sets[opened++], o, l);
	if (good)
		good = l->create_size ? run_size(l, sets) : run_count(l, o, sets);
	while (opened)
		close_set(&sets[--opened]);
	free(sets);
	printf("%s\n", line);
	fflush(stdout);
	return good;
}

static const struct limit *find(const char *name)
{
	for (int i = 0; i < LIMITS; i++)
		if (!strcmp(name, limits[i].name))
			return &limits[i];
	usage_error("\"%s\" found, the name of a limit test expected, such as limit_ep", name);
}

int limit_run(const struct options *o)
{
	bool good = true;

	for (int i = 0; i < o->word_count; i++)
		find(o->words[i]);
	for (int i = 0; i < o->word_count; i++)
		good = run_limit(find(o->words[i]), o) && good;
	for (int i = 0; i < LIMITS && !o->word_count; i++)
		good = run_limit(&limits[i], o) && good;
	return good ? 0 : 1;
}
