/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_sock_service.c - messages and private data of datsockd: what is written, and that nothing else is taken. */
#include "common/sock_service.h"
#include "test/unit/unit.h"

static const uint8_t key[SOCK_SERVICE_KEY] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16 };
static const uint8_t question[SOCK_SERVICE_PRIVATE] =
	"DATSOCK1\1\2\0\0\0\0\0\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20";
static const uint8_t redirect[SOCK_SERVICE_PRIVATE] = "DATSOCK1\1\0\0\0\0\0\x12\x34";

static struct sock_service_request request_of(enum sock_service_type type)
{
	return (struct sock_service_request){ SOCK_SERVICE_MAGIC, SOCK_SERVICE_VERSION, type, 7, 0,
					      type == SOCK_SERVICE_HERE ? 4000 : 0 };
}

static bool accepts(struct sock_service_request r)
{
	return sock_service_is_request(&r, sizeof r);
}

UNIT_TEST(requests_of_each_type_are_taken)
{
	for (int type = SOCK_SERVICE_EXPECT; type <= SOCK_SERVICE_FORGET; type++)
		assert_true(accepts(request_of(type)));
}

UNIT_TEST(wrong_requests_are_not_taken)
{
	struct sock_service_request r = request_of(SOCK_SERVICE_ASK);

	assert_false(sock_service_is_request(&r, sizeof r - 1));
	assert_false(sock_service_is_request(&r, sizeof r + 1));
	assert_false(sock_service_is_request(&r, 0));
	r.magic++;
	assert_false(accepts(r));
	r = request_of(SOCK_SERVICE_ASK), r.version++;
	assert_false(accepts(r));
	r = request_of(SOCK_SERVICE_ASK), r.reserved = 1;
	assert_false(accepts(r));
	r = request_of(SOCK_SERVICE_ASK), r.qualifier = 1;
	assert_false(accepts(r));
	r = request_of(SOCK_SERVICE_HERE), r.qualifier = 0;
	assert_false(accepts(r));
	r = request_of(SOCK_SERVICE_HERE), r.qualifier = 65536;
	assert_false(accepts(r));
	assert_false(accepts(request_of(0)));
	assert_false(accepts(request_of(SOCK_SERVICE_FORGET + 1)));
}

static struct sock_service_answer answer_of(enum sock_service_type type, enum sock_service_result result)
{
	return (struct sock_service_answer){ .magic = SOCK_SERVICE_MAGIC, .version = SOCK_SERVICE_VERSION,
		.type = type, .id = 7, .result = result, .qualifier = type == SOCK_SERVICE_ASK ? 4000 : 0, .ia = "ia" };
}

static bool believes(struct sock_service_answer a)
{
	return sock_service_is_answer(&a, sizeof a);
}

UNIT_TEST(answers_are_taken)
{
	for (int result = SOCK_SERVICE_OK; result < SOCK_SERVICE_RESULTS; result++) {
		assert_true(believes(answer_of(SOCK_SERVICE_EXPECT, result)));
		assert_true(believes(answer_of(SOCK_SERVICE_ASK, result)));
	}
}

UNIT_TEST(wrong_answers_are_not_taken)
{
	struct sock_service_answer a = answer_of(SOCK_SERVICE_ASK, SOCK_SERVICE_OK);

	assert_false(sock_service_is_answer(&a, sizeof a - 1));
	a.qualifier = 0;
	assert_false(believes(a));
	a.qualifier = 65536;
	assert_false(believes(a));
	a = answer_of(SOCK_SERVICE_ASK, SOCK_SERVICE_OK), a.magic = 0;
	assert_false(believes(a));
	a = answer_of(SOCK_SERVICE_ASK, SOCK_SERVICE_OK), a.version = 2;
	assert_false(believes(a));
	a = answer_of(SOCK_SERVICE_ASK, SOCK_SERVICE_OK), memset(a.ia, 'x', sizeof a.ia);
	assert_false(believes(a));
	assert_false(believes(answer_of(SOCK_SERVICE_ASK, SOCK_SERVICE_RESULTS)));
	assert_false(believes(answer_of(SOCK_SERVICE_HERE, SOCK_SERVICE_OK)));
}

