/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* anonymous.c - see anonymous.h. */
#include "tools/info/anonymous.h"
#include "tools/cli.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The values that were replaced. Those of a kind are numbered in the order of their appearance. */
static struct known {
	const char *kind;
	char *value;
	unsigned number;
} *known;
static size_t known_count;

enum { LONGEST = 64 };	/* bytes of an address, at most */

/* Returns the entry of a value, or makes it. */
static const struct known *find(const char *kind, const char *value)
{
	unsigned number = 1;

	for (size_t i = 0; i < known_count; i++) {
		if (!strcasecmp(known[i].value, value))
			return &known[i];
		number += !strcmp(known[i].kind, kind);
	}
	known = realloc(known, (known_count + 1) * sizeof *known);
	if (!known)
		fail("there is no memory left");
	known[known_count] = (struct known){ kind, strdup(value), number };
	if (!known[known_count].value)
		fail("there is no memory left");
	return &known[known_count++];
}

void anonymous_name(const char *kind, const char *name)
{
	if (*name)
		find(kind, name);
}

/* --- addresses ------------------------------------------------------------------------------- */

/* Returns the kind of an address that is to be replaced, or NULL. */
static const char *kind_of_ip(const char *word)
{
	struct in6_addr ip6;
	struct in_addr ip4;

	if (inet_pton(AF_INET, word, &ip4) == 1) {
		unsigned first = ntohl(ip4.s_addr) >> 24;

		return first == 0 || first == 127 || first == 255 ? NULL : "ip4";
	}
	if (inet_pton(AF_INET6, word, &ip6) == 1)
		return IN6_IS_ADDR_UNSPECIFIED(&ip6) || IN6_IS_ADDR_LOOPBACK(&ip6) ? NULL : "ip6";
	return NULL;
}

/* A link-layer address or a GUID: pairs or groups of hexadecimal digits. */
static bool is_link_address(const char *word)
{
	unsigned colons = 0, digits = 0;

	for (; *word; word++) {
		if (*word == ':') {
			if (digits != 2 && digits != 4)
				return false;
			colons++;
			digits = 0;
		} else if (isxdigit((unsigned char)*word)) {
			digits++;
		} else {
			return false;
		}
	}
	return colons >= 3 && (digits == 2 || digits == 4);
}

static const char *kind_of(const char *word)
{
	const char *kind = kind_of_ip(word);

	if (kind)
		return kind;
	if (is_link_address(word) && strspn(word, "0:") != strlen(word))
		return "link";
	for (size_t i = 0; i < known_count; i++)
		if (!strcasecmp(known[i].value, word))
			return known[i].kind;
	return NULL;
}

/* --- texts ----------------------------------------------------------------------------------- */

static bool is_part(char c)
{
	return isalnum((unsigned char)c) || strchr(":._-", c);
}

/* Returns the length of the longest beginning of the word that is to be replaced, and stores its kind: an address may
 * have a port or a full stop behind it. */
static size_t longest_match(const char *word, size_t length, const char **kind)
{
	char part[LONGEST];

	for (; length; length--) {
		unsigned char last = (unsigned char)word[length - 1];

		if (length >= sizeof part || (length > 1 && !isalnum(last) && last != ':'))
			continue;
		if (isalnum((unsigned char)word[length]) && isalnum(last))
			continue;	/* not the middle of a number or a name */
		memcpy(part, word, length);
		part[length] = '\0';
		*kind = kind_of(part);
		if (*kind)
			return length;
	}
	return 0;
}

static void write_word(FILE *out, const char *word, size_t length)
{
	const char *kind;
	size_t match = longest_match(word, length, &kind);
	char value[LONGEST];

	if (match) {
		memcpy(value, word, match);
		value[match] = '\0';
		fprintf(out, "%s-%u", kind, find(kind, value)->number);
	}
	fwrite(word + match, 1, length - match, out);
}

void anonymous_write(FILE *out, const char *text)
{
	size_t length;

	while (*text) {
		for (length = 0; text[length] && is_part(text[length]); length++)
			;
		if (length)
			write_word(out, text, length);
		else
			putc(text[length++], out);
		text += length;
	}
}
