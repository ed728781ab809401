/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.h - options of the software device in an entry's ia_params, behind name and port:
 * "eth0 0 eth_qdisc=bypass". Name and port are common/ia_params.h's. */
#ifndef SOFT_OPTIONS_H
#define SOFT_OPTIONS_H
#include <stdbool.h>
#include <stddef.h>

struct soft_options {
	bool eth_bypass;		/* raw Ethernet endpoints do not send through the queueing discipline */
};

/* Returns the number of bytes of `params` that hold name and port, with the blanks behind them. */
size_t soft_options_offset(const char *params);
/* Reads the options behind name and port. Returns NULL if all are right, else the first wrong one,
 * which ends at a blank or at the end of `params`. */
const char *soft_options_read(struct soft_options *options, const char *params);

#endif
