/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.h - the library's thread of a process: how the ends of a connection find each other and agree to move,
 * answers to the peer's wish to go back, and requests of datsock. It starts with the first connection that wants to
 * move. */
#ifndef SOCK_SERVICE_H
#define SOCK_SERVICE_H
#include "sock/conn_types.h"

/* The connection has shown traffic. No lock held. */
void service_ask(struct conn *c);
/* Sends bytes on that came back from the ring. out_lock held. */
void service_watch_resend(struct conn *c);
/* Asks the peer's library to end its epoch. Returns false if the peer is gone. Both locks held. */
bool service_send_back(struct conn *c);
/* The connection has no descriptor any more; the object is freed when nothing uses it. */
void service_closed(struct conn *c);
bool service_is_this_thread(void);
bool service_is_running(void);
/* Makes the thread look at what is due. Any thread. */
void service_wake(void);
/* Both directions of a stream over DAT are on TCP again. `broken`: the DAT connection has ended. */
void service_remote_back(struct conn *c, bool broken);
/* Whether a thread of this process is about to fork: no stream over DAT is opened meanwhile. */
bool service_is_forking(void);
void service_set_forking(bool forking);
/* A stream to another process by DAT was opened, and the connection is attached (why 0), or it was not. */
void service_remote_opened(struct conn *c, enum dat_socket_why why);
/* datsockd has answered the question of hosts_ask(). */
struct hosts_answer;
void service_host_answered(struct conn *c, const struct hosts_answer *answer);
/* Counts of the process, for datsock stat. */
struct service_counts {
	uint64_t connections, moved, closed, refused[32], backs[32];
	uint64_t foreign;   /* of those that moved: to peers of other users */
	uint64_t strangers; /* processes that came for a connection, or asked, and may not */
};
extern struct service_counts service_counts;
/* Keeps connections from coming and going until service_after_fork(). Returns false, and does not, if there is one that
 * the fork of this number has not counted. */
bool service_before_fork(unsigned number);
void service_after_fork(bool in_child);

#endif
