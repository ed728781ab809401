/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* capture.c - receives Ethernet frames in a ring, and prints a line for each:
 *
 *	capture IA FRAMES
 *
 * Needs CAP_NET_RAW. A frame is read where the kernel stored it, and given back.
 *
 *	cc -D_GNU_SOURCE -o capture capture.c -ldat2 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

static void check(const char *call, DAT_RETURN ret)
{
	const char *major = "?", *minor = "?";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "capture: %s: %s %s\n", call, major, minor);
	exit(1);
}
#define CHECK(call) check(#call, (call))

static DAT_EP_HANDLE make_endpoint(DAT_IA_HANDLE ia, DAT_EVD_HANDLE ready)
{
	DAT_NAMED_ATTR ring = { "eth_receive", "ring" };
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.ep_provider_specific_count = 1, .ep_provider_specific = &ring };
	DAT_ETH_RULE any = { .mode = DAT_ETH_COPY, .flags = DAT_ETH_EGRESS };	/* masks of 0: every frame */
	DAT_ETH_RULE_HANDLE rule;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	CHECK(dat_pz_create(ia, &pz));
	CHECK(dat_ep_create(ia, pz, ready, DAT_HANDLE_NULL, DAT_HANDLE_NULL, &attr, &ep));
	CHECK(dat_eth_rule_add(ep, &any, &rule));
	return ep;
}

static void print(const DAT_ETH_FRAME *f)
{
	printf("%" PRIu64 ".%09u %5u bytes, to %02x:%02x:%02x:%02x:%02x:%02x%s\n", f->time / 1000000000,
	       (unsigned)(f->time % 1000000000), f->wire_length, f->data[0], f->data[1], f->data[2], f->data[3],
	       f->data[4], f->data[5], f->lost ? ", some were lost before" : "");
}

int main(int argc, char **argv)
{
	long left = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, ready;
	DAT_ETH_FRAME frames[16];
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	DAT_COUNT got, more;

	if (left < 1) {
		fprintf(stderr, "usage: capture IA FRAMES\n");
		return 2;
	}
	CHECK(dat_ia_open(argv[1], 8, &async, &ia));
	CHECK(dat_evd_create(ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &ready));
	ep = make_endpoint(ia, ready);
	while (left > 0) {
		if (dat_eth_poll(ep, frames, left < 16 ? (DAT_COUNT)left : 16, &got) != DAT_SUCCESS) {
			CHECK(dat_eth_arm(ep));
			CHECK(dat_evd_wait(ready, DAT_TIMEOUT_INFINITE, 1, &event, &more));
			continue;
		}
		for (DAT_COUNT i = 0; i < got; i++)
			print(&frames[i]);
		CHECK(dat_eth_release(ep, got));
		left -= got;
	}
	CHECK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	return 0;
}
