/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crc.h - the CRCs at the end of MPA frames and RoCE packets: 32 bits, computed with the lowest bit of each
 * byte first. */
#ifndef DATCAP_CRC_H
#define DATCAP_CRC_H
#include <stddef.h>
#include <stdint.h>

enum crc_polynomial {
	CRC32C,				/* of MPA (RFC 5044) */
	CRC32,				/* of Ethernet, and of RoCE's ICRC */
};

enum { CRC_SIZE = 4 };

/* Continues a CRC with n bytes. `crc` is 0 for the first bytes. */
uint32_t crc_add(enum crc_polynomial polynomial, uint32_t crc, const uint8_t *bytes, size_t n);
/* Writes a CRC with its lowest byte first, as it is sent. Returns the address after it. */
uint8_t *crc_put(uint8_t *to, uint32_t crc);

#endif
