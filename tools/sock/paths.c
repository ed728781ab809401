/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* paths.c - see paths.h. */
#include "tools/sock/paths.h"
#include <string.h>
#include "tools/sock/loop.h"
#include "tools/sock/point.h"

enum {
	PATHS = 64,		/* of a connection that are looked at */
	HOSTS = 256,		/* whose adapters are known */
	CHOICES = 1024,		/* connections that keep their path */
	RESTS = 256,		/* paths that have failed */
	REST_MS = 1000,		/* a path rests so long at first, then twice as long each time */
	REST_MOST_MS = 64000,
	ASKS = 32,		/* of a connection on one path; a process that does not listen by then never does */
};

struct host {
	uint8_t address[16];
	bool without_list;	/* its service knows of none */
	unsigned count, turn;
	uint8_t adapters[SOCK_SERVICE_ADAPTERS][16];
	unsigned beside_count;
	uint8_t beside[SOCK_SERVICE_ADAPTERS][16];	/* on the interface of this address */
};

struct choice {
	uint8_t key[SOCK_SERVICE_KEY];
	struct path path;
	unsigned count;		/* paths that there were to choose from */
	unsigned asks;
	bool given;
};

struct rest {
	struct path path;
	uint64_t until;		/* ms */
	unsigned ms;		/* 0: the path is good */
};

static struct host hosts[HOSTS];
static struct choice choices[CHOICES];
static struct rest rests[RESTS];

static unsigned hash(const uint8_t *bytes, size_t size)
{
	unsigned h = 0;

	while (size--)
		h = h * 31 + *bytes++;
	return h;
}

static struct host *host_of(const uint8_t address[16])
{
	struct host *h = &hosts[hash(address, 16) % HOSTS];

	if (memcmp(h->address, address, 16)) {
		*h = (struct host){ 0 };
		memcpy(h->address, address, 16);
	}
	return h;
}

/* Keys are random numbers. */
static struct choice *choice_of(const uint8_t key[SOCK_SERVICE_KEY])
{
	return &choices[(key[0] | key[1] << 8) % CHOICES];
}

static bool is_same(const struct path *a, const struct path *b)
{
	return a->ia == b->ia && !memcmp(a->peer, b->peer, 16);
}

static struct rest *rest_of(const struct path *path)
{
	return &rests[(hash(path->peer, 16) + (unsigned)path->ia) % RESTS];
}

static bool is_resting(const struct path *path)
{
	const struct rest *r = rest_of(path);

	return r->ms && is_same(&r->path, path) && loop_now_ms() < r->until;
}

static bool has(const struct path *paths, unsigned count, const struct path *path)
{
	while (count)
		if (is_same(&paths[--count], path))
			return true;
	return false;
}

/* Stores all paths between the hosts of a connection whose adapters are open here. */
static unsigned list_all(const struct paths_of *of, struct path paths[PATHS])
{
	const struct host *h = host_of(of->remote);
	struct path path = { .ia = point_beside(of->local) };
	unsigned count = 0;

	for (unsigned i = 0; i < h->beside_count && path.ia >= 0; i++) {
		memcpy(path.peer, h->beside[i], 16);
		paths[count++] = path;
	}
	memcpy(path.peer, of->remote, 16);
	if (!count && path.ia >= 0 && path.ia == point_for(of->local))
		paths[count++] = path;
	for (unsigned i = 0; i < h->count; i++) {
		memcpy(path.peer, h->adapters[i], 16);
		for (path.ia = 0; path.ia < point_count() && count < PATHS; path.ia++)
			if (point_is_near(path.ia, path.peer) && !has(paths, count, &path))
				paths[count++] = path;
	}
	return count;
}

/* Leaves those that do not rest. If all do, the one that has rested longest. */
static unsigned drop_resting(struct path paths[PATHS], unsigned count)
{
	unsigned left = 0;
	struct path first;

	if (!count)
		return 0;
	first = paths[0];
	for (unsigned i = 0; i < count; i++) {
		if (!is_resting(&paths[i]))
			paths[left++] = paths[i];
		else if (rest_of(&paths[i])->until < rest_of(&first)->until)
			first = paths[i];
	}
	if (!left)
		paths[left++] = first;
	return left;
}

bool paths_choose(const struct paths_of *of, struct path *path)
{
	struct path paths[PATHS];
	unsigned count = drop_resting(paths, list_all(of, paths)), at = 0;
	struct choice *c = choice_of(of->key);
	bool known = !memcmp(c->key, of->key, sizeof c->key);

	if (!count)
		return false;
	while (at < count && !(known && is_same(&paths[at], &c->path)))
		at++;
	if (at < count && !c->given && c->count < count)
		at = count;
	if (at == count || c->given || c->asks >= ASKS) {
		at = at < count ? at + 1 : host_of(of->remote)->turn++;
		*c = (struct choice){ .path = paths[at % count], .count = count };
		memcpy(c->key, of->key, sizeof c->key);
	}
	c->asks++;
	*path = c->path;
	return true;
}

bool paths_outgrown(const struct paths_of *of)
{
	struct path paths[PATHS];
	const struct choice *c = choice_of(of->key);

	return !memcmp(c->key, of->key, sizeof c->key) && c->count < drop_resting(paths, list_all(of, paths));
}

void paths_given(const struct paths_of *of)
{
	struct choice *c = choice_of(of->key);

	if (!memcmp(c->key, of->key, sizeof c->key))
		c->given = true;
}

bool paths_want_list(const uint8_t remote[16])
{
	return !host_of(remote)->without_list;
}

void paths_refuse_list(const uint8_t remote[16])
{
	host_of(remote)->without_list = true;
}

void paths_learn(const uint8_t remote[16], const uint8_t (*adapters)[16], unsigned count)
{
	struct host *h = host_of(remote);

	h->count = count;
	if (count)
		memcpy(h->adapters, adapters, 16 * count);
}

void paths_locate(const uint8_t remote[16], const uint8_t (*adapters)[16], unsigned count)
{
	struct host *h = host_of(remote);

	h->beside_count = count;
	if (count)
		memcpy(h->beside, adapters, 16 * count);
}

void paths_tried(const struct path *path, bool reached)
{
	struct rest *r = rest_of(path);
	bool known = r->ms && is_same(&r->path, path);

	if (reached && known)
		r->ms = 0;
	/* Several questions may have been under way. */
	if (reached || is_resting(path))
		return;
	r->ms = !known ? REST_MS : 2 * r->ms < REST_MOST_MS ? 2 * r->ms : REST_MOST_MS;
	r->until = loop_now_ms() + r->ms;
	r->path = *path;
}

bool paths_has_other(const struct paths_of *of, const struct path *path)
{
	struct path paths[PATHS];
	unsigned count = list_all(of, paths);

	while (count) {
		count--;
		if (!is_same(&paths[count], path) && !is_resting(&paths[count]))
			return true;
	}
	return false;
}
