/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sockservice_fuzz.c - any bytes as a message between a process and datsockd, or as private data of a DAT connect
 * or a datagram between two datsockd (common/sock_service.h): no access outside of them, and what is accepted keeps
 * the promises of the header.
 *
 * The first byte of an input selects what the others are. */
#include "common/sock_service.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum kind { REQUEST, ANSWER, QUESTION, REPLY, DATAGRAM, KINDS };

static void demand(bool good)
{
	if (!good)
		abort();
}

static void take_request(const struct sock_service_request *r, size_t size)
{
	if (!sock_service_is_request(r, size))
		return;
	demand(size == sizeof *r && !r->reserved);
	demand(r->type == SOCK_SERVICE_EXPECT || r->type == SOCK_SERVICE_HERE || r->type == SOCK_SERVICE_ASK ||
	       r->type == SOCK_SERVICE_FORGET);
	/* datsockd keeps 16 bits. */
	demand(r->type == SOCK_SERVICE_HERE ? (uint16_t)r->qualifier && r->qualifier < 65536 : !r->qualifier);
}

static void take_answer(const struct sock_service_answer *a, size_t size)
{
	if (!sock_service_is_answer(a, size))
		return;
	demand(size == sizeof *a && strlen(a->ia) < SOCK_SERVICE_IA && a->result < SOCK_SERVICE_RESULTS);
	demand(a->type == SOCK_SERVICE_EXPECT || a->type == SOCK_SERVICE_ASK);
	if (!a->result && a->type == SOCK_SERVICE_ASK)
		demand(a->qualifier && a->qualifier < 65536);
}

/* What is accepted is what this version writes, but for zeros that a transport appends behind `end`. */
static void compare(const uint8_t *data, size_t size, const uint8_t *wanted, size_t wanted_size, size_t end)
{
	demand(size >= wanted_size && !memcmp(data, wanted, wanted_size));
	for (size_t i = end; i < size; i++)
		demand(!data[i]);
}

static void take_question(const uint8_t *data, size_t size)
{
	uint8_t key[SOCK_SERVICE_KEY], again[SOCK_SERVICE_PRIVATE];

	if (sock_service_decode_link(data, size, key)) {
		sock_service_encode_link(again, key);
		compare(data, size, again, sizeof again, sizeof again);
		return;
	}
	if (!sock_service_decode_question(data, size, key))
		return;
	sock_service_encode_question(again, key);
	if (sock_service_asks_for_adapters(data))
		sock_service_ask_for_adapters(again);
	compare(data, size, again, sizeof again, sizeof again);
}

static void take_reply(const uint8_t *data, size_t size)
{
	enum sock_service_code code;
	uint8_t again[SOCK_SERVICE_REPLY], adapters[SOCK_SERVICE_ADAPTERS][16];
	uint16_t qualifier;
	unsigned count;

	if (!sock_service_decode_reply(data, size, &code, &qualifier))
		return;
	demand((code == SOCK_SERVICE_REDIRECT) == (qualifier != 0));
	sock_service_encode_reply(again, code, qualifier);
	count = sock_service_decode_adapters(data, size, adapters);
	demand(count <= SOCK_SERVICE_ADAPTERS);
	sock_service_encode_adapters(again, adapters, count);
	compare(data, size, again, SOCK_SERVICE_PRIVATE + 16 * count, sizeof again);
}

static void take_datagram(const uint8_t *data, size_t size)
{
	enum sock_service_datagram kind;
	uint8_t nonce[SOCK_SERVICE_KEY], again[SOCK_SERVICE_REPLY], adapters[SOCK_SERVICE_ADAPTERS][16];
	unsigned count;

	if (!sock_service_decode_datagram(data, size, &kind, nonce))
		return;
	demand(size == SOCK_SERVICE_REPLY);
	count = sock_service_decode_adapters(data, size, adapters);
	demand(count <= (kind == SOCK_SERVICE_LOCATED ? SOCK_SERVICE_ADAPTERS : 0));
	sock_service_encode_datagram(again, kind, nonce);
	demand(!memcmp(data, again, SOCK_SERVICE_PRIVATE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum kind kind;
	void *copy;

	if (!size)
		return 0;
	kind = data[0] % KINDS;
	data++, size--;
	/* Of exactly this size, so that an access behind it shows; none at all for a peer that sends nothing. */
	copy = size ? malloc(size) : NULL;
	demand(copy || !size);
	if (size)
		memcpy(copy, data, size);
	if (kind == REQUEST)
		take_request(copy, size);
	else if (kind == ANSWER)
		take_answer(copy, size);
	else if (kind == QUESTION)
		take_question(copy, size);
	else if (kind == REPLY)
		take_reply(copy, size);
	else
		take_datagram(copy, size);
	free(copy);
	return 0;
}
