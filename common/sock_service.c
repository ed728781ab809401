/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sock_service.c - encodes and checks what sock_service.h describes. */
#include "common/sock_service.h"
#include <endian.h>
#include <string.h>

/* question: name (8), version (1), kind (1), 1 if it asks for the list (1), zeros (5), key (16)
 * reply: name (8), code (1), zeros (5), qualifier (2), zeros (16), list of addresses (16 each)
 * datagram: name (8), version (1), kind (1), zeros (6), nonce (16), list of addresses (16 each); LOCATE has none */
static const char name[8] = "DATSOCK1";
enum {
	VERSION_AT = 8,
	KIND_AT = 9,
	LIST_AT = 10,
	QUESTION_ZEROS_AT = 11,
	KEY_AT = 16,
	CODE_AT = 8,
	REPLY_ZEROS_AT = 9,
	QUALIFIER_AT = 14,
	REPLY_END = 16,
	ADAPTERS_AT = SOCK_SERVICE_PRIVATE,
	KIND_SERVICE = 2,
	KIND_PROCESS = 3,
	LINK_VERSION = 2, /* of what the processes say to each other then */
};

bool sock_service_is_request(const struct sock_service_request *r, size_t size)
{
	return size == sizeof *r && r->magic == SOCK_SERVICE_MAGIC && r->version == SOCK_SERVICE_VERSION &&
	       r->type >= SOCK_SERVICE_EXPECT && r->type <= SOCK_SERVICE_FORGET && !r->reserved &&
	       (r->type == SOCK_SERVICE_HERE ? r->qualifier && r->qualifier <= UINT16_MAX : !r->qualifier);
}

bool sock_service_is_answer(const struct sock_service_answer *a, size_t size)
{
	return size == sizeof *a && a->magic == SOCK_SERVICE_MAGIC && a->version == SOCK_SERVICE_VERSION &&
	       (a->type == SOCK_SERVICE_EXPECT || a->type == SOCK_SERVICE_ASK) && a->result < SOCK_SERVICE_RESULTS &&
	       memchr(a->ia, 0, sizeof a->ia) &&
	       (a->result || a->type == SOCK_SERVICE_EXPECT || (a->qualifier && a->qualifier <= UINT16_MAX));
}

static bool is_zero(const uint8_t *bytes, size_t from, size_t to)
{
	while (from < to)
		if (bytes[from++])
			return false;
	return true;
}

/* Whether data begin with the name, and have only zeros in two places: in [from, to), which is reserved, and from `end`
 * on. A version that gives these bytes a meaning is not misread. */
static bool is_ours(const void *data, size_t size, size_t from, size_t to, size_t end)
{
	return data && size >= SOCK_SERVICE_PRIVATE && !memcmp(data, name, sizeof name) && is_zero(data, from, to) &&
	       is_zero(data, end, size);
}

void sock_service_encode_question(uint8_t data[SOCK_SERVICE_PRIVATE], const uint8_t key[SOCK_SERVICE_KEY])
{
	memset(data, 0, SOCK_SERVICE_PRIVATE);
	memcpy(data, name, sizeof name);
	data[VERSION_AT] = SOCK_SERVICE_VERSION;
	data[KIND_AT] = KIND_SERVICE;
	memcpy(data + KEY_AT, key, SOCK_SERVICE_KEY);
}

bool sock_service_decode_question(const void *data, size_t size, uint8_t key[SOCK_SERVICE_KEY])
{
	const uint8_t *bytes = data;

	if (!is_ours(data, size, QUESTION_ZEROS_AT, KEY_AT, SOCK_SERVICE_PRIVATE) ||
	    bytes[VERSION_AT] != SOCK_SERVICE_VERSION || bytes[KIND_AT] != KIND_SERVICE || bytes[LIST_AT] > 1)
		return false;
	memcpy(key, bytes + KEY_AT, SOCK_SERVICE_KEY);
	return true;
}

void sock_service_encode_link(uint8_t data[SOCK_SERVICE_PRIVATE], const uint8_t key[SOCK_SERVICE_KEY])
{
	sock_service_encode_question(data, key);
	data[KIND_AT] = KIND_PROCESS, data[VERSION_AT] = LINK_VERSION;
}

