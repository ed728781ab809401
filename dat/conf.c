/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conf.c - the grammar of dat.conf (dat.conf(5)): one entry a line, eight fields.
 * Reads no file and prints nothing. */
#include "dat/conf.h"
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOUND_MAX 40	/* characters of a wrong value that a message repeats */
#define VERSION_MAX 65535
#define DAMAGED 2	/* lines of a text file that may have bytes of no text, each with its own message */

/* A field's characters, unquoted; not NUL-terminated. */
struct token {
	const char *text;
	size_t length;
	const char *begin;	/* where the field, or its quotation mark, stands in the line */
};

struct line {
	char *at, *end;		/* the rest of the line */
	bool unterminated;	/* ended inside a quoted field */
	const char *opened;	/* the quotation mark of the last quoted field */
};

struct parser {
	struct conf *conf;
	const char *file;
	unsigned line;
	const char *text;	/* the line's first character */
	conf_report *report;
	void *arg;
};

enum { F_NAME, F_API, F_THREADS, F_DEFAULT, F_LIBRARY, F_VERSION, F_IA_PARAMS, F_PLATFORM,
	FIELDS };

/* --- words of a line ---------------------------------------------------------- */

/* CFG-9, 30 */
static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Removes the quotes and backslashes in place: the result is never longer.
 * CFG-12, 13, 14, 15, 16, 17, 18. */
static bool next_quoted(struct line *line, struct token *token)
{
	char *out = line->at + 1;

	token->begin = line->at;
	line->opened = line->at++;
	token->text = out;
	for (; line->at < line->end && *line->at != '"'; line->at++) {
		if (*line->at == '\\' && line->at + 1 < line->end)
			line->at++;
		*out++ = *line->at;
	}
	line->unterminated = line->at == line->end;
	if (line->unterminated)
		return false;
	line->at++;
	token->length = out - token->text;
	return true;
}

/* A quotation mark ends an unquoted word, unless a backslash stands before it: both are then characters of the word, as
 * in the OpenFabrics registry. The first character is never such a backslash. CFG-11. */
static void next_unquoted(struct line *line, struct token *token)
{
	token->begin = token->text = line->at++;
	for (; line->at < line->end && !is_blank(*line->at) && *line->at != '"'; line->at++)
		if (*line->at == '\\' && line->at + 1 < line->end && !is_blank(line->at[1]))
			line->at++;
	token->length = line->at - token->text;
}

/* Returns false at the end of the line, at a comment, or in an unterminated quotation. A # begins a comment only where
 * a word could begin. CFG-10, 11. */
static bool next_token(struct line *line, struct token *token)
{
	while (line->at < line->end && is_blank(*line->at))
		line->at++;
	if (line->at == line->end || *line->at == '#')
		return false;
	if (*line->at == '"')
		return next_quoted(line, token);
	next_unquoted(line, token);
	return true;
}

static bool token_is(const struct token *token, const char *text)
{
	return token->length == strlen(text) && !memcmp(token->text, text, token->length);
}

static char *token_dup(const struct token *token)
{
	char *copy = malloc(token->length + 1);

	if (copy) {
		memcpy(copy, token->text, token->length);
		copy[token->length] = '\0';
	}
	return copy;
}

/* Takes the digits at the beginning of a token. */
static bool take_number(struct token *token, DAT_UINT32 *number)
{
	DAT_UINT32 value = 0;
	size_t i;

	for (i = 0; i < token->length && isdigit((unsigned char)token->text[i]); i++) {
		value = value * 10 + (token->text[i] - '0');
		if (value > VERSION_MAX)
			return false;
	}
	token->text += i;
	token->length -= i;
	*number = value;
	return i > 0;
}

static bool take_char(struct token *token, char c)
{
	if (!token->length || token->text[0] != c)
		return false;
	token->text++;
	token->length--;
	return true;
}

/* --- the eight fields --------------------------------------------------------- */

/* CFG-31, 32 */
static bool take_name(struct token token, struct conf_entry *entry)
{
	if (!token.length || token.length >= sizeof(entry->info.ia_name))
		return false;
	memcpy(entry->info.ia_name, token.text, token.length);
	entry->info.ia_name[token.length] = '\0';
	return true;
}

