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

/* Bytes of `params` that are name and port. */
size_t soft_options_offset(const char *params);
/* Reads what is behind them. Returns NULL, or the first option that is wrong; it ends at a blank. */
const char *soft_options_read(struct soft_options *options, const char *params);

#endif
