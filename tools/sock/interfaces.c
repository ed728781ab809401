/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.c - see interfaces.h. */
#include "tools/sock/interfaces.h"
#include <string.h>
#include "common/address.h"
#include "common/local_addresses.h"
#include "tools/sock/loop.h"

enum { AGE_MS = 1000 }; /* an address that was added is found after this time */

static struct local_addresses all;
static uint64_t read_at; /* ms; 0: never */

static void refresh(void)
{
	struct local_addresses list = { 0 };

	if (read_at && loop_now_ms() - read_at < AGE_MS)
		return;
	read_at = loop_now_ms();
	if (local_addresses_read(&list, "")) {
		local_addresses_free(&list);
		return; /* what was known is better than nothing */
	}
	local_addresses_free(&all);
	all = list;
}

static bool is_address(const struct local_address *a, const uint8_t address[16])
{
	uint8_t gid[16];

	address_gid((const struct sockaddr *)&a->at, gid);
	return !memcmp(gid, address, sizeof gid);
}

static bool link_has(const struct local_link *link, const uint8_t address[16])
{
	for (size_t i = 0; i < all.address_count; i++)
		if (all.addresses[i].link == link && is_address(&all.addresses[i], address))
			return true;
	return false;
}

/* Two interfaces may have one address, as of IPv6 within a link. */
bool interfaces_join(const uint8_t a[16], const uint8_t b[16])
{
	refresh();
	for (size_t i = 0; i < all.link_count; i++)
		if (link_has(&all.links[i], a) && link_has(&all.links[i], b))
			return true;
	return false;
}

unsigned interfaces_index(const uint8_t address[16])
{
	refresh();
	for (size_t i = 0; i < all.link_count; i++)
		if (link_has(&all.links[i], address))
			return (unsigned)all.links[i].index;
	return 0;
}
