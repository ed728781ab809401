/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.c - reads, checks and applies the settings of this process. */
#include "sock/settings.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "sock/conf.h"

#define PREFIX "DATSOCK_"
enum { PREFIX_LENGTH = sizeof PREFIX - 1 };

struct settings settings = {
	.user_list = "any",
	.max_memory = 64,
	.ring = 2 << 20,
	.spin = 20,
	.idle = 10,
	.after_calls = 8,
	.after_bytes = 64 << 10,
};
int settings_streams;

/* What datsock config shows, and where each value is from. */
static const char *const names[] = { "enabled", "ip_addr_list", "port_range_list", "user_list", "max_memory",
				     "ring",	"spin",	  "idle",	     "after" };
enum { NAMES = sizeof names / sizeof *names };
static const char *origins[NAMES];
static size_t memory_used;
static char problem[256];

static const char *number(const char *value, unsigned long min, unsigned long max, unsigned long *to)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (*value < '0' || *value > '9' || *end || errno || n < min || n > max) {
		snprintf(problem, sizeof problem, "\"%.40s\" is no number from %lu to %lu", value, min, max);
		return problem;
	}
	*to = n;
	return NULL;
}

/* Calls each(item, arg) with the items between commas until one returns an answer that is not 0. */
static int for_items(const char *list, int (*each)(char *item, void *arg), void *arg)
{
	char text[SETTINGS_TEXT], *rest = text, *item;
	int answer = 0;

	strcpy(text, list);
	while (!answer && (item = strsep(&rest, ",")))
		answer = each(item, arg);
	return answer;
}

struct network {
	int family;
	unsigned char address[16];
	unsigned prefix;
};

static bool parse_network(char *item, struct network *n)
{
	char *slash = strchr(item, '/');
	unsigned long prefix;

	if (slash)
		*slash = 0;
	n->family = strchr(item, ':') ? AF_INET6 : AF_INET;
	prefix = n->family == AF_INET ? 32 : 128;
	if (slash && number(slash + 1, 0, prefix, &prefix))
		return false;
	n->prefix = prefix;
	return inet_pton(n->family, item, n->address) == 1;
}

static int check_network(char *item, void *arg)
{
	struct network n;

	(void)arg;
	if (!strcmp(item, "local"))
		return 0;
	snprintf(problem, sizeof problem, "\"%.60s\" is no address, ADDRESS/PREFIX or \"local\"", item);
	return !parse_network(item, &n);
}

static bool parse_ports(char *item, unsigned long *first, unsigned long *last)
{
	char *dash = strchr(item, '-');

	if (dash)
		*dash = 0;
	if (number(item, 1, 65535, first))
		return false;
	*last = *first;
	return !dash || !number(dash + 1, *first, 65535, last);
}

static int check_ports(char *item, void *arg)
{
	unsigned long first, last;
	char shown[64];

	(void)arg;
	snprintf(shown, sizeof shown, "%s", item);
	if (parse_ports(item, &first, &last))
		return 0;
	snprintf(problem, sizeof problem, "\"%s\" is no port or FIRST-LAST from 1 to 65535", shown);
	return 1;
}

/* A number, or a name of /etc/passwd: the library asks no name service, which could use sockets. */
static bool parse_user(const char *item, uid_t *uid)
{
	struct passwd *entry;
	unsigned long n;
	FILE *file;

	if (!number(item, 0, UINT32_MAX - 1, &n)) {
		*uid = n;
		return true;
	}
	file = fopen("/etc/passwd", "re");
	while (file && (entry = fgetpwent(file)))
		if (!strcmp(entry->pw_name, item)) {
			*uid = entry->pw_uid;
			fclose(file);
			return true;
		}
	if (file)
		fclose(file);
	return false;
}

static int check_user(char *item, void *arg)
{
	uid_t uid;

	(void)arg;
	if (!strcmp(item, "any") || parse_user(item, &uid))
		return 0;
	snprintf(problem, sizeof problem, "\"%.60s\" is no user of /etc/passwd, number of a user or \"any\"", item);
	return 1;
}

static const char *set_list(char to[SETTINGS_TEXT], const char *value, int (*check)(char *, void *))
{
	if (strlen(value) >= SETTINGS_TEXT) {
		snprintf(problem, sizeof problem, "the list is longer than %d bytes", SETTINGS_TEXT - 1);
		return problem;
	}
	if (*value && for_items(value, check, NULL))
		return problem;
	strcpy(to, value);
	return NULL;
}

