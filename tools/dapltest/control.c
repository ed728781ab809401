/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.c - see control.h. */
#include "control.h"
#include <stddef.h>

static const struct layout whole = { 1, WIRE_MESSAGE, WIRE_MESSAGE };

bool control_open(struct control *c, const struct adapter *a, DAT_QOS qos)
{
	struct channel_options o = { .receives = 8, .requests = 8, .segments = 4, .qos = qos, .wait = WAIT_BLOCK };

	*c = (struct control){ .channel = { 0 } };
	return channel_open(&c->channel, a, &o) && region_create(&c->messages, a, CONTROL_MESSAGES);
}

void control_close(struct control *c)
{
	channel_close(&c->channel);
	region_free(&c->messages);
}

bool control_ask(struct control *c, const struct sockaddr *server, DAT_CONN_QUAL qualifier,
		 const struct request *request, uint32_t *answer)
{
	wire_put_request(c->messages.start + CONTROL_REQUEST, request);
	return channel_post_receive(&c->channel, &c->messages, CONTROL_REPLY, whole) &&
	       channel_connect(&c->channel, server, qualifier, NULL, 0) &&
	       channel_send(&c->channel, &c->messages, CONTROL_REQUEST, WIRE_MESSAGE) &&
	       channel_send(&c->channel, &c->messages, CONTROL_COMMAND, WIRE_MESSAGE) &&
	       channel_receive(&c->channel, WIRE_MESSAGE, "the server's answer") &&
	       wire_get_reply(c->messages.start + CONTROL_REPLY, answer);
}

bool control_serve(struct control *c, struct request *request)
{
	return channel_post_receive(&c->channel, &c->messages, CONTROL_REQUEST, whole) &&
	       channel_post_receive(&c->channel, &c->messages, CONTROL_COMMAND, whole) &&
	       channel_accept(&c->channel, NULL, 0, DAT_TIMEOUT_INFINITE) &&
	       channel_receive(&c->channel, WIRE_MESSAGE, "a client's request") &&
	       channel_receive(&c->channel, WIRE_MESSAGE, "a client's command") &&
	       wire_get_request(c->messages.start + CONTROL_REQUEST, request);
}

bool control_answer(struct control *c, uint32_t qualifier)
{
	wire_put_reply(c->messages.start + CONTROL_REPLY, qualifier);
	return channel_send(&c->channel, &c->messages, CONTROL_REPLY, WIRE_MESSAGE);
}

bool control_next(struct control *c)
{
	channel_disconnect(&c->channel, DAT_CLOSE_GRACEFUL_FLAG);
	return channel_reset(&c->channel);
}
