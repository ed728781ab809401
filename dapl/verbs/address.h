/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.h - from an entry's ia_params to the local addresses that may be meant. Reads
 * the text, the network interfaces and sysfs; opens no device and calls no librdmacm. */
#ifndef HW_ADDRESS_H
#define HW_ADDRESS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "common/address.h"
#include "common/ia_params.h"

enum { HW_PLACES = 32 };
struct hw_place {
	struct sockaddr_storage address;
	char netdev[64];
};

/* Where the device may be: addresses of this host, the preferred first. */
struct hw_places {
	struct hw_place place[HW_PLACES];
	unsigned n;
	char device[256];	/* if an RDMA device was named: it must be this one */
	unsigned port;		/* and this port of it; 0: any */
};

/* ENODEV or EINVAL after one log line about `text`. */
int hw_places_find(struct hw_places *places, const struct ia_params *params, const char *text);

/* "10.0.0.1 port 4000" into buf, which is returned. */
const char *hw_address_text(const struct sockaddr *a, char *buf, size_t size);
/* Gives a link-local address without a scope the scope of the other. */
void hw_address_fill_scope(struct sockaddr *a, const struct sockaddr *like);
/* The GID that RoCE makes of an address. */
void hw_address_gid(const struct sockaddr *a, uint8_t gid[16]);

#endif
