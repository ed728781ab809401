/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pace.c - sends frames at a rate, the first of them 100 ms from now:
 *
 *	pace IA TO-MAC FRAMES BITS-PER-SECOND
 *
 * Frames of 1000 bytes, of a type for local experiments. Needs CAP_NET_RAW.
 *
 *	cc -D_GNU_SOURCE -o pace pace.c raw.c -ldat2 */
#include <stdio.h>
#include <string.h>
#include "raw.h"

enum { LENGTH = 1000, MAX_FRAMES = 200, DELAY_MS = 100 };

static struct raw raw;

/* Nanoseconds since 1970, as launch times are. */
static DAT_UINT64 now(void)
{
	DAT_UINT64 device, system, error;

	CHECK(dat_eth_clock(raw.ia, &device, &system, &error));
	return system;
}

int main(int argc, char **argv)
{
	DAT_ETH_SEND first = { .flags = DAT_ETH_SEND_LAUNCH }, plain = { .flags = 0 };
	unsigned long long frames, rate;
	DAT_ETH_PACE pace = { .burst = 0 };
	uint8_t to[6];

	if (argc != 5 || !raw_mac(argv[2], to) || !raw_number(argv[3], MAX_FRAMES, &frames) ||
	    !raw_number(argv[4], 100000000000, &rate)) {
		fprintf(stderr, "usage: pace IA TO-MAC FRAMES BITS-PER-SECOND\n");
		return 2;
	}
	raw_open(&raw, argv[1]);
	memcpy(raw.memory, to, 6);
	memcpy(raw.memory + 6, raw.attr.address, 6);
	raw.memory[12] = 0x88;
	raw.memory[13] = 0xb5;
	pace.bits_per_s = rate;
	CHECK(dat_eth_pace(raw.ep, &pace));
	first.launch = now() + DELAY_MS * 1000000ull;
	for (unsigned i = 0; i < frames; i++)		/* they leave after the first */
		raw_post(&raw, LENGTH, i, i ? &plain : &first);
	for (unsigned i = 0; i < frames; i++)
		raw_await(&raw);
	printf("%llu frames, the last %.1f ms behind the first\n", frames, (double)(now() - first.launch) / 1e6);
	raw_close(&raw);
	return 0;
}
