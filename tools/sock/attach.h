/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.h - loads the BPF programs of option.h, attaches them to a control group, and pins them in
 * /sys/fs/bpf/datsock: they stay until attach_end() or a restart of the host. For root. */
#ifndef SOCK_ATTACH_H
#define SOCK_ATTACH_H
#include <stdbool.h>

#define ATTACH_DIRECTORY "/sys/fs/bpf/datsock"

/* cgroup: a directory of the control groups' file system (version 2), NULL: its root. Returns NULL, also when they are
 * attached already, or a clause that says what is wrong; valid until the next call. */
const char *attach_begin(const char *cgroup);
bool attach_is_done(void);
/* Detaches. Nothing is left. Returns NULL or a clause. */
const char *attach_end(void);
/* The map of struct option_socket by descriptors of sockets, or a negative errno. */
int attach_open_sockets(void);
/* Reads what the kernel keeps of a TCP socket of this process. Returns 0, ENOENT if it was not marked, or another
 * errno. */
struct option_socket;
int attach_read_socket(int map, int socket, struct option_socket *state);

#endif
