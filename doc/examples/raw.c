/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* raw.c - what the examples of raw Ethernet endpoints share (raw.h). */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include "raw.h"

void raw_check(const char *call, DAT_RETURN ret)
{
	const char *major = "?", *minor = "?";

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fprintf(stderr, "%s: %s %s\n", call, major, minor);
	exit(1);
}

static void make_endpoint(struct raw *raw)
{
	DAT_NAMED_ATTR ring = { "eth_receive", "ring" };
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = 256, .max_request_iov = 1, .ep_provider_specific_count = 1,
		.ep_provider_specific = &ring };

	CHECK(dat_ep_create(raw->ia, raw->pz, raw->ready, raw->sent, DAT_HANDLE_NULL, &attr, &raw->ep));
}

void raw_open(struct raw *raw, DAT_NAME_PTR ia)
{
	DAT_REGION_DESCRIPTION region = { .for_va = raw->memory };

	raw->async = DAT_HANDLE_NULL;
	raw->attr.size = sizeof raw->attr;
	CHECK(dat_ia_open(ia, 8, &raw->async, &raw->ia));
	CHECK(dat_eth_query(raw->ia, &raw->attr));
	CHECK(dat_pz_create(raw->ia, &raw->pz));
	CHECK(dat_evd_create(raw->ia, 16, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &raw->ready));
	CHECK(dat_evd_create(raw->ia, 256, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &raw->sent));
	CHECK(dat_lmr_create(raw->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof raw->memory, raw->pz,
			     DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, &raw->lmr, &raw->context, NULL, NULL,
			     NULL));
	make_endpoint(raw);
}

void raw_close(struct raw *raw)
{
	CHECK(dat_ia_close(raw->ia, DAT_CLOSE_ABRUPT_FLAG));
}

void raw_rule(struct raw *raw, const DAT_ETH_RULE *rule)
{
	DAT_ETH_RULE_HANDLE handle;

	CHECK(dat_eth_rule_add(raw->ep, rule, &handle));
}

DAT_ETH_FRAME raw_next(struct raw *raw)
{
	DAT_ETH_FRAME frame;
	DAT_COUNT got, more;
	DAT_EVENT event;

	while (dat_eth_poll(raw->ep, &frame, 1, &got) != DAT_SUCCESS) {
		CHECK(dat_eth_arm(raw->ep));
		CHECK(dat_evd_wait(raw->ready, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	}
	return frame;
}

void raw_post(struct raw *raw, DAT_SEG_LENGTH length, DAT_UINT64 cookie, const DAT_ETH_SEND *how)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = raw->context, .segment_length = length,
		.virtual_address = (DAT_VADDR)(uintptr_t)raw->memory };
	DAT_DTO_COOKIE name = { .as_64 = cookie };

	CHECK(dat_eth_post_send(raw->ep, 1, &iov, name, how, DAT_COMPLETION_DEFAULT_FLAG));
}

void raw_await(struct raw *raw)
{
	DAT_EVENT event;
	DAT_COUNT more;

	CHECK(dat_evd_wait(raw->sent, DAT_TIMEOUT_INFINITE, 1, &event, &more));
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		return;
	fprintf(stderr, "a frame was not sent: status %d\n", event.event_data.dto_completion_event_data.status);
	exit(1);
}

bool raw_mac(const char *text, uint8_t mac[6])
{
	char end;

	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx%c", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5],
		      &end) == 6;
}

bool raw_ipv4(const char *text, uint8_t ip[4])
{
	return inet_pton(AF_INET, text, ip) == 1;
}

bool raw_number(const char *text, unsigned long long max, unsigned long long *number)
{
	char *end;

	*number = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end && *number && *number <= max;
}
