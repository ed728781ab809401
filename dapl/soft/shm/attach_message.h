/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_message.h - the two messages by which processes exchange descriptors over a Unix socket: the
 * initiator's request and the acceptor's reply. Each comes whole, with its descriptors, or not at
 * all. */
#ifndef SOFT_ATTACH_MESSAGE_H
#define SOFT_ATTACH_MESSAGE_H
#include <stdbool.h>
#include <stdint.h>
#include "dapl/soft/shm/process.h"

/* Beside it: the PROCESS_FDS descriptors of the initiator. */
struct attach_request {
	char greeting[8];
	uint64_t key, process;		/* of the offer; id of the initiator */
};

/* Beside it: the descriptor of the segment, then the PROCESS_FDS descriptors of the acceptor. */
struct attach_reply {
	char greeting[8];
	uint64_t process;		/* id of the acceptor */
};

enum { ATTACH_REQUEST_FDS = PROCESS_FDS, ATTACH_REPLY_FDS = 1 + PROCESS_FDS };

/* Send a message. Return 0, or -1 and errno. */
int attach_send_request(int fd, struct attach_request *request, const struct shm_process *own);
int attach_send_reply(int fd, struct attach_reply *reply, int segment_file,
		      const struct shm_process *own);
/* Receive a message. Return 1 with all its descriptors, 0 if nothing has come yet, or -1 and errno if
 * what came is not such a message. */
int attach_receive_request(int fd, struct attach_request *request, int fds[ATTACH_REQUEST_FDS]);
int attach_receive_reply(int fd, struct attach_reply *reply, int fds[ATTACH_REPLY_FDS]);

#endif
