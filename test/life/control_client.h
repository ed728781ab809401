/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_client.h - a client of the control socket for control.c, which may also violate the protocol. A
 * function without a result ends the test if it does not succeed. */
#ifndef TEST_LIFE_CONTROL_CLIENT_H
#define TEST_LIFE_CONTROL_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

enum { CONTROL_CLIENT_MS = 20000 };	/* more than any answer takes */

/* The last complete answer. */
struct answer {
	bool failed;
	int pieces;
	char text[4 << 20];
};
extern struct answer answer;	/* one thread asks at a time */

/* Reads the names of the control sockets of a process from /proc/net/unix. Returns how many there are. */
int find_names(pid_t pid, char names[][108], int room);
/* Returns the name of the control socket of this process, which must have exactly one. */
const char *name_here(void);

int connect_raw(const char *name);	/* does not read the greeting */
int connect_to(const char *name);	/* reads the greeting */
int connect_here(void);			/* connects to the socket of this process */

/* Receives a packet. Returns its length, 0 if the connection was cut off, or -1 if nothing came. */
ssize_t get_packet(int fd, void *packet, size_t size);
bool send_request(int fd, unsigned verb, const char *body);

/* Asks for all pieces of an answer. Returns false if the connection ends before. */
bool ask_on(int fd, unsigned verb, const char *body);
/* Asks this process on a connection of its own. */
void ask(unsigned verb, const char *body);

/* The answer must contain this. */
void expect_text(const char *part);
/* The socket must refuse this client with this reason. */
void expect_refusal(const char *name, const char *why);
/* The connection must be cut off. Closes the descriptor. */
void expect_cut_off(int fd);

#endif
