/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.c - see wire.h. Offsets are in bytes from the start of a message. */
#include "wire.h"
#include "channel.h"
#include <endian.h>
#include <string.h>

/* Every message but Quit begins with these. */
enum { VERSION = 0, LITTLE_ENDIAN_PEER = 4 };
enum { REQUEST_TEST = 8, REQUEST_CONNECTIONS = 12 };
enum { REPLY_QUALIFIER = 8 };
enum { QUIT_SERVER = 0, QUIT_DEVICE = 256 };
enum {
	TRANSACTION_SERVER = 8, TRANSACTION_ITERATIONS = 264, TRANSACTION_THREADS = 268, TRANSACTION_EPS = 272,
	TRANSACTION_RESERVED = 280, TRANSACTION_DEBUG = 284, TRANSACTION_VALIDATE = 288, TRANSACTION_POLL = 292,
	TRANSACTION_QUALIFIER = 296, TRANSACTION_DEVICE = 304, TRANSACTION_QOS = 560, TRANSACTION_OPS = 564,
	TRANSACTION_OP = 568,
	OP_BY_SERVER = 0, OP_TRANSFER = 4, OP_SEGMENTS = 8, OP_SIZE = 12, OP_REAP = 16, OP_LENGTH = 20,
};
enum {
	PERFORMANCE_SERVER = 8, PERFORMANCE_DEVICE = 264, PERFORMANCE_QOS = 520, PERFORMANCE_DEBUG = 524,
	PERFORMANCE_POLL = 528, PERFORMANCE_ITERATIONS = 532, PERFORMANCE_PIPELINE = 536,
	PERFORMANCE_TRANSFER = 540, PERFORMANCE_SIZE = 544, PERFORMANCE_SEGMENTS = 548,
	PERFORMANCE_QUALIFIER = 556,
};

static void put32(char *message, size_t offset, uint32_t value)
{
	value = htole32(value);
	memcpy(message + offset, &value, sizeof value);
}

static uint32_t get32(const char *message, size_t offset)
{
	uint32_t value;

	memcpy(&value, message + offset, sizeof value);
	return le32toh(value);
}

static void put64(char *message, size_t offset, uint64_t value)
{
	value = htole64(value);
	memcpy(message + offset, &value, sizeof value);
}

static uint64_t get64(const char *message, size_t offset)
{
	uint64_t value;

	memcpy(&value, message + offset, sizeof value);
	return le64toh(value);
}

static void put_name(char *message, size_t offset, const char *name)
{
	memcpy(message + offset, name, strnlen(name, WIRE_NAME - 1));
}

static void get_name(const char *message, size_t offset, char name[WIRE_NAME])
{
	memcpy(name, message + offset, WIRE_NAME);
	name[WIRE_NAME - 1] = '\0';
}

static void begin(char *message)
{
	memset(message, 0, WIRE_MESSAGE);
	put32(message, VERSION, WIRE_VERSION);
	put32(message, LITTLE_ENDIAN_PEER, 1);
}

static bool expect_begin(const char *message)
{
	if (get32(message, VERSION) == htobe32(htole32(WIRE_VERSION)))
		return complain("the peer is a dapltest on a big-endian machine, which is not supported");
	if (get32(message, VERSION) != WIRE_VERSION)
		return complain("version of the peer's dapltest: %u found, %d expected", get32(message, VERSION),
				WIRE_VERSION);
	if (get32(message, LITTLE_ENDIAN_PEER) != 1)
		return complain("the peer is a dapltest on a big-endian machine, which is not supported");
	return true;
}

void wire_put_request(char *message, const struct request *r)
{
	begin(message);
	put32(message, REQUEST_TEST, r->test);
	put32(message, REQUEST_CONNECTIONS, r->connections);
}

bool wire_get_request(const char *message, struct request *r)
{
	if (!expect_begin(message))
		return false;
	r->test = (enum test)get32(message, REQUEST_TEST);
	r->connections = get32(message, REQUEST_CONNECTIONS);
	if (r->test != TEST_TRANSACTION && r->test != TEST_PERFORMANCE && r->test != TEST_QUIT)
		return complain("a client's request: test %u found, 1, 2 or 4 expected", (unsigned)r->test);
	return true;
}

void wire_put_reply(char *message, uint32_t qualifier)
{
	begin(message);
	put32(message, REPLY_QUALIFIER, qualifier);
}

bool wire_get_reply(const char *message, uint32_t *qualifier)
{
	*qualifier = get32(message, REPLY_QUALIFIER);
	return expect_begin(message);
}

static void put_op(char *message, size_t offset, const struct op *op)
{
	put32(message, offset + OP_BY_SERVER, op->by_server);
	put32(message, offset + OP_TRANSFER, op->transfer);
	put32(message, offset + OP_SEGMENTS, op->segments);
	put32(message, offset + OP_SIZE, op->size);
	put32(message, offset + OP_REAP, op->reap_on_receive);
}

static bool valid_op(const struct op *op)
{
	if (op->transfer > TRANSFER_SEND || op->segments < 1 || op->segments > MAX_SEGMENTS || op->size < 1 ||
	    op->size > 1U << 30)
		return complain("a client's operation: transfer %u, %u segments of %u bytes found; 0 to 2, 1 to %d and "
				"up to 2^30 expected", (unsigned)op->transfer, op->segments, op->size, MAX_SEGMENTS);
	return true;
}

