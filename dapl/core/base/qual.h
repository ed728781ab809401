/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qual.h - maps a connection qualifier, which has 64 bits, to the port of 16 bits that a device
 * listens on. Both ends of a connection compute it, so it is part of the wire protocol: a
 * qualifier above 65535 maps to one of the ports 33534 to 65534, as OFA DAPL maps it. */
#ifndef DAPL_QUAL_H
#define DAPL_QUAL_H
#include <dat/udat.h>
#include <stdint.h>
#include "common/address.h"

enum { QUAL_MODULUS = 32001, QUAL_FIRST_PORT = 65535 - QUAL_MODULUS };

/* 0, which is no qualifier, stays 0. SP-38, 39, 40, EXT-26. */
static inline uint16_t dapl_qual_port(DAT_CONN_QUAL qual)
{
	return qual > UINT16_MAX ? QUAL_FIRST_PORT + qual % QUAL_MODULUS : qual;
}

/* Returns 0 if the address is unknown. */
static inline DAT_PORT_QUAL dapl_port_of(const struct sockaddr_storage *address)
{
	return address_port((const struct sockaddr *)address);
}

#endif