/* CFG-20, 21 */
static bool take_api(struct token token, struct conf_entry *entry)
{
	DAT_PROVIDER_INFO *info = &entry->info;

	if (!take_char(&token, 'u') || !take_number(&token, &info->dapl_version_major))
		return false;
	info->dapl_version_minor = 0;
	if (take_char(&token, '.') && token.length &&
	    !take_number(&token, &info->dapl_version_minor))
		return false;
	return !token.length;
}

/* CFG-22 */
static bool take_threads(struct token token, struct conf_entry *entry)
{
	entry->info.is_thread_safe = token_is(&token, "threadsafe") ? DAT_TRUE : DAT_FALSE;
	return entry->info.is_thread_safe || token_is(&token, "nonthreadsafe");
}

static bool take_default(struct token token, struct conf_entry *entry)
{
	entry->is_default = token_is(&token, "default");
	return entry->is_default || token_is(&token, "nondefault");
}

static bool take_library(struct token token, struct conf_entry *entry)
{
	(void)entry;
	return token.length > 0;	/* dlopen("") opens the program itself */
}

/* CFG-24, 25 */
static bool take_version(struct token token, struct conf_entry *entry)
{
	DAT_UINT32 number;
	const char *dot = memchr(token.text, '.', token.length);

	(void)entry;
	if (!dot || dot == token.text)
		return false;
	token.length -= dot - token.text;
	token.text = dot;
	return take_char(&token, '.') && take_number(&token, &number) &&
	       take_char(&token, '.') && take_number(&token, &number) && !token.length;
}

static bool take_any(struct token token, struct conf_entry *entry)
{
	(void)token, (void)entry;
	return true;
}

static const struct field {
	const char *name;
	const char *expected;
	bool (*take)(struct token token, struct conf_entry *entry);
} fields[FIELDS] = {
	[F_NAME]      = { "ia_name", "1 to 255 characters", take_name },
	[F_API]       = { "api_version", "u<major>.<minor>, as in \"u2.0\"", take_api },
	[F_THREADS]   = { "threadsafety", "\"threadsafe\" or \"nonthreadsafe\"", take_threads },
	[F_DEFAULT]   = { "default", "\"default\" or \"nondefault\"", take_default },
	[F_LIBRARY]   = { "lib_path", "a file name", take_library },
	[F_VERSION]   = { "provider_version", "<id>.<major>.<minor>, as in \"dapl.2.0\"", take_version },
	[F_IA_PARAMS] = { "ia_params", "", take_any },
	[F_PLATFORM]  = { "platform_params", "", take_any },
};

/* --- messages about a wrong line ---------------------------------------------- */

/* Returns the found value for a message: short, and without control characters. */
static const char *printable(const struct token *token, char *out)
{
	size_t i, n = token->length > FOUND_MAX ? FOUND_MAX : token->length;
	char *at = out;

	for (i = 0; i < n; i++) {
		unsigned char c = token->text[i];

		if (c < ' ' || c >= 0x7f)
			at += sprintf(at, "\\x%02x", c);
		else
			*at++ = c;
	}
	strcpy(at, n < token->length ? "..." : "");
	return out;
}

#define PRINTABLE_SIZE (4 * FOUND_MAX + sizeof("..."))

#define EIGHT_FIELDS "ia_name api_version threadsafety default lib_path provider_version " \
	"ia_params platform_params"

/* `at` is the place in the line that is wrong. */
static void report_line(const struct parser *parser, const char *at, const char *field, const char *found,
			const char *expected, const char *message)
{
	const struct conf_fault fault = {
		.file = parser->file,
		.line = parser->line,
		.column = (unsigned)(at - parser->text) + 1,
		.field = field,
		.found = found,
		.expected = expected,
		.message = message,
	};

	if (parser->report)
		parser->report(parser->arg, &fault);
}

