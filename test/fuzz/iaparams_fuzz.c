/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iaparams_fuzz.c - any text as ia_params of an entry: what is read is a name of allowed characters and a port, and is
 * read the same when it is written again. The software device, which reads options behind them, opens with it, or gives
 * one line and a documented error. Host names are not looked up: a name server is no part of this. */
#include "common/ia_params.h"
#include "dapl/core/device.h"
#include "dapl/soft/settings.h"
#include "test/unit/device_harness.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAID_MAX = 1 << 16, TEXT_MAX = 1000 };	/* bytes */

static int said, terminal;

static void demand(bool good, const char *what, const char *text)
{
	if (good)
		return;
	fprintf(stderr, "iaparams_fuzz: \"%s\": %s\n", text, what);
	abort();
}

/* In place of the C library's: addresses in digits only, and one name. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **list)
{
	struct sockaddr_in *address;
	struct addrinfo *info;

	(void)service;
	info = calloc(1, sizeof *info + sizeof *address);
	if (!info)
		return EAI_MEMORY;
	address = (struct sockaddr_in *)(info + 1);
	address->sin_family = AF_INET;
	if (!strcmp(node, "host.example"))
		address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (!inet_aton(node, &address->sin_addr)) {
		free(info);
		return EAI_NONAME;
	}
	info->ai_socktype = hints->ai_socktype;
	info->ai_family = AF_INET;
	info->ai_addr = (struct sockaddr *)address;
	info->ai_addrlen = sizeof *address;
	*list = info;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	free(list);
}

/* --- the text ------------------------------------------------------------------------------ */

static void check_name(const char *name, const char *text)
{
	for (const char *at = name; *at; at++)
		demand(*at > ' ' && *at <= '~' && *at != '/' && *at != '"' && *at != '\\',
		       "a character that no name has", text);
	demand(!*name || strstr(text, name), "a name that is not in the text", text);
}

static void check_again(const struct ia_params *params, const char *text)
{
	char again[sizeof params->name + 16];
	struct ia_params other;

	if (!*params->name)
		return;
	snprintf(again, sizeof again, "%s %u", params->name, params->port);
	demand(!ia_params_read(&other, again), "refused when it is written again", text);
	demand(!strcmp(other.name, params->name) && other.port == params->port, "read otherwise again", text);
}

static void check_printable(const char *text)
{
	char small[8], large[80];

	for (int i = 0; i < 2; i++) {
		char *buffer = i ? large : small;
		size_t size = i ? sizeof large : sizeof small, length;

		demand(ia_params_printable(text, buffer, size) == buffer, "another buffer", text);
		length = strnlen(buffer, size);
		demand(length < size, "no end", text);
		for (size_t j = 0; j < length; j++)
			demand(buffer[j] >= ' ' && buffer[j] <= '~', "unprintable", text);
	}
}

/* --- the device ---------------------------------------------------------------------------- */

static void listen_to_messages(void)
{
	demand(!ftruncate(said, 0) && lseek(said, 0, SEEK_SET) == 0, "no file", "messages");
	fflush(NULL);
	dup2(said, STDERR_FILENO);
}

static unsigned count_messages(const char *text)
{
	static char lines[SAID_MAX];
	ssize_t n = pread(said, lines, sizeof lines, 0);
	unsigned count = 0;

	dup2(terminal, STDERR_FILENO);
	for (ssize_t i = 0; i < n; i++) {
		count += lines[i] == '\n';
		demand(lines[i] == '\n' || (lines[i] >= ' ' && lines[i] <= '~'), "an unprintable message",
		       text);
	}
	return count;
}

/* Messages of one kind are limited in number, so there may be none. */
static void check_device(const char *text, bool readable)
{
	struct dapl_device *dev = NULL;
	unsigned lines;
	int err;

	listen_to_messages();
	err = dapl_device_ops.open(text, NULL, &dev);
	lines = count_messages(text);
	demand(lines <= 2, "more than one message, and one of suppressed ones", text);
	demand(!err == (dev != NULL), "a device and an error, or neither", text);
	demand(readable || err == EINVAL, "opens, or another error than EINVAL, though not readable", text);
	demand(!err || err == EINVAL || err == ENODEV, "an undocumented error", text);
	if (dev)
		dapl_device_ops.close(dev);
}

/* Whether the device can read it: name and port, and options behind them. */
static bool device_reads(const char *text)
{
	struct soft_options options, other;
	const char *wrong = soft_settings_read_options(&options, text), *end = text + strlen(text);
	size_t offset = soft_settings_options_offset(text);
	char name[TEXT_MAX + 1] = "", again[TEXT_MAX + 32];
	struct ia_params params;

	demand(offset <= (size_t)(end - text), "options behind the end", text);
	demand(!wrong || (wrong >= text + offset && wrong < end), "a wrong option outside the options", text);
	if (!wrong) {
		snprintf(again, sizeof again, "lo 0 %s", text + offset);
		demand(!soft_settings_read_options(&other, again), "options are refused when they are written again",
		       text);
		demand(other.eth_bypass == options.eth_bypass, "options are read otherwise again", text);
	}
	memcpy(name, text, offset);
	return !wrong && !ia_params_read(&params, name);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	said = memfd_create("messages", MFD_CLOEXEC);
	terminal = dup(STDERR_FILENO);
	demand(said >= 0 && terminal >= 0, "no file", "messages");
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MAX + 1];
	struct ia_params params;
	const char *wrong;

	if (size > TEXT_MAX)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	wrong = ia_params_read(&params, text);
	demand(params.port <= 255 && strnlen(params.name, sizeof params.name) < sizeof params.name,
	       "outside its limits", text);
	if (!wrong) {
		check_name(params.name, text);
		check_again(&params, text);
	}
	check_printable(text);
	check_device(text, device_reads(text));
	return 0;
}
