/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The settings of a process: what is accepted, what is refused and how that is told, and which connections may move. */
#include "sock/settings.h"
#include "test/unit/printed.h"
#include "test/unit/unit.h"

static void set(const char *name, const char *value)
{
	const char *wrong = settings_set(name, value);

	if (wrong)
		fail_msg("%s=%s: %s", name, value, wrong);
}

UNIT_FIXTURE(set_defaults)
{
	set("enabled", "1");
	set("ip_addr_list", "local");
	set("port_range_list", "1-65535");
	set("max_memory", "64");
}

static bool is_allowed(const char *local, int local_port, const char *peer, int peer_port, bool connector)
{
	struct sockaddr_storage a = { 0 }, b = { 0 };
	struct sockaddr_storage *all[2] = { &a, &b };
	const char *names[2] = { local, peer };
	int ports[2] = { local_port, peer_port };

	for (int i = 0; i < 2; i++) {
		struct sockaddr_in *in = (void *)all[i];
		struct sockaddr_in6 *in6 = (void *)all[i];

		in->sin_port = htons(ports[i]);
		if (strchr(names[i], ':')) {
			in6->sin6_family = AF_INET6;
			assert_int_equal(inet_pton(AF_INET6, names[i], &in6->sin6_addr), 1);
		} else {
			in->sin_family = AF_INET;
			assert_int_equal(inet_pton(AF_INET, names[i], &in->sin_addr), 1);
		}
	}
	return settings_allow((void *)&a, (void *)&b, connector);
}

/* A peer on another host, whose program has connected to the server's port. */
static bool allows_network(const char *peer, int port)
{
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (!strchr(peer, ':')) {
		assert_int_equal(inet_pton(AF_INET, peer, &in.sin_addr), 1);
		return settings_allow_network((void *)&in, (void *)&in);
	}
	assert_int_equal(inet_pton(AF_INET6, peer, &in6.sin6_addr), 1);
	return settings_allow_network((void *)&in6, (void *)&in6);
}

static bool allows_peer(const char *peer)
{
	return is_allowed("127.0.0.1", 1000, peer, 80, true);
}

static void assert_refused(const char *name, const char *value, const char *clause)
{
	const char *wrong = settings_set(name, value);

	if (!wrong || !strstr(wrong, clause))
		fail_msg("%s=%s: \"%s\"", name, value, wrong ? wrong : "accepted");
}

#define TEST(f) UNIT_TEST_WITH(f, set_defaults, NULL)

TEST(numbers_are_checked)
{
	assert_refused("max_memory", "", "is no number");
	assert_refused("max_memory", "1x", "\"1x\" is no number from 0 to 1048576");
	assert_refused("max_memory", "-1", "is no number");
	assert_refused("max_memory", " 1", "is no number");
	assert_refused("max_memory", "1048577", "is no number");
	assert_refused("max_memory", "99999999999999999999", "is no number");
	assert_refused("enabled", "2", "from 0 to 1");
	assert_refused("enabled", "yes", "\"yes\" is no number");
	assert_refused("ring", "4095", "from 4096");
	assert_refused("ring", "5000", "5000 is no power of two");
	assert_refused("spin", "1001", "from 0 to 1000");
	assert_refused("after", "x", "is no number");
	assert_int_equal(settings.max_memory, 64);
}

TEST(unknown_names_are_told)
{
	assert_refused("max_memry", "1", "there is no setting \"max_memry\"");
	assert_refused("", "1", "there is no setting \"\"");
}

TEST(networks_are_checked)
{
	assert_refused("ip_addr_list", "localhost", "\"localhost\" is no address");
	assert_refused("ip_addr_list", "10.0.0.0/33", "\"33\" is no number from 0 to 32");
	assert_refused("ip_addr_list", "10.0.0/8", "is no address");
	assert_refused("ip_addr_list", "::1/129", "from 0 to 128");
	assert_refused("ip_addr_list", "local,,::1", "\"\" is no address");
	assert_refused("ip_addr_list", "10.0.0.0/", "\"\" is no number");
	assert_string_equal(settings.ip_addr_list, "local");
}

TEST(ports_are_checked)
{
	assert_refused("port_range_list", "0", "\"0\" is no port");
	assert_refused("port_range_list", "1-65536", "\"1-65536\" is no port");
	assert_refused("port_range_list", "20-10", "\"20-10\" is no port");
	assert_refused("port_range_list", "80,", "\"\" is no port");
	assert_refused("port_range_list", "http", "\"http\" is no port");
	assert_string_equal(settings.port_range_list, "1-65535");
}

TEST(longest_list_is_accepted)
{
	char list[SETTINGS_TEXT + 1];

	for (int i = 0; i < SETTINGS_TEXT; i++)
		list[i] = i % 2 ? ',' : '1';
	list[SETTINGS_TEXT] = 0;
	assert_refused("port_range_list", list, "longer than 1023 bytes");
	list[SETTINGS_TEXT - 1] = 0;
	set("port_range_list", list);
}