void wire_put_transaction(char *message, const struct transaction *t)
{
	begin(message);
	put_name(message, TRANSACTION_SERVER, t->server);
	put32(message, TRANSACTION_ITERATIONS, t->iterations);
	put32(message, TRANSACTION_THREADS, t->threads);
	put32(message, TRANSACTION_EPS, t->eps);
	put32(message, TRANSACTION_RESERVED, t->reserved);
	put32(message, TRANSACTION_DEBUG, t->debug);
	put32(message, TRANSACTION_VALIDATE, t->validate);
	put32(message, TRANSACTION_POLL, t->poll);
	put64(message, TRANSACTION_QUALIFIER, t->qualifier);
	put_name(message, TRANSACTION_DEVICE, t->device);
	put32(message, TRANSACTION_QOS, t->qos);
	put32(message, TRANSACTION_OPS, t->ops);
	for (unsigned i = 0; i < t->ops; i++)
		put_op(message, TRANSACTION_OP + (size_t)i * OP_LENGTH, &t->op[i]);
}

bool wire_get_transaction(const char *message, struct transaction *t)
{
	get_name(message, TRANSACTION_SERVER, t->server);
	get_name(message, TRANSACTION_DEVICE, t->device);
	t->iterations = get32(message, TRANSACTION_ITERATIONS);
	t->threads = get32(message, TRANSACTION_THREADS);
	t->eps = get32(message, TRANSACTION_EPS);
	t->reserved = get32(message, TRANSACTION_RESERVED);
	t->debug = get32(message, TRANSACTION_DEBUG);
	t->validate = get32(message, TRANSACTION_VALIDATE);
	t->poll = get32(message, TRANSACTION_POLL);
	t->qualifier = get64(message, TRANSACTION_QUALIFIER);
	t->qos = get32(message, TRANSACTION_QOS);
	t->ops = get32(message, TRANSACTION_OPS);
	if (t->ops > WIRE_OPS || t->threads < 1 || t->threads > 1000 || t->eps < 1 || t->eps > 1000)
		return complain("a client's transaction: %u operations, %u threads, %u endpoints found; up to %d, 1000 "
				"and 1000 expected", t->ops, t->threads, t->eps, WIRE_OPS);
	for (unsigned i = 0; i < t->ops; i++) {
		size_t at = TRANSACTION_OP + (size_t)i * OP_LENGTH;

		t->op[i] = (struct op){
			.by_server = get32(message, at + OP_BY_SERVER),
			.transfer = (enum transfer)get32(message, at + OP_TRANSFER),
			.segments = get32(message, at + OP_SEGMENTS),
			.size = get32(message, at + OP_SIZE),
			.reap_on_receive = get32(message, at + OP_REAP),
		};
		if (!valid_op(&t->op[i]))
			return false;
	}
	return true;
}

void wire_put_performance(char *message, const struct performance *p)
{
	begin(message);
	put_name(message, PERFORMANCE_SERVER, p->server);
	put_name(message, PERFORMANCE_DEVICE, p->device);
	put32(message, PERFORMANCE_QOS, p->qos);
	put32(message, PERFORMANCE_DEBUG, p->debug);
	put32(message, PERFORMANCE_POLL, p->poll);
	put32(message, PERFORMANCE_ITERATIONS, p->iterations);
	put32(message, PERFORMANCE_PIPELINE, p->pipeline);
	put32(message, PERFORMANCE_TRANSFER, p->op.transfer);
	put32(message, PERFORMANCE_SIZE, p->op.size);
	put32(message, PERFORMANCE_SEGMENTS, p->op.segments);
	put64(message, PERFORMANCE_QUALIFIER, p->qualifier);
}

bool wire_get_performance(const char *message, struct performance *p)
{
	get_name(message, PERFORMANCE_SERVER, p->server);
	get_name(message, PERFORMANCE_DEVICE, p->device);
	p->qos = get32(message, PERFORMANCE_QOS);
	p->debug = get32(message, PERFORMANCE_DEBUG);
	p->poll = get32(message, PERFORMANCE_POLL);
	p->iterations = get32(message, PERFORMANCE_ITERATIONS);
	p->pipeline = get32(message, PERFORMANCE_PIPELINE);
	p->qualifier = get64(message, PERFORMANCE_QUALIFIER);
	p->op = (struct op){
		.transfer = (enum transfer)get32(message, PERFORMANCE_TRANSFER),
		.size = get32(message, PERFORMANCE_SIZE),
		.segments = get32(message, PERFORMANCE_SEGMENTS),
	};
	return valid_op(&p->op);
}

void wire_put_quit(char *message, const char *server, const char *device)
{
	memset(message, 0, WIRE_MESSAGE);
	put_name(message, QUIT_SERVER, server);
	put_name(message, QUIT_DEVICE, device);
}

void wire_put_place(char *to, const struct place *place)
{
	put32(to, 0, place->context);
	put64(to, 4, place->address);
}

struct place wire_get_place(const char *from)
{
	return (struct place){ .context = get32(from, 0), .address = get64(from, 4) };
}
