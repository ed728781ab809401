/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameter.h - the description of a parameter: its range, its default, and when a change takes effect in a
 * running program. settings.c has the table of core; a device has its own (device.h). */
#ifndef DAPL_PARAMETER_H
#define DAPL_PARAMETER_H

enum dapl_parameter_when {
	PARAMETER_NOW,		/* at its next use, by the next message or the next connection */
	PARAMETER_NEXT_IA,	/* IAs that are open keep the old value */
	PARAMETER_NEVER,	/* refused */
};

struct dapl_parameter {
	const char *name;
	unsigned long min, max;
	long by_default;	/* -1: the parameter is unset */
	enum dapl_parameter_when when;
};

#endif
