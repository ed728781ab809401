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

/* The functions below end the program with one line if they fail. */

/* Makes an entry of dat.conf for the network device `name`, instead of all entries of the file. `option` is an
 * option of the software device, or "". Returns false if there is no such device: the name may be that of an IA.
 * Call it for all devices before device_open(), since the library reads its entries once. */
bool device_make_up(const char *name, const char *option);
/* Opens the IA `name`: that of device_make_up(), or of dat.conf. */
void device_open(struct device *d, const char *name);
void device_capabilities(struct device *d, DAT_ETH_ATTR *attr, const char **carrier);
/* Creates an endpoint that receives into a ring of `frames` frames, and keeps the first `snap` bytes of
 * each, or whole frames if `snap` is 0. `xdp`: by AF_XDP, `frames` for each receive queue. */
void device_receive(struct device *d, bool xdp, unsigned frames, unsigned snap);
void device_add_rule(struct device *d, const DAT_ETH_RULE *rule);
/* Creates an endpoint that sends, with at most `queue` sends posted, and registers the memory of the
 * frames. */
void device_send(struct device *d, void *memory, size_t size, DAT_LMR_CONTEXT *context, unsigned queue);
void device_stats(struct device *d, DAT_ETH_STATS *stats);
/* Returns whether the network device was removed. Returns false for an IA of dat.conf. */
bool device_is_gone(const struct device *d);
/* Prints a line if the network device is down, or has no carrier: then no frame will come. */
void device_warn_if_down(const struct device *d);
void device_close(struct device *d);

/* Changes the user of the process, which loses its capabilities unless that user is root. */
void device_drop_privileges(const char *user);

#endif