bool sock_service_decode_link(const void *data, size_t size, uint8_t key[SOCK_SERVICE_KEY])
{
	const uint8_t *bytes = data;

	if (!is_ours(data, size, LIST_AT, KEY_AT, SOCK_SERVICE_PRIVATE) || bytes[VERSION_AT] != LINK_VERSION ||
	    bytes[KIND_AT] != KIND_PROCESS)
		return false;
	memcpy(key, bytes + KEY_AT, SOCK_SERVICE_KEY);
	return true;
}

void sock_service_ask_for_adapters(uint8_t question[SOCK_SERVICE_PRIVATE])
{
	question[LIST_AT] = 1;
}

bool sock_service_asks_for_adapters(const void *question)
{
	return ((const uint8_t *)question)[LIST_AT];
}

void sock_service_encode_reply(uint8_t data[SOCK_SERVICE_PRIVATE], enum sock_service_code code, uint16_t qualifier)
{
	uint16_t wire = htobe16(qualifier);

	memset(data, 0, SOCK_SERVICE_PRIVATE);
	memcpy(data, name, sizeof name);
	data[CODE_AT] = (uint8_t)code;
	memcpy(data + QUALIFIER_AT, &wire, sizeof wire);
}

bool sock_service_decode_reply(const void *data, size_t size, enum sock_service_code *code, uint16_t *qualifier)
{
	const uint8_t *bytes = data;
	uint16_t wire;

	if (!is_ours(data, size, REPLY_ZEROS_AT, QUALIFIER_AT, SOCK_SERVICE_REPLY) ||
	    !is_zero(data, REPLY_END, ADAPTERS_AT) || bytes[CODE_AT] < SOCK_SERVICE_REDIRECT ||
	    bytes[CODE_AT] > SOCK_SERVICE_REFUSE)
		return false;
	memcpy(&wire, bytes + QUALIFIER_AT, sizeof wire);
	if (!wire != (bytes[CODE_AT] != SOCK_SERVICE_REDIRECT))
		return false;
	*code = bytes[CODE_AT];
	*qualifier = be16toh(wire);
	return true;
}

void sock_service_encode_adapters(uint8_t data[SOCK_SERVICE_REPLY], const uint8_t (*adapters)[16], unsigned count)
{
	memset(data + ADAPTERS_AT, 0, SOCK_SERVICE_REPLY - ADAPTERS_AT);
	for (unsigned i = 0; i < count && i < SOCK_SERVICE_ADAPTERS; i++)
		memcpy(data + ADAPTERS_AT + 16 * i, adapters[i], 16);
}

unsigned sock_service_decode_adapters(const void *data, size_t size, uint8_t adapters[SOCK_SERVICE_ADAPTERS][16])
{
	const uint8_t *list = (const uint8_t *)data + ADAPTERS_AT;
	unsigned count = 0;

	while (count < SOCK_SERVICE_ADAPTERS && size >= ADAPTERS_AT + 16 * (count + 1) &&
	       !is_zero(list, 16 * count, 16 * count + 16)) {
		memcpy(adapters[count], list + 16 * count, 16);
		count++;
	}
	return count;
}

void sock_service_encode_datagram(uint8_t data[SOCK_SERVICE_REPLY], enum sock_service_datagram kind,
				  const uint8_t nonce[SOCK_SERVICE_KEY])
{
	memset(data, 0, SOCK_SERVICE_REPLY);
	memcpy(data, name, sizeof name);
	data[VERSION_AT] = SOCK_SERVICE_VERSION;
	data[KIND_AT] = (uint8_t)kind;
	memcpy(data + KEY_AT, nonce, SOCK_SERVICE_KEY);
}

bool sock_service_decode_datagram(const void *data, size_t size, enum sock_service_datagram *kind,
				  uint8_t nonce[SOCK_SERVICE_KEY])
{
	const uint8_t *bytes = data;

	if (size != SOCK_SERVICE_REPLY || !is_ours(data, size, LIST_AT, KEY_AT, SOCK_SERVICE_REPLY) ||
	    bytes[VERSION_AT] != SOCK_SERVICE_VERSION ||
	    (bytes[KIND_AT] != SOCK_SERVICE_LOCATE && bytes[KIND_AT] != SOCK_SERVICE_LOCATED))
		return false;
	*kind = bytes[KIND_AT];
	memcpy(nonce, bytes + KEY_AT, SOCK_SERVICE_KEY);
	return *kind == SOCK_SERVICE_LOCATED || is_zero(bytes, ADAPTERS_AT, size);
}