static const char *set_value(const char *name, const char *value)
{
	unsigned long n;
	const char *wrong;

	if (!strcmp(name, "enabled")) {
		wrong = number(value, 0, 1, &n);
		if (!wrong)
			settings.enabled = n;
		return wrong;
	}
	if (!strcmp(name, "ip_addr_list"))
		return set_list(settings.ip_addr_list, value, check_network);
	if (!strcmp(name, "port_range_list"))
		return set_list(settings.port_range_list, value, check_ports);
	if (!strcmp(name, "user_list"))
		return set_list(settings.user_list, value, check_user);
	if (!strcmp(name, "max_memory"))
		return number(value, 0, 1 << 20, &settings.max_memory);
	if (!strcmp(name, "spin"))
		return number(value, 0, 1000, &settings.spin);
	if (!strcmp(name, "idle"))
		return number(value, 1, 1000000, &settings.idle);
	if (!strcmp(name, "after")) {
		wrong = number(value, 0, 1000000, &n);
		if (!wrong)
			settings.after_calls = n, settings.after_bytes = n * 8192;
		return wrong;
	}
	if (!strcmp(name, "ring")) {
		wrong = number(value, 4096, 64 << 20, &n);
		if (!wrong && n & (n - 1)) {
			snprintf(problem, sizeof problem, "%lu is no power of two", n);
			wrong = problem;
		}
		if (!wrong)
			settings.ring = n;
		return wrong;
	}
	snprintf(problem, sizeof problem, "there is no setting \"%.40s\"", name);
	return problem;
}

/* Sets, and notes where the value is from. */
static const char *take(const char *name, const char *value, const char *origin)
{
	const char *wrong = set_value(name, value);

	for (int i = 0; !wrong && i < NAMES; i++)
		if (!strcmp(name, names[i]))
			origins[i] = origin;
	return wrong;
}

const char *settings_set(const char *name, const char *value)
{
	return take(name, value, "datsock config");
}

static const char *take_from_file(const char *name, const char *value)
{
	return take(name, value, "datsock.conf");
}

/* What only the environment sets. */
static const char *take_from_environment(const char *name, const char *value)
{
	unsigned long n = 0;
	const char *wrong = NULL;

	if (!strcmp(name, "library") || !strcmp(name, "run"))
		return NULL; /* of the tool */
	if (!strcmp(name, "log")) {
		wrong = number(value, 0, 1, &n);
		settings.log = n;
	} else if (!strcmp(name, "ia")) {
		if (strlen(value) >= sizeof settings.ia)
			return "the name of an IA has at most 255 characters";
		strcpy(settings.ia, value);
	} else if (!strcmp(name, "test_back")) {
		wrong = number(value, 0, 1000000, &n);
		settings.test_back = n;
	} else {
		wrong = take(name, value, "environment");
	}
	return wrong;
}

static bool read_environment(void)
{
	bool good = true;

	for (char **at = environ; at && *at; at++) {
		const char *text = *at, *equals = strchr(text, '='), *clause;
		char name[64] = "";
		size_t length;

		if (strncmp(text, PREFIX, PREFIX_LENGTH) || !equals)
			continue;
		length = equals - text - PREFIX_LENGTH;
		for (size_t i = 0; i < length && i < sizeof name - 1; i++)
			name[i] = tolower((unsigned char)text[PREFIX_LENGTH + i]);
		clause = take_from_environment(name, equals + 1);
		if (clause) {
			fprintf(stderr, "datsock: %.*s: %s; no connection moves\n", (int)(equals - text), text, clause);
			good = false;
		}
	}
	return good;
}

void settings_read(void)
{
	bool good;

	if (getauxval(AT_SECURE))
		return;
	if (getenv(PREFIX "RUN")) {
		take("enabled", "1", "datsock run");
		take("ip_addr_list", "local", "datsock run");
		take("port_range_list", "1-65535", "datsock run");
	}
	good = conf_read(take_from_file);
	good &= read_environment();
	if (!good)
		settings.enabled = false;
}

