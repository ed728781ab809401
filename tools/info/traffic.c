/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* traffic.c - see traffic.h. */
#include "tools/info/traffic.h"

static const struct {
	const char *name, *bytes[4], *messages[5];	/* names of counters; NULL ends a list */
} operations[TRAFFIC_OPERATIONS] = {
	[TRAFFIC_SEND] = { "send", { "POST_SEND_DATA", "POST_SEND_UD_DATA" }, { "POST_SEND", "POST_SEND_UD" } },
	[TRAFFIC_WRITE] = { "write", { "POST_WRITE_DATA", "POST_WRITE_IMM_DATA" }, { "POST_WRITE", "POST_WRITE_IMM" } },
	[TRAFFIC_READ] = { "read", { "POST_READ_DATA" }, { "POST_READ" } },
	[TRAFFIC_ATOMIC] = { "atomic", { NULL }, { "POST_CMP_SWAP", "POST_FETCH_ADD" } },
	[TRAFFIC_RECEIVE] = { "receive", { "RECV_DATA", "RECV_UD_DATA", "RECV_IMM_DATA" },
		{ "RECV", "RECV_UD", "RECV_IMM", "RECV_RDMA_IMM" } },
};

static int64_t sum(const json_t *totals, const char *const *counters)
{
	int64_t sum = 0;

	for (; *counters; counters++)
		sum += json_integer_value(json_object_get(totals, *counters));
	return sum;
}

const char *traffic_name(enum traffic operation)
{
	return operations[operation].name;
}

int64_t traffic_bytes(const json_t *totals, enum traffic operation)
{
	return sum(totals, operations[operation].bytes);
}

int64_t traffic_messages(const json_t *totals, enum traffic operation)
{
	return sum(totals, operations[operation].messages);
}
