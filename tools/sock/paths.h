/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* paths.h - which adapters carry a connection to another host. A path is an adapter of this host and the address of
 * one of the other host. The first paths are by the interfaces of the TCP connection's own addresses. The others
 * lead to adapters that the other host has told, by the adapters of this host in whose network they are.
 * Connections take the paths in turn.
 *
 * A connection asks several times until its peer is ready, and keeps its path meanwhile. One that was given a path
 * and asks again, since that has broken, takes the next one. A path on which no service answers rests for a growing
 * time.
 *
 * All tables have places by hashes: an entry may be replaced by another one, which costs a turn or a question. */
#ifndef SOCK_PATHS_H
#define SOCK_PATHS_H
#include <stdbool.h>
#include <stdint.h>
#include "common/sock_service.h"

struct path {
	int ia;			/* point.h */
	uint8_t peer[16];
};

/* The addresses of a TCP connection, as those of an adapter, and its key. */
struct paths_of {
	uint8_t local[16], remote[16];
	uint8_t key[SOCK_SERVICE_KEY];
};

/* The path for a question about this connection. Returns false if there is none. */
bool paths_choose(const struct paths_of *of, struct path *path);
/* Whether there are more paths than when that of the connection was chosen, as after the first question to a host. */
bool paths_outgrown(const struct paths_of *of);
/* The process was told where its peer is on the path. */
void paths_given(const struct paths_of *of);
/* Whether to ask the host at that address of TCP for its list: not once it has refused such a question. */
bool paths_want_list(const uint8_t remote[16]);
void paths_refuse_list(const uint8_t remote[16]);
/* What another host has told, at that address of TCP. */
void paths_learn(const uint8_t remote[16], const uint8_t (*adapters)[16], unsigned count);
/* The adapters on the interface of the other host that has this address of TCP (locate.h). Without it the address
 * is taken for that of an adapter, if that of this host is. */
void paths_locate(const uint8_t remote[16], const uint8_t (*adapters)[16], unsigned count);
/* Whether a question on this path has reached a service. */
void paths_tried(const struct path *path, bool reached);
/* Whether another path is better than this one for the connection: it does not rest. */
bool paths_has_other(const struct paths_of *of, const struct path *path);

#endif
