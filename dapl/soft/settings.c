/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.c - see settings.h. */
#include "dapl/soft/settings.h"
#include "common/log.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/tunables.h"
#include <stdint.h>
#include <string.h>

enum { CRC, SHM, DIRECT, MAP, GUARD, DM, PARAMETERS };

const struct dapl_parameter soft_parameters[] = {
	[CRC] = { "DAPL_SOFT_CRC", 0, 1, 0, PARAMETER_NEXT_IA },
	[SHM] = { "DAPL_SOFT_SHM", 0, 1, 1, PARAMETER_NEXT_IA },
	[DIRECT] = { "DAPL_SOFT_DIRECT", 0, 1, 1, PARAMETER_NEXT_IA },
	[MAP] = { "DAPL_SOFT_MAP", 0, 1, 1, PARAMETER_NEXT_IA },
	[GUARD] = { "DAPL_SOFT_GUARD", 0, 1, 0, PARAMETER_NEXT_IA },
	[DM] = { "DAPL_SOFT_DM", 0, DM_KIB_MAX, DM_KIB, PARAMETER_NEXT_IA },
	[PARAMETERS] = { .name = NULL },
};

static unsigned long read_parameter(int which)
{
	const struct dapl_parameter *p = &soft_parameters[which];
	unsigned long value = (unsigned long)p->by_default;

	log_env_number(p->name, p->min, p->max, &value);
	return value;
}

void soft_settings_read(struct dapl_device *dev)
{
	bool crc = read_parameter(CRC), shm = read_parameter(SHM);

	dev->want_crc = crc;
	dev->want_shm = shm && !crc;
	dev->want_direct = read_parameter(DIRECT);
	dev->want_map = read_parameter(MAP) && dev->want_direct;
	dev->detours = read_parameter(GUARD) ? SOFT_GUARDED : 0;
	dev->shm.dm_size = (uint64_t)read_parameter(DM) << 10;
}

/* --- options in ia_params ------------------------------------------------------------------------ */

static bool is_word(const char *text, const char *word)
{
	return strcspn(text, SOFT_SETTINGS_BLANK) == strlen(word) && !strncmp(text, word, strlen(word));
}

static bool read_one(struct soft_options *options, const char *word)
{
	options->eth_bypass = is_word(word, "eth_qdisc=bypass");
	return options->eth_bypass || is_word(word, "eth_qdisc=default");
}

/* ETH-38 */
const char *soft_settings_read_options(struct soft_options *options, const char *params)
{
	const char *word = params + soft_settings_options_offset(params);

	*options = (struct soft_options){ .eth_bypass = false };
	for (; *word; word = soft_settings_next_word(word))
		if (!read_one(options, word))
			return word;
	return NULL;
}
