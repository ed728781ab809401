/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_hash.h - which hash QP of a group the frames of a rule go to (eth_hash.c). Plain C, without a device.
 *
 * Most adapters hash by one kind of headers for each QP: IPv4 or IPv6, and TCP or UDP or neither. */
#ifndef VERBS_ETH_HASH_H
#define VERBS_ETH_HASH_H
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include "dapl/core/eth_device.h"

enum hw_hash_kind {
	HASH_JOINT,		/* of whatever headers there are */
	HASH_NONE,		/* no IP: the table's first entry */
	HASH_IPV4, HASH_IPV4_TCP, HASH_IPV4_UDP, HASH_IPV6, HASH_IPV6_TCP, HASH_IPV6_UDP,
	HASH_KINDS
};

/* Of the fields of a group, those that a QP of this kind hashes. */
uint64_t hw_hash_fields(enum hw_hash_kind kind, uint64_t fields);

/* The kind of all frames that match a rule. Returns why there is no single one, or NULL. */
const char *hw_hash_kind_of(const struct dapl_eth_rule *rule, uint64_t fields, enum hw_hash_kind *kind);

#endif
