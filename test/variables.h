/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* variables.h - the environment's variables that lengthen a test, or repeat a run from its seed. */
#ifndef TEST_VARIABLES_H
#define TEST_VARIABLES_H
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The number in this variable, or `otherwise` if the variable is not set. */
static inline unsigned long variable_number(const char *name, unsigned long otherwise)
{
	const char *given = getenv(name);

	return given ? strtoul(given, NULL, 0) : otherwise;
}

/* The seed in this variable, or a new one if the variable is not set. The caller prints it. */
static inline uint32_t variable_seed(const char *name)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (uint32_t)variable_number(name, (uint32_t)now.tv_sec ^ (uint32_t)now.tv_nsec ^ (uint32_t)getpid() << 8);
}

#endif