static void report_field(const struct parser *parser, const struct token *words, int i)
{
	char name[PRINTABLE_SIZE], found[PRINTABLE_SIZE], message[512];

	snprintf(message, sizeof(message), "\"%s\": %s is \"%s\"; expected %s; entry ignored",
		 printable(&words[F_NAME], name), fields[i].name, printable(&words[i], found),
		 fields[i].expected);
	report_line(parser, words[i].begin, fields[i].name, found, fields[i].expected, message);
}

/* `end` is where the missing field would stand. */
static void report_count(const struct parser *parser, const struct token *words, size_t count, const char *end)
{
	char name[PRINTABLE_SIZE], found[32], message[512];

	snprintf(found, sizeof(found), "%s%zu field%s", count > FIELDS ? "more than " : "",
		 count > FIELDS ? (size_t)FIELDS : count, count == 1 ? "" : "s");
	snprintf(message, sizeof(message), "\"%s\": %s; expected 8 (" EIGHT_FIELDS "); entry ignored",
		 printable(&words[F_NAME], name), found);
	report_line(parser, count > FIELDS ? words[FIELDS].begin : end, "", found,
		 "8 fields: " EIGHT_FIELDS, message);
}

/* The missing mark need not be the last field's, so the message names the column of the mark
 * that is left alone. */
static void report_unterminated(const struct parser *parser, const struct token *words, size_t count,
				const char *opened)
{
	char name[PRINTABLE_SIZE], message[512];

	snprintf(message, sizeof(message), "%s%s%sa quoted field is not closed before the end of "
		 "the line: the quotation mark in column %zu has no partner; line ignored",
		 count ? "\"" : "", count ? printable(&words[F_NAME], name) : "",
		 count ? "\": " : "", (size_t)(opened - parser->text) + 1);
	report_line(parser, opened, count < FIELDS ? fields[count].name : "", "a quotation mark without a partner",
		    "a closing quotation mark on the same line", message);
}

/* --- entries ------------------------------------------------------------------ */

/* CFG-33 */
static struct conf_entry *conf_new_entry(struct conf *conf)
{
	if (conf->count == conf->room) {
		size_t room = conf->room ? 2 * conf->room : 16;
		struct conf_entry *grown = realloc(conf->entries, room * sizeof(*grown));

		if (!grown)
			return NULL;
		conf->entries = grown;
		conf->room = room;
	}
	return &conf->entries[conf->count];
}

/* Keeps a copy of `entry`, and takes its two strings. A string that is NULL could not be
 * allocated. */
static int conf_keep(struct conf *conf, struct conf_entry entry, char *library,
		     char *ia_params)
{
	struct conf_entry *kept = conf_new_entry(conf);

	if (!kept || !library || !ia_params) {
		free(library);
		free(ia_params);
		return ENOMEM;
	}
	*kept = entry;
	kept->library = library;
	kept->ia_params = ia_params;
	conf->count++;
	return 0;
}

static int parse_entry(struct parser *parser, const struct token words[FIELDS])
{
	struct conf_entry entry = { .file = parser->file, .line = parser->line };

	for (int i = 0; i < FIELDS; i++)
		if (!fields[i].take(words[i], &entry)) {
			report_field(parser, words, i);
			return 0;
		}
	return conf_keep(parser->conf, entry, token_dup(&words[F_LIBRARY]),
			 token_dup(&words[F_IA_PARAMS]));
}

static void parse_include(struct parser *parser, const struct token *what)
{
	char found[PRINTABLE_SIZE], message[512];

	if (token_is(what, "auto")) {
		if (!parser->conf->wants_auto)
			parser->conf->auto_at = parser->conf->count;
		parser->conf->wants_auto = true;
		return;
	}
	snprintf(message, sizeof(message), "include is \"%s\"; expected \"auto\"; line ignored",
		 printable(what, found));
	report_line(parser, what->begin, "include", found, "auto", message);
}

/* An entry has eight fields, also one named "include". */
static void report_include(const struct parser *parser, const struct token *words, size_t count, const char *end)
{
	if (count == 1)
		report_line(parser, end, "include", "nothing", "auto",
			 "include is alone on its line; expected \"include auto\"; line ignored");
	else
		report_line(parser, words[2].begin, "include", "more than one word", "auto",
			 "include has more than one word after it; expected \"include auto\"; "
			 "line ignored");
}

