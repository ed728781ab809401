/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.c - see options.h. */
#include "dapl/soft/options.h"
#include <string.h>

#define BLANK " \t\r\n"

/* Returns the beginning of the next word. */
static const char *skip_word(const char *text)
{
	text += strcspn(text, BLANK);
	return text + strspn(text, BLANK);
}

size_t soft_options_offset(const char *params)
{
	return (size_t)(skip_word(skip_word(params + strspn(params, BLANK))) - params);
}

static bool is_word(const char *text, const char *word)
{
	return strcspn(text, BLANK) == strlen(word) && !strncmp(text, word, strlen(word));
}

static bool read_one(struct soft_options *options, const char *word)
{
	options->eth_bypass = is_word(word, "eth_qdisc=bypass");
	return options->eth_bypass || is_word(word, "eth_qdisc=default");
}

/* ETH-38 */
const char *soft_options_read(struct soft_options *options, const char *params)
{
	*options = (struct soft_options){ .eth_bypass = false };
	for (const char *word = params + soft_options_offset(params); *word; word = skip_word(word))
		if (!read_one(options, word))
			return word;
	return NULL;
}