TEST(lists_select_peers)
{
	set("ip_addr_list", "10.1.0.0/12,192.168.7.1,fd00::/9");
	assert_true(allows_peer("10.15.255.255"));
	assert_false(allows_peer("10.16.0.0"));
	assert_true(allows_peer("192.168.7.1"));
	assert_false(allows_peer("192.168.7.2"));
	assert_true(allows_peer("::ffff:192.168.7.1"));
	assert_true(allows_peer("fd7f::1"));
	assert_false(allows_peer("fd80::1"));
	assert_false(allows_peer("::1"));
	set("ip_addr_list", "0.0.0.0/0");
	assert_true(allows_peer("8.8.8.8"));
	assert_false(allows_peer("::1"));
	set("ip_addr_list", "");
	assert_false(allows_peer("127.0.0.1"));
}

TEST(ports_are_those_of_the_server)
{
	set("port_range_list", "20-22,80");
	assert_true(is_allowed("::1", 5000, "::1", 80, true));
	assert_false(is_allowed("::1", 80, "::1", 5000, true));
	assert_true(is_allowed("::1", 80, "::1", 5000, false));
	assert_true(is_allowed("::1", 5000, "::1", 21, true));
	assert_false(is_allowed("::1", 5000, "::1", 23, true));
}

TEST(disabled_library_moves_nothing)
{
	set("enabled", "0");
	assert_false(allows_peer("127.0.0.1"));
}

TEST(local_is_no_network)
{
	assert_false(settings_have_networks());
	assert_false(allows_network("10.1.2.3", 80));
	set("ip_addr_list", "");
	assert_false(settings_have_networks());
	assert_false(allows_network("10.1.2.3", 80));
}

TEST(networks_are_of_other_hosts_too)
{
	set("ip_addr_list", "local,10.1.0.0/16,fd00::/8");
	set("port_range_list", "80,443");
	assert_true(settings_have_networks());
	assert_true(allows_network("10.1.2.3", 80));
	assert_true(allows_network("::ffff:10.1.2.3", 443));
	assert_true(allows_network("fd12::1", 80));
	assert_false(allows_network("10.2.2.3", 80));
	assert_false(allows_network("fe80::1", 80));
	assert_false(allows_network("10.1.2.3", 81));
	assert_true(allows_peer("10.2.2.3")); /* on this host */
	set("enabled", "0");
	assert_false(settings_have_networks());
	assert_false(allows_network("10.1.2.3", 80));
	set("enabled", "1");
	set("port_range_list", "");
	assert_false(settings_have_networks());
}

TEST(memory_is_limited)
{
	set("max_memory", "1");
	assert_true(settings_take_memory(1 << 20));
	assert_false(settings_take_memory(1));
	assert_int_equal(settings_memory_used(), 1 << 20);
	settings_give_memory(1 << 20);
	assert_true(settings_take_memory(1));
	settings_give_memory(1);
}

static void read_settings(void *arg)
{
	settings_read();
}

/* What settings_read() reports about one variable; the library is disabled afterwards. */
static void assert_variable_refused(const char *variable, const char *value, const char *clause)
{
	const char *text;
	char expected[256];

	setenv("DATSOCK_ENABLED", "1", 1);
	setenv(variable, value, 1);
	text = printed_by(read_settings, NULL);
	unsetenv(variable);
	unsetenv("DATSOCK_ENABLED");
	snprintf(expected, sizeof expected, "datsock: %s: %s; no connection moves\n", variable, clause);
	assert_string_equal(text, expected);
	assert_false(settings.enabled);
}

TEST(wrong_variables_are_reported)
{
	assert_variable_refused("DATSOCK_RING", "1M", "\"1M\" is no number from 4096 to 67108864");
	assert_variable_refused("DATSOCK_LOG", "yes", "\"yes\" is no number from 0 to 1");
	assert_variable_refused("DATSOCK_TEST_BACK", "-", "\"-\" is no number from 0 to 1000000");
}

TEST(unknown_variables_are_reported)
{
	assert_variable_refused("DATSOCK_MAX_MEMROY", "1", "there is no setting \"max_memroy\"");
}

TEST(variables_are_read)
{
	setenv("DATSOCK_ENABLED", "1", 1);
	setenv("DATSOCK_PORT_RANGE_LIST", "7", 1);
	setenv("DATSOCK_AFTER", "3", 1);
	assert_string_equal(printed_by(read_settings, NULL), "");
	unsetenv("DATSOCK_ENABLED");
	unsetenv("DATSOCK_PORT_RANGE_LIST");
	unsetenv("DATSOCK_AFTER");
	assert_true(settings.enabled);
	assert_string_equal(settings.port_range_list, "7");
	assert_int_equal(settings.after_calls, 3);
	assert_int_equal(settings.after_bytes, 3 * 8192);
}

UNIT_MAIN(NULL, NULL)
