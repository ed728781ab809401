/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_server.h - the server by which initiators of other processes take offers: one for all devices of
 * the process. */
#ifndef SOFT_ATTACH_SERVER_H
#define SOFT_ATTACH_SERVER_H
#include <stdbool.h>
#include <stdint.h>

struct dapl_device;

/* The device uses the server from its first offer on. Sets *name, the name of its sockets
 * (attach_socket.h). Returns false and errno if there is none. Progress lock held. */
bool attach_server_use(struct dapl_device *dev, uint64_t *name);
/* The device does not use it any more. */
void attach_server_leave(struct dapl_device *dev);
/* The name of the sockets of this process; 0: it has none. */
uint64_t attach_server_name(void);
void attach_server_fork_prepare(void);
void attach_server_fork_done(void);
void attach_server_fork_child(void);

#endif