void settings_write(FILE *out)
{
	fprintf(out,
		"{\"enabled\":%d,\"ip_addr_list\":\"%s\",\"port_range_list\":\"%s\",\"user_list\":\"%s\","
		"\"max_memory\":%lu,\"ring\":%lu,\"spin\":%lu,\"idle\":%lu,\"after\":%lu}",
		settings.enabled, settings.ip_addr_list, settings.port_range_list, settings.user_list,
		settings.max_memory, settings.ring, settings.spin, settings.idle, (unsigned long)settings.after_calls);
}

void settings_write_origins(FILE *out)
{
	for (int i = 0; i < NAMES; i++)
		fprintf(out, "%s\"%s\":\"%s\"", i ? "," : "{", names[i], origins[i] ? origins[i] : "default");
	fputc('}', out);
}

/* The address as bytes; IPv4 in IPv6 is IPv4. */
static int address_of(const struct sockaddr *sa, const unsigned char **bytes, unsigned *port)
{
	static const unsigned char mapped[12] = { [10] = 0xff, 0xff };
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	*port = ntohs(in->sin_port);
	*bytes = (const void *)&in->sin_addr;
	if (sa->sa_family != AF_INET6)
		return AF_INET;
	*bytes = in6->sin6_addr.s6_addr;
	if (memcmp(*bytes, mapped, sizeof mapped))
		return AF_INET6;
	*bytes += sizeof mapped;
	return AF_INET;
}

struct wanted {
	int family;
	const unsigned char *address;
	unsigned port;
	bool other_host;
};

static int match_network(char *item, void *arg)
{
	const struct wanted *w = arg;
	struct network n;
	unsigned whole, rest;

	if (!strcmp(item, "local"))
		return !w->other_host;
	if (!parse_network(item, &n) || n.family != w->family)
		return 0;
	whole = n.prefix / 8, rest = n.prefix % 8;
	return !memcmp(n.address, w->address, whole) &&
	       (!rest || !((n.address[whole] ^ w->address[whole]) >> (8 - rest)));
}

static int match_port(char *item, void *arg)
{
	const struct wanted *w = arg;
	unsigned long first, last;

	return parse_ports(item, &first, &last) && w->port >= first && w->port <= last;
}

bool settings_allow(const struct sockaddr *local, const struct sockaddr *peer, bool connector)
{
	struct wanted w = { .other_host = false };
	unsigned other;
	const unsigned char *bytes;

	if (!settings.enabled || !*settings.ip_addr_list || !*settings.port_range_list)
		return false;
	w.family = address_of(peer, &w.address, &w.port);
	if (!for_items(settings.ip_addr_list, match_network, &w))
		return false;
	if (!connector) {
		address_of(local, &bytes, &other);
		w.port = other;
	}
	return for_items(settings.port_range_list, match_port, &w);
}

static int is_network(char *item, void *arg)
{
	(void)arg;
	return strcmp(item, "local") != 0;
}

bool settings_have_networks(void)
{
	return settings.enabled && *settings.port_range_list && *settings.ip_addr_list &&
	       for_items(settings.ip_addr_list, is_network, NULL);
}

bool settings_allow_network(const struct sockaddr *peer, const struct sockaddr *server)
{
	struct wanted w = { .other_host = true };
	unsigned other;
	const unsigned char *bytes;

	if (!settings_have_networks())
		return false;
	w.family = address_of(peer, &w.address, &other);
	address_of(server, &bytes, &w.port);
	return for_items(settings.ip_addr_list, match_network, &w) &&
	       for_items(settings.port_range_list, match_port, &w);
}

static int match_user(char *item, void *arg)
{
	uid_t uid;

	return !strcmp(item, "any") || (parse_user(item, &uid) && uid == *(uid_t *)arg);
}

bool settings_allow_user(uid_t peer, uid_t own)
{
	return peer == own || (*settings.user_list && for_items(settings.user_list, match_user, &peer));
}

bool settings_take_memory(size_t bytes)
{
	if (__atomic_add_fetch(&memory_used, bytes, __ATOMIC_RELAXED) <= settings.max_memory << 20)
		return true;
	settings_give_memory(bytes);
	return false;
}

void settings_give_memory(size_t bytes)
{
	__atomic_sub_fetch(&memory_used, bytes, __ATOMIC_RELAXED);
}

size_t settings_memory_used(void)
{
	return memory_used;
}
