/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - the control connection: a client asks for a test, the server answers with the
 * connection qualifier of the test's first endpoint. */
#ifndef DAPLTEST_CONTROL_H
#define DAPLTEST_CONTROL_H
#include "channel.h"
#include "wire.h"

struct control {
	struct channel channel;
	struct region messages;
};

/* Offsets in the region of messages. */
enum { CONTROL_REQUEST = 0, CONTROL_COMMAND = WIRE_MESSAGE, CONTROL_REPLY = 2 * WIRE_MESSAGE,
       CONTROL_MESSAGES = 3 * WIRE_MESSAGE };

bool control_open(struct control *c, const struct adapter *a, DAT_QOS qos);
void control_close(struct control *c);

/* For the client. Sends the request and the command, which the caller has put into the messages, and stores
 * the qualifier of the server's answer. */
bool control_ask(struct control *c, const struct sockaddr *server, DAT_CONN_QUAL qualifier,
		 const struct request *request, uint32_t *answer);
/* For the server. Waits without limit for a client and its two messages. */
bool control_serve(struct control *c, struct request *request);
bool control_answer(struct control *c, uint32_t qualifier);
/* For the server. Ends the connection of this client in any state, to be ready for the next client. */
bool control_next(struct control *c);

#endif
