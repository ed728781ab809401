/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - the messages of the control socket, between a program with open IAs
 * (dapl/core/base/control.c) and the tools (tools/control). doc/design/control.md describes the
 * verbs and their members.
 *
 * The socket is an abstract SOCK_SEQPACKET socket, whose name begins with CONTROL_PREFIX. A message is
 * one packet: a header in host byte order, and `length` bytes of JSON. A request has a flat object
 * (json_read.h), or nothing. An answer is one object in pieces. The client asks for each piece after
 * the first with CONTROL_NEXT, so the program never has more than one piece in the socket. The program
 * speaks first: a packet of the verb CONTROL_NEXT with an empty object, or with the reason why the
 * client gets no answers. */
#ifndef COMMON_CONTROL_H
#define COMMON_CONTROL_H
#include <stdint.h>

/* "dapl1-PID-STARTTIME-DEVICE": STARTTIME is field 22 of /proc/PID/stat, DEVICE "soft" or "verbs".
 * When another socket has this name already, "-2" to "-8" is appended. */
#define CONTROL_PREFIX "dapl1-"

enum control_verb {
	CONTROL_NEXT,		/* the next piece of the answer */
	CONTROL_LIST,		/* the program, and its IAs */
	CONTROL_GET,		/* parameters; "name": one */
	CONTROL_SET,		/* "name", "value" */
	CONTROL_TRACE,		/* "level" */
	CONTROL_DUMP,		/* the trace records in memory */
	CONTROL_COUNTERS,	/* of IAs, endpoints and EVDs */
	CONTROL_ENDPOINTS,
	CONTROL_REREAD,		/* the registry reads its files again */
	CONTROL_SERVICE_POINTS,
	CONTROL_TAP,		/* a capture of messages (tap.h): "client", "snap", "end" */
	CONTROL_VERBS
};

enum control_flag {
	CONTROL_MORE = 1,	/* this is not the last piece */
	CONTROL_FAILED = 2,	/* the object has one member, "error" */
};

struct control_header {
	uint32_t length;	/* of the JSON behind it, bytes */
	uint16_t verb;		/* an answer repeats the request's */
	uint16_t flags;		/* of an answer; 0 in a request */
};
_Static_assert(sizeof(struct control_header) == 8, "no padding is sent");

enum {
	CONTROL_BODY = 16384,		/* bytes of JSON in a packet, at most */
	CONTROL_CLIENTS = 8,		/* connections at a time */
	CONTROL_STALL_MS = 1000,	/* a client that is silent for so long is cut off */
};

#endif
