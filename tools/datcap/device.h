/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.h - the IA of a network device, and a raw endpoint on it. */
#ifndef DATCAP_DEVICE_H
#define DATCAP_DEVICE_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

struct device {
	const char *name;		/* as the user gave it */
	unsigned index;			/* of the network device; 0: the name is an IA */
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, recv, request;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
};

/* Opens the IA of this name, or makes one up for the network device of this name, with an option of the software device, or
 * "". Every failure ends the program with one line. */
void device_open(struct device *d, const char *name, const char *option);
void device_capabilities(struct device *d, DAT_ETH_ATTR *attr, const char **carrier);
/* An endpoint with a ring; snap 0: whole frames. */
void device_receive(struct device *d, unsigned frames, unsigned snap);
void device_add_rule(struct device *d, const DAT_ETH_RULE *rule);
/* An endpoint that sends, and memory for it. */
void device_send(struct device *d, void *memory, size_t size, DAT_LMR_CONTEXT *context, unsigned queue);
void device_stats(struct device *d, DAT_ETH_STATS *stats);
/* The network device was removed, or has another name now. */
bool device_is_gone(const struct device *d);
void device_close(struct device *d);

/* The process becomes this user, without any capability. */
void device_drop_privileges(const char *user);

#endif
