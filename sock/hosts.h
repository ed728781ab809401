/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hosts.h - asks datsockd(8) of this host for the other end of a TCP connection between hosts. The end that called
 * connect() learns the key of the connection, and where the peer's process listens by DAT; the end that accepted learns
 * the key, and says where it listens. Only the service thread calls it. Not responsible for: the stream (remote.h). */
#ifndef SOCK_HOSTS_H
#define SOCK_HOSTS_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include "common/sock_service.h"
#include "sock/conn_types.h"

struct hosts_answer {
	enum sock_service_result result; /* the rest holds if it is OK */
	unsigned char key[SOCK_SERVICE_KEY];
	const char *ia;
	struct sockaddr_storage peer; /* where the peer's process listens; for the end that called connect() */
	uint64_t qualifier;
};

/* Begins to ask. service_host_answered() will tell, unless hosts_forget() comes before. Returns 0 or an errno: ENOENT
 * if there has been no service yet, others if it does not take questions now. */
int hosts_ask(struct conn *c);
/* After an answer: peers that know the key find this process at the qualifier, until hosts_forget(). */
void hosts_here(struct conn *c, uint64_t qualifier);
void hosts_forget(struct conn *c);
/* The descriptor that is readable when hosts_dispatch() has something to do; -1: there is none. It changes when the
 * service has begun again. */
int hosts_fd(void);
void hosts_dispatch(void);
void hosts_after_fork(void);

#endif
