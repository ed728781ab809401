/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clients.h - the processes that datsockd serves: their requests (common/sock_service.h), and the connections that they
 * expect. Each user has limits. Nothing that a process does makes the service wait. */
#ifndef SOCK_CLIENTS_H
#define SOCK_CLIENTS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/sock_service.h"
#include "tools/sock/paths.h"

/* Listens at the path. `sockets`: the map of attach_open_sockets(). Returns 0 or an errno. */
int clients_open(const char *path, int sockets);
void clients_close(void);
/* Does what is due. Returns whether anything waits for a time. */
bool clients_tick(void);

/* The answer to the question of a peer's service, which has come to that IA: whether a process expects the connection
 * with that key, and where. A process that expects it on another IA is told to expect it there. */
enum sock_service_code clients_find(const uint8_t key[SOCK_SERVICE_KEY], int ia, uint16_t *qualifier);

/* A question that a process has asked, on its way to the peer's service. */
struct clients_ask {
	uint64_t client;		/* number of the process's connection to this service */
	uid_t user;
	uint32_t id;			/* of the request */
	struct paths_of of;
	struct path path;
};
/* Its end. */
void clients_answered(const struct clients_ask *ask, enum sock_service_result result, uint16_t qualifier);

#endif
