/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_params.c - reads the ia_params of an entry of dat.conf (ia_params.h). */
#include "common/ia_params.h"
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define BLANK " \t\r\n"

static bool in_name(char c)
{
	return c > ' ' && c <= '~' && !strchr("/\"\\", c);
}

/* Moves `text` to what follows the port. */
static const char *read_port(unsigned *port, const char **text)
{
	unsigned long number;
	char *end;

	if (!isdigit((unsigned char)**text))
		return "the port is not a number";
	errno = 0;
	number = strtoul(*text, &end, 10);
	if (*end && !strchr(BLANK, *end))
		return "something follows the port";
	if (errno || number > 255)
		return "the port is not a number from 0 to 255";
	*port = number;
	*text = end + strspn(end, BLANK);
	return NULL;
}

const char *ia_params_read_first(struct ia_params *params, const char *text, const char **rest)
{
	size_t length;

	memset(params, 0, sizeof *params);
	text += strspn(text, BLANK);
	length = strcspn(text, BLANK);
	if (length >= sizeof params->name)
		return "the name is too long";
	for (size_t i = 0; i < length; i++)
		if (!in_name(text[i]))
			return "the name has a character that no name has";
	memcpy(params->name, text, length);
	text += length;
	*rest = text + strspn(text, BLANK);
	return **rest ? read_port(&params->port, rest) : NULL;
}

const char *ia_params_read(struct ia_params *params, const char *text)
{
	const char *rest, *wrong = ia_params_read_first(params, text, &rest);

	return !wrong && *rest ? "something follows the port" : wrong;
}

const char *ia_params_printable(const char *text, char *buffer, size_t size)
{
	size_t i;

	for (i = 0; text[i] && i < size - 4; i++)
		buffer[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	strcpy(buffer + i, text[i] ? "..." : "");
	return buffer;
}
