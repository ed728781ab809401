/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h - the messages of dapltest, in the format of all its versions: which test a client requests, and
 * where memory is. Fields are little-endian here. The first message of a peer shows its byte order. */
#ifndef DAPLTEST_WIRE_H
#define DAPLTEST_WIRE_H
#include <dat/udat.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WIRE_MESSAGE = 8192,		/* bytes of a message on the control connection */
	WIRE_SYNC = 64,			/* bytes of the messages that synchronise the sides of a test */
	WIRE_OPS = 100,			/* operations of a transaction, at most */
	WIRE_PLACE = 12,		/* bytes of the place of a buffer: RMR context and address */
	WIRE_NAME = 256,
	WIRE_VERSION = 6,
};
/* Private data of a transaction's connections, without the final 0. */
#define WIRE_PRIVATE_DATA "DAPL and RDMA rule! Test 4321."

enum test { TEST_TRANSACTION = 1, TEST_PERFORMANCE = 2, TEST_QUIT = 4 };
enum transfer { TRANSFER_READ = 0, TRANSFER_WRITE = 1, TRANSFER_SEND = 2 };

struct op {
	bool by_server;			/* the server initiates it */
	enum transfer transfer;
	unsigned segments, size;	/* of a segment, in bytes */
	bool reap_on_receive;		/* reap the send when the next receive is reaped */
};

struct request {			/* the client's first message */
	enum test test;
	unsigned connections;
};

struct transaction {
	char server[WIRE_NAME], device[WIRE_NAME];
	unsigned iterations, threads, eps, ops;
	bool reserved, debug, validate, poll;
	unsigned qos;
	uint64_t qualifier;
	struct op op[WIRE_OPS];
};

struct performance {
	char server[WIRE_NAME], device[WIRE_NAME];
	unsigned qos, iterations, pipeline;
	bool debug, poll;
	uint64_t qualifier;
	struct op op;
};

struct place {
	DAT_RMR_CONTEXT context;
	DAT_VADDR address;
};

void wire_put_request(char *message, const struct request *r);
/* The functions that return false have printed a line that says what is wrong in the message. */
bool wire_get_request(const char *message, struct request *r);
void wire_put_reply(char *message, uint32_t qualifier);
bool wire_get_reply(const char *message, uint32_t *qualifier);
void wire_put_transaction(char *message, const struct transaction *t);
bool wire_get_transaction(const char *message, struct transaction *t);
void wire_put_performance(char *message, const struct performance *p);
bool wire_get_performance(const char *message, struct performance *p);
void wire_put_quit(char *message, const char *server, const char *device);
void wire_put_place(char *to, const struct place *place);
struct place wire_get_place(const char *from);

#endif