UNIT_TEST(question_has_its_place_for_each_byte)
{
	uint8_t data[SOCK_SERVICE_PRIVATE], got[SOCK_SERVICE_KEY];

	memset(data, 0xff, sizeof data);
	sock_service_encode_question(data, key);
	assert_memory_equal(data, question, sizeof data);
	assert_true(sock_service_decode_question(data, sizeof data, got));
	assert_memory_equal(got, key, sizeof key);
}

UNIT_TEST(reply_has_its_place_for_each_byte)
{
	uint8_t data[SOCK_SERVICE_PRIVATE];
	enum sock_service_code code;
	uint16_t qualifier;

	memset(data, 0xff, sizeof data);
	sock_service_encode_reply(data, SOCK_SERVICE_REDIRECT, 0x1234);
	assert_memory_equal(data, redirect, sizeof data);
	assert_true(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
	assert_int_equal(code, SOCK_SERVICE_REDIRECT);
	assert_int_equal(qualifier, 0x1234);
	for (int i = SOCK_SERVICE_WAIT; i <= SOCK_SERVICE_REFUSE; i++) {
		sock_service_encode_reply(data, i, 0);
		assert_true(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
		assert_int_equal(code, i);
	}
}

/* Each byte but those of key and qualifier matters. */
UNIT_TEST(changed_private_data_are_not_taken)
{
	uint8_t data[SOCK_SERVICE_PRIVATE], got[SOCK_SERVICE_KEY];
	enum sock_service_code code;
	uint16_t qualifier;

	for (size_t i = 0; i < 16; i++) {
		memcpy(data, question, sizeof data);
		data[i] ^= 0x40;
		assert_false(sock_service_decode_question(data, sizeof data, got));
	}
	for (size_t i = 0; i < sizeof data; i++) {
		if (i == 14 || i == 15)
			continue;
		memcpy(data, redirect, sizeof data);
		data[i] ^= 0x40;
		assert_false(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
	}
	memcpy(data, redirect, sizeof data);
	data[14] = data[15] = 0; /* to nowhere */
	assert_false(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
	memcpy(data, redirect, sizeof data);
	data[8] = SOCK_SERVICE_WAIT; /* with a qualifier */
	assert_false(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
	data[8] = 0;
	assert_false(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
}

UNIT_TEST(private_data_may_be_padded_with_zeros)
{
	uint8_t data[196] = { 0 }, got[SOCK_SERVICE_KEY];
	enum sock_service_code code;
	uint16_t qualifier;

	memcpy(data, question, sizeof question);
	assert_true(sock_service_decode_question(data, sizeof data, got));
	data[195] = 1;
	assert_false(sock_service_decode_question(data, sizeof data, got));
	data[195] = 0;
	for (size_t n = 0; n < SOCK_SERVICE_PRIVATE; n++)
		assert_false(sock_service_decode_question(data, n, got));
	assert_false(sock_service_decode_question(NULL, 0, got));
	memcpy(data, redirect, sizeof redirect);
	assert_true(sock_service_decode_reply(data, sizeof data, &code, &qualifier));
	assert_false(sock_service_decode_reply(data, SOCK_SERVICE_PRIVATE - 1, &code, &qualifier));
	assert_false(sock_service_decode_reply(NULL, 0, &code, &qualifier));
}

UNIT_TEST(question_may_ask_for_the_list)
{
	uint8_t data[SOCK_SERVICE_PRIVATE], got[SOCK_SERVICE_KEY];

	memcpy(data, question, sizeof data);
	assert_false(sock_service_asks_for_adapters(data));
	sock_service_ask_for_adapters(data);
	assert_true(sock_service_decode_question(data, sizeof data, got));
	assert_memory_equal(got, key, sizeof key);
	assert_true(sock_service_asks_for_adapters(data));
	data[10] = 2;
	assert_false(sock_service_decode_question(data, sizeof data, got));
}

UNIT_TEST(reply_lists_adapters)
{
	static const uint8_t adapters[SOCK_SERVICE_ADAPTERS + 1][16] = { { 1 }, { [15] = 2 }, { 3 }, { 4 }, { 5 } };
	uint8_t data[SOCK_SERVICE_REPLY + 20] = { 0 }, got[SOCK_SERVICE_ADAPTERS][16];
	enum sock_service_code code;
	uint16_t qualifier;

	for (unsigned count = 0; count <= SOCK_SERVICE_ADAPTERS + 1; count++) {
		unsigned most = count < SOCK_SERVICE_ADAPTERS ? count : SOCK_SERVICE_ADAPTERS;

		memset(data, 0xff, SOCK_SERVICE_REPLY);
		sock_service_encode_reply(data, SOCK_SERVICE_REDIRECT, 0x1234);
		sock_service_encode_adapters(data, adapters, count);
		assert_memory_equal(data, redirect, sizeof redirect);
		for (size_t padding = 0; padding <= 20; padding += 20) {
			assert_true(sock_service_decode_reply(data, SOCK_SERVICE_REPLY + padding, &code, &qualifier));
			assert_int_equal(sock_service_decode_adapters(data, SOCK_SERVICE_REPLY + padding, got), most);
			assert_memory_equal(got, adapters, 16 * most);
		}
	}
	assert_int_equal(sock_service_decode_adapters(data, SOCK_SERVICE_PRIVATE + 16 + 15, got), 1);
	data[SOCK_SERVICE_REPLY] = 1;
	assert_false(sock_service_decode_reply(data, SOCK_SERVICE_REPLY + 1, &code, &qualifier));
}

UNIT_TEST(reply_of_a_service_without_the_list_has_none)
{
	uint8_t data[196] = { 0 }, got[SOCK_SERVICE_ADAPTERS][16];

	memcpy(data, redirect, sizeof redirect);
	assert_int_equal(sock_service_decode_adapters(data, SOCK_SERVICE_PRIVATE, got), 0);
	assert_int_equal(sock_service_decode_adapters(data, sizeof data, got), 0);
}

UNIT_TEST(datagrams_have_one_size_and_a_nonce)
{
	static const uint8_t adapters[1][16] = { { 1, 2 } };
	uint8_t data[SOCK_SERVICE_REPLY + 1] = { 0 }, nonce[SOCK_SERVICE_KEY], got[SOCK_SERVICE_ADAPTERS][16];
	enum sock_service_datagram kind;

	sock_service_encode_datagram(data, SOCK_SERVICE_LOCATE, key);
	assert_true(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY, &kind, nonce));
	assert_int_equal(kind, SOCK_SERVICE_LOCATE);
	assert_memory_equal(nonce, key, sizeof key);
	assert_false(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY - 1, &kind, nonce));
	assert_false(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY + 1, &kind, nonce));
	/* A question has no list. */
	sock_service_encode_adapters(data, adapters, 1);
	assert_false(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY, &kind, nonce));
	sock_service_encode_datagram(data, SOCK_SERVICE_LOCATED, key);
	sock_service_encode_adapters(data, adapters, 1);
	assert_true(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY, &kind, nonce));
	assert_int_equal(kind, SOCK_SERVICE_LOCATED);
	assert_int_equal(sock_service_decode_adapters(data, SOCK_SERVICE_REPLY, got), 1);
	assert_memory_equal(got, adapters, 16);
	for (int i = 8; i < 16; i++) {	/* version, kind, zeros */
		data[i] ^= 0x80;
		assert_false(sock_service_decode_datagram(data, SOCK_SERVICE_REPLY, &kind, nonce));
		data[i] ^= 0x80;
	}
}

UNIT_MAIN(NULL, NULL)
