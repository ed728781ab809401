/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* address.h - finds the local addresses that an entry's ia_params may mean. Reads the text, the network
 * interfaces and sysfs; opens no device and does not call librdmacm. */
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
	unsigned rank;		/* of the address, local_address_rank() */
};

/* Where the device may be: addresses of this host, the preferred first. */
struct hw_places {
	struct hw_place place[HW_PLACES];
	unsigned n;
	char device[256];	/* the RDMA device that the entry names; "": it names none */
	unsigned port;		/* the port of that device; 0: no device is named */
};

/* Returns 0, or an errno after one log line that quotes `text`. EINVAL: there is no name; ENODEV: nothing
 * has that name. */
int hw_address_find_places(struct hw_places *places, const struct ia_params *params, const char *text);

/* Writes "10.0.0.1 port 4000" to buf, and returns buf. */
const char *hw_address_text(const struct sockaddr *a, char *buf, size_t size);
/* Gives a link-local address without a scope the scope of `like`. */
void hw_address_fill_scope(struct sockaddr *a, const struct sockaddr *like);

#endif
