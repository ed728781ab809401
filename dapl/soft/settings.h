/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* settings.h - what a user sets of the software device: the environment variables DAPL_SOFT_*, which are read when a
 * device is opened, with their description for programs that change parameters; and the options in an entry's
 * ia_params, behind name and port: "eth0 0 eth_qdisc=bypass". Name and port are common/ia_params.h's. */
#ifndef SOFT_SETTINGS_H
#define SOFT_SETTINGS_H
#include "dapl/core/base/parameter.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct dapl_device;

extern const struct dapl_parameter soft_parameters[];	/* the last one has no name */

/* A bad value gives one line and the default. */
void soft_settings_read(struct dapl_device *dev);

struct soft_options {
	bool eth_bypass;		/* raw Ethernet endpoints do not send through the queueing discipline */
};

#define SOFT_SETTINGS_BLANK " \t\r\n"

/* Returns the beginning of the next word of ia_params. */
static inline const char *soft_settings_next_word(const char *text)
{
	text += strcspn(text, SOFT_SETTINGS_BLANK);
	return text + strspn(text, SOFT_SETTINGS_BLANK);
}

/* Returns the number of bytes of `params` that hold name and port, with the blanks behind them. */
static inline size_t soft_settings_options_offset(const char *params)
{
	const char *name = params + strspn(params, SOFT_SETTINGS_BLANK);

	return (size_t)(soft_settings_next_word(soft_settings_next_word(name)) - params);
}

/* Reads the options behind name and port. Returns NULL if all are right, else the first wrong one,
 * which ends at a blank or at the end of `params`. */
const char *soft_settings_read_options(struct soft_options *options, const char *params);

#endif
