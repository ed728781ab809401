/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_paths.c - which path a connection between hosts is given. The test plays the adapters of this host. Each test
 * has a host of its own, since what is known of hosts stays. */
#include "tools/sock/paths.h"
#include "test/unit/unit.h"
#include "tools/sock/loop.h"
#include "tools/sock/point.h"

enum { IAS = 3 };

static bool is_open[IAS];
static uint64_t now = 1000;
static uint8_t host, last_key;

/* Address of a host on one of the networks, each with an adapter of this host. */
struct address {
	uint8_t bytes[16];
};

static struct address at(uint8_t network, uint8_t of)
{
	return (struct address){ { [14] = network, [15] = of } };
}

uint64_t loop_now_ms(void)
{
	return now;
}

int point_count(void)
{
	return IAS;
}

int point_for(const uint8_t address[16])
{
	return address[14] < IAS && is_open[address[14]] && !address[15] ? address[14] : -1;
}

/* Addresses from 100 on are other ones of the interface of an adapter. */
int point_beside(const uint8_t address[16])
{
	return address[14] < IAS && is_open[address[14]] && (!address[15] || address[15] >= 100) ? address[14] : -1;
}

bool point_is_near(int ia, const uint8_t address[16])
{
	return is_open[ia] && address[14] == ia && address[15];
}

static int set_up(void **state)
{
	host++;
	for (int i = 0; i < IAS; i++)
		is_open[i] = true;
	return 0;
}

static int tear_down(void **state)
{
	return 0;
}

/* A new connection to the host of this test, by the first network. */
static struct paths_of connection(void)
{
	struct paths_of of = { .key = { [0] = ++last_key, [1] = host } };

	memcpy(of.local, at(0, 0).bytes, 16);
	memcpy(of.remote, at(0, host).bytes, 16);
	return of;
}

/* The host of this test has adapters in so many of the networks. */
static void learn(unsigned count)
{
	uint8_t adapters[IAS][16];

	for (unsigned i = 0; i < count; i++)
		memcpy(adapters[i], at(i, host).bytes, 16);
	paths_learn(at(0, host).bytes, (const uint8_t (*)[16])adapters, count);
}

static struct path path_by(int ia)
{
	struct path path = { .ia = ia };

	memcpy(path.peer, at(ia, host).bytes, 16);
	return path;
}

/* The IA of the path that the connection gets; -1: none. It leads to the host of this test. */
static int choose(const struct paths_of *of)
{
	struct path path;

	if (!paths_choose(of, &path))
		return -1;
	assert_memory_equal(path.peer, at(path.ia, host).bytes, 16);
	return path.ia;
}

static int choose_new(void)
{
	struct paths_of of = connection();

	return choose(&of);
}

UNIT_CASE(unknown_host_has_the_path_of_the_connection)
{
	for (int i = 0; i < 5; i++)
		assert_int_equal(choose_new(), 0);
}

UNIT_CASE(host_without_a_list_keeps_that_path)
{
	learn(2);
	learn(0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(choose_new(), 0);
}

UNIT_CASE(host_that_refuses_is_not_asked_for_its_list_again)
{
	assert_true(paths_want_list(at(0, host).bytes));
	paths_refuse_list(at(0, host).bytes);
	assert_false(paths_want_list(at(0, host).bytes));
	assert_true(paths_want_list(at(1, host).bytes));
	assert_int_equal(choose_new(), 0);
}

UNIT_CASE(connections_take_the_paths_in_turn)
{
	learn(3);
	for (int i = 0; i < 9; i++)
		assert_int_equal(choose_new(), i % 3);
}

UNIT_CASE(adapter_of_another_network_is_no_path)
{
	uint8_t adapters[3][16];

	memcpy(adapters[0], at(0, host).bytes, 16);
	memcpy(adapters[1], at(IAS, host).bytes, 16);
	memcpy(adapters[2], at(1, 0).bytes, 16); /* of this host */
	paths_learn(at(0, host).bytes, (const uint8_t (*)[16])adapters, 3);
	for (int i = 0; i < 5; i++)
		assert_int_equal(choose_new(), 0);
}

UNIT_CASE(connection_keeps_its_path_while_it_asks)
{
	struct paths_of of = connection();

	learn(2);
	choose_new();
	assert_int_equal(choose(&of), 1);
	choose_new();
	assert_int_equal(choose(&of), 1);
	assert_int_equal(choose(&of), 1);
}

UNIT_CASE(connection_whose_peer_never_listens_there_takes_the_next)
{
	struct paths_of of = connection();

	learn(2);
	for (int i = 0; i < 32; i++)
		assert_int_equal(choose(&of), 0);
	assert_int_equal(choose(&of), 1);
}

UNIT_CASE(first_connections_choose_again_when_the_list_comes)
{
	struct paths_of of[4];
	int by[2] = { 0 };

	for (int i = 0; i < 4; i++) {
		of[i] = connection();
		assert_int_equal(choose(&of[i]), 0);
	}
	assert_false(paths_outgrown(&of[0]));
	learn(2);
	for (int i = 0; i < 4; i++) {
		assert_true(paths_outgrown(&of[i]));
		by[choose(&of[i])]++;
		assert_false(paths_outgrown(&of[i]));
	}
	assert_int_equal(by[0], 2);
	assert_int_equal(by[1], 2);
}

UNIT_CASE(connection_that_comes_back_takes_the_next_path)
{
	struct paths_of of = connection();

	learn(3);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(choose(&of), i % 3);
		paths_given(&of);
	}
}

