/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_client.h - a client of the control socket, as control.c needs it: also one that violates the protocol.
 * A function ends the test if what it says does not come about, unless it returns a result. */
#ifndef TEST_LIFE_CONTROL_CLIENT_H
#define TEST_LIFE_CONTROL_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

enum { CONTROL_CLIENT_MS = 20000 };	/* more than any answer takes */

/* The last answer that came whole. */
struct answer {
	bool failed;
	int pieces;
	char text[4 << 20];
};
extern struct answer answer;	/* one thread asks at a time */

/* Names of the control sockets of a process, by /proc/net/unix. Returns how many there are. */
int find_names(pid_t pid, char names[][108], int room);
/* That of this process, which has one. */
const char *name_here(void);

/* A connection whose first packet has not been read. */
int connect_raw(const char *name);
int connect_to(const char *name);
int connect_here(void);

/* One packet. Returns -1: nothing came; 0: the connection was cut off. */
ssize_t get_packet(int fd, void *packet, size_t size);
bool send_request(int fd, unsigned verb, const char *body);

/* Asks for all pieces of an answer. Returns false if the connection ends before. */
bool ask_on(int fd, unsigned verb, const char *body);
/* Asks this process on a connection of its own. */
void ask(unsigned verb, const char *body);

/* The answer contains this. */
void expect_text(const char *part);
/* The socket refuses this client, and says why. */
void expect_refusal(const char *name, const char *why);
/* Nothing more comes; closes the descriptor. */
void expect_cut_off(int fd);

#endif
