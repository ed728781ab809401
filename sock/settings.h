/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.h - the settings of this process: from datsock.conf and DATSOCK_* variables at its start, and changed by
 * datsock config. */
#ifndef SOCK_SETTINGS_H
#define SOCK_SETTINGS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

enum { SETTINGS_TEXT = 1024 }; /* bytes of a list */

struct settings {
	bool enabled;
	char ip_addr_list[SETTINGS_TEXT];    /* networks and "local" */
	char port_range_list[SETTINGS_TEXT]; /* of the server's side */
	char user_list[SETTINGS_TEXT];       /* peers' users beside the own: names, numbers, "any" */
	unsigned long max_memory;            /* MB, of this process */
	unsigned long ring;                  /* bytes of a ring, at most */
	unsigned long spin;                  /* us, at most */
	unsigned long idle;                  /* s; a connection without bytes for so long makes room for others */
	uint64_t after_calls, after_bytes;   /* traffic of a connection before it moves */
	bool log;                            /* one line a connection on stderr */
	char ia[256];                        /* connections of this host move to streams over this IA; empty: memory */
	unsigned test_back;                  /* for tests: one of so many writes ends or begins an epoch; 0: none */
};
extern struct settings settings;

/* Reads datsock.conf and then the environment. A wrong value or an unknown name is reported, and leaves the library
 * disabled. */
void settings_read(void);
/* Changes one setting. Returns NULL, or a clause that says what is wrong; valid until the next call. */
const char *settings_set(const char *name, const char *value);
/* Writes all settings as an object of JSON. */
void settings_write(FILE *out);
/* Writes for each setting where its value is from, as an object of JSON. */
void settings_write_origins(FILE *out);
/* Whether a connection between these addresses may move. */
bool settings_allow(const struct sockaddr *local, const struct sockaddr *peer, bool connector);
/* Whether connections to other hosts may move at all: enabled, with networks beside "local" in ip_addr_list. */
bool settings_have_networks(void);
/* Whether a connection to this address of another host may move. server: the address with the server's port. */
bool settings_allow_network(const struct sockaddr *peer, const struct sockaddr *server);
/* Whether connections to processes of that user may move. The own user may always. */
bool settings_allow_user(uid_t peer, uid_t own);
/* Connections of this process that stream through large rings. Atomic. */
extern int settings_streams;
/* Takes bytes of max_memory, or gives them back. */
bool settings_take_memory(size_t bytes);
void settings_give_memory(size_t bytes);
size_t settings_memory_used(void);

#endif
