/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ethrule_fuzz.c - any text as a rule of datcap: it is refused with one printable line, or gives a key that lies
 * within its mask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tools/datcap/rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "ethrule_fuzz: %s\n", what);
	abort();
}

static bool lies_within(const DAT_ETH_KEY *key, const DAT_ETH_KEY *mask)
{
	const uint8_t *k = (const uint8_t *)key, *m = (const uint8_t *)mask;

	for (size_t i = 0; i < sizeof *key; i++)
		if (k[i] & ~m[i])
			return false;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[1200], wrong[300] = "";
	DAT_ETH_RULE rule = { .mode = DAT_ETH_COPY, .tag = 7 };

	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!rule_parse(text, &rule, wrong, sizeof wrong)) {
		demand(*wrong, "refused without a reason");
		return 0;
	}
	demand(rule.mode == DAT_ETH_COPY && rule.tag == 7, "it changes more than the keys");
	demand(lies_within(&rule.key, &rule.mask) && lies_within(&rule.inner_key, &rule.inner_mask),
	       "a key exceeds its mask");
	return 0;
}
