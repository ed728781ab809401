/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* socksettings_fuzz.c - any bytes as a setting of libdatsock, NAME=VALUE: no crash, a wrong one changes nothing and is
 * told in a line, and what is accepted keeps its limits. */
#include "sock/settings.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good)
{
	if (!good)
		abort();
}

static void check_limits(void)
{
	demand(settings.max_memory <= 1 << 20 && settings.spin <= 1000);
	demand(settings.ring >= 4096 && settings.ring <= 64 << 20 && !(settings.ring & (settings.ring - 1)));
	demand(strlen(settings.ip_addr_list) < SETTINGS_TEXT && strlen(settings.port_range_list) < SETTINGS_TEXT);
}

/* The lists are read again for each connection. */
static void use(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(80), .sin_addr.s_addr = htonl(0x0a000001) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };

	settings.enabled = true;
	settings_allow((void *)&in, (void *)&in, true);
	settings_allow((void *)&in6, (void *)&in6, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct settings fresh = {
		.enabled = true, .ip_addr_list = "local", .port_range_list = "1-65535", .ring = 65536
	};
	struct settings before;
	char *text = malloc(size + 1), *value;
	const char *wrong;

	demand(text != NULL);
	memcpy(text, data, size);
	text[size] = 0;
	settings = before = fresh;
	value = strchr(text, '=');
	if (value) {
		*value++ = 0;
		wrong = settings_set(text, value);
		demand(!wrong || (*wrong && strlen(wrong) < 256));
		if (wrong)
			demand(!memcmp(&settings, &before, sizeof before));
		check_limits();
		use();
	}
	free(text);
	return 0;
}
