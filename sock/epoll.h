/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* epoll.h - epoll instances of the program that hold connections. While a connection is attached, the kernel reports
 * its TCP socket and its wake-up descriptor to the library, which makes the program's events of them and of the rings.
 */
#ifndef SOCK_EPOLL_H
#define SOCK_EPOLL_H
#include <signal.h>
#include "sock/conn_types.h"

void epoll_track(int fd);
/* The program closes a descriptor of an epoll instance. */
void epoll_forget(int fd);
/* Another poll or epoll watches this instance: its connections go back to TCP and stay there. */
void epoll_is_nested(struct epoll *ep);

int epoll_control(int epfd, int op, int fd, struct epoll_event *event);
int epoll_sleep(int epfd, struct epoll *ep, struct epoll_event *events, int max, const struct timespec *timeout,
		const sigset_t *mask);

/* Both conn locks held. */
bool epoll_attach(struct conn *c);
void epoll_detach(struct conn *c);
/* out_lock held: the sending direction has changed its carrier. */
void epoll_out_changed(struct conn *c);
/* The last descriptor of a connection closes, or its object is given up: drops its registrations. out_lock held. */
void epoll_drop(struct conn *c);
/* Frees what was dropped. No lock held. */
void epoll_free_dead(struct conn *c);
/* Whether the descriptor itself was registered. */
bool epoll_has(struct conn *c, int fd);

#endif
