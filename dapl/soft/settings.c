/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.c - see settings.h. */
#include "dapl/soft/settings.h"
#include "common/log.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/tunables.h"
#include <stdint.h>

void soft_settings_read(struct dapl_device *dev)
{
	unsigned long crc = 0, shm = 1, direct = 1, map = 1, guard = 0;
	unsigned long dm = DM_KIB;

	log_env_number("DAPL_SOFT_CRC", 0, 1, &crc);
	log_env_number("DAPL_SOFT_SHM", 0, 1, &shm);
	log_env_number("DAPL_SOFT_DIRECT", 0, 1, &direct);
	log_env_number("DAPL_SOFT_MAP", 0, 1, &map);
	log_env_number("DAPL_SOFT_GUARD", 0, 1, &guard);
	log_env_number("DAPL_SOFT_DM", 0, DM_KIB_MAX, &dm);
	dev->shm.dm_size = (uint64_t)dm << 10;
	dev->guards = guard;
	dev->want_crc = crc;
	dev->want_shm = shm && !crc;
	dev->want_direct = direct;
	dev->want_map = direct && map;
}

/* The ranges and defaults of soft_settings_read(). */
const struct dapl_parameter soft_parameters[] = {
	{ "DAPL_SOFT_CRC", 0, 1, 0, PARAMETER_NEXT_IA },
	{ "DAPL_SOFT_SHM", 0, 1, 1, PARAMETER_NEXT_IA },
	{ "DAPL_SOFT_DIRECT", 0, 1, 1, PARAMETER_NEXT_IA },
	{ "DAPL_SOFT_MAP", 0, 1, 1, PARAMETER_NEXT_IA },
	{ "DAPL_SOFT_GUARD", 0, 1, 0, PARAMETER_NEXT_IA },
	{ "DAPL_SOFT_DM", 0, DM_KIB_MAX, DM_KIB, PARAMETER_NEXT_IA },
	{ .name = NULL },
};