/* CFG-5, 6, 7, 34 */
static int parse_line(struct parser *parser, char *text, size_t length)
{
	struct line line = { .at = text, .end = text + length };
	const char *nul = memchr(text, '\0', length);
	struct token words[FIELDS + 1];
	size_t count = 0;

	parser->text = text;
	if (nul) {
		report_line(parser, nul, "", "a NUL byte", "text", "a NUL byte; expected text; line ignored");
		return 0;
	}
	while (count <= FIELDS && next_token(&line, &words[count]))
		count++;
	if (line.unterminated)
		report_unterminated(parser, words, count, line.opened);
	else if (count == 2 && token_is(&words[0], "include"))
		parse_include(parser, &words[1]);
	else if (count == FIELDS)
		return parse_entry(parser, words);
	else if (count && count < FIELDS && token_is(&words[0], "include"))
		report_include(parser, words, count, line.at);
	else if (count)
		report_count(parser, words, count, line.at);
	return 0;
}

/* Some editors put this in front of UTF-8 text. */
static size_t byte_order_mark(const char *text, size_t length)
{
	return length >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0;
}

/* Control characters that text may have: blanks, and ESC, which terminals' colours begin with. */
static bool is_of_text(char c)
{
	return (unsigned char)c >= ' ' || (c && strchr("\t\n\v\f\r\033", c));
}

/* Returns the first byte that is no text if more than DAMAGED lines have such bytes, otherwise NULL. Stores the
 * number and the begin of the first of these lines. */
static const char *find_binary(const char *text, size_t length, unsigned *line, const char **begin)
{
	const char *first = NULL, *start = text;
	unsigned number = 1, last = 0, lines = 0;

	for (const char *at = text; at < text + length; at++) {
		if (*at == '\n') {
			number++;
			start = at + 1;
		} else if (!is_of_text(*at) && number != last) {
			last = number;
			if (!lines++) {
				first = at;
				*line = number;
				*begin = start;
			}
		}
	}
	return lines > DAMAGED ? first : NULL;
}

/* Reports a binary file once, instead of each of its lines. */
static void report_binary(struct parser *parser, const char *text, size_t length)
{
	const char *at = find_binary(text, length, &parser->line, &parser->text);

	if (at) {
		report_line(parser, at, "", *at ? "a control character" : "a NUL byte", "a text file",
			    "not a text file; its lines that are no entries are ignored");
		parser->report = NULL;
	}
	parser->line = 0;
}

/* CFG-8, 19 */
int conf_parse(struct conf *conf, const char *text, size_t length, const char *file,
	       conf_report *report, void *arg)
{
	struct parser parser = { .conf = conf, .file = file, .report = report, .arg = arg };
	char *copy = malloc(length + 1), *at, *end;
	int err = 0;

	if (!copy)
		return ENOMEM;
	if (length)
		memcpy(copy, text, length);
	end = copy + length;
	report_binary(&parser, copy, length);
	for (at = copy + byte_order_mark(copy, length); at < end && !err; ) {
		char *newline = memchr(at, '\n', end - at);
		char *line_end = newline ? newline : end;

		parser.line++;
		err = parse_line(&parser, at, line_end - at);
		at = line_end + 1;
	}
	free(copy);
	return err;
}

int conf_add(struct conf *conf, const char *name, const char *library,
	     const char *ia_params)
{
	struct conf_entry entry = { .is_default = true };
	struct token word = { .text = name, .length = strlen(name) };

	if (!take_name(word, &entry))
		return EINVAL;
	entry.info.dapl_version_major = DAT_VERSION_MAJOR;
	entry.info.dapl_version_minor = DAT_VERSION_MINOR;
	entry.info.is_thread_safe = DAT_FALSE;
	return conf_keep(conf, entry, strdup(library), strdup(ia_params));
}

void conf_free(struct conf *conf)
{
	for (size_t i = 0; i < conf->count; i++) {
		free(conf->entries[i].library);
		free(conf->entries[i].ia_params);
	}
	free(conf->entries);
	*conf = (struct conf){ .entries = NULL };
}