UNIT_CASE(closed_adapter_is_no_path)
{
	learn(2);
	is_open[0] = false;
	for (int i = 0; i < 3; i++)
		assert_int_equal(choose_new(), 1);
	is_open[1] = false;
	assert_int_equal(choose_new(), -1);
}

UNIT_CASE(path_without_an_answer_rests)
{
	struct path path = path_by(1);
	struct paths_of of = connection();

	learn(2);
	assert_true(paths_has_other(&of, &path));
	paths_tried(&path, false);
	for (int i = 0; i < 4; i++)
		assert_int_equal(choose_new(), 0);
	path = path_by(0);
	assert_false(paths_has_other(&of, &path));
	now += 1000;
	assert_true(paths_has_other(&of, &path));
	assert_int_not_equal(choose_new(), choose_new());
}

/* For how long the path rests after a question without an answer; its rest before is over. */
static uint64_t rest_after_failure(const struct path *path)
{
	struct path other = path_by(0);
	struct paths_of of = connection();
	uint64_t begin = now;

	paths_tried(path, false);
	paths_tried(path, false); /* several questions at the same time count once */
	while (!paths_has_other(&of, &other))
		now += 100;
	return now - begin;
}

UNIT_CASE(rests_grow_until_an_answer_comes)
{
	struct path path = path_by(1);

	learn(2);
	assert_int_equal(rest_after_failure(&path), 1000);
	assert_int_equal(rest_after_failure(&path), 2000);
	assert_int_equal(rest_after_failure(&path), 4000);
	for (int i = 0; i < 5; i++)
		rest_after_failure(&path);
	assert_int_equal(rest_after_failure(&path), 64000);
	paths_tried(&path, true);
	assert_int_equal(rest_after_failure(&path), 1000);
}

UNIT_CASE(answer_ends_a_rest)
{
	struct path path = path_by(1), other = path_by(0);
	struct paths_of of = connection();

	learn(2);
	paths_tried(&path, false);
	paths_tried(&path, true);
	assert_true(paths_has_other(&of, &other));
}

UNIT_CASE(without_other_paths_the_one_that_rested_longest_is_tried)
{
	struct path path = path_by(0);

	learn(2);
	paths_tried(&path, false);
	now += 10;
	path = path_by(1);
	paths_tried(&path, false);
	assert_int_equal(choose_new(), 0);
}

/* A connection of other addresses of the interfaces of the first adapters. */
static struct paths_of other_connection(uint8_t local, uint8_t remote)
{
	struct paths_of of = connection();

	memcpy(of.local, at(0, local).bytes, 16);
	memcpy(of.remote, at(9, remote).bytes, 16);
	return of;
}

UNIT_CASE(other_addresses_have_a_path_when_the_peer_was_located)
{
	struct paths_of of = other_connection(100, host);
	struct address adapter = at(0, host);
	struct path path;

	assert_false(paths_choose(&of, &path));
	paths_locate(of.remote, (const uint8_t (*)[16])&adapter, 1);
	assert_int_equal(choose(&of), 0);
	paths_locate(of.remote, NULL, 0);
	assert_false(paths_choose(&of, &path));
}

UNIT_CASE(located_adapter_replaces_the_address_of_the_connection)
{
	struct paths_of of = other_connection(0, host);
	struct address adapter = at(0, host);
	struct path path;

	assert_true(paths_choose(&of, &path));
	assert_memory_equal(path.peer, of.remote, 16);
	paths_locate(of.remote, (const uint8_t (*)[16])&adapter, 1);
	assert_int_equal(choose(&of), 0);
}

UNIT_MAIN(NULL, NULL)
