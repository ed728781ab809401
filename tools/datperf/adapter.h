/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapter.h - the open interface adapter, what it can do, and its listener. All links of the process
 * (link.h) share it. A call that fails calls fail() (cli.h). */
#ifndef DATPERF_ADAPTER_H
#define DATPERF_ADAPTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>
#include <sys/socket.h>

enum {
	ADAPTER_READS = 16, /* RDMA reads and atomics under way of an endpoint, if the IA can */
};

struct adapter {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, requests; /* requests: of connections */
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	bool atomics, immediate;             /* the IA has them */
	DAT_COUNT reads;                     /* RDMA reads of an endpoint under way at a time */
	DAT_COUNT max_endpoints, max_events; /* of the IA; of one EVD */
	DAT_COUNT max_dtos;		     /* of one endpoint */
	DAT_COUNT max_srqs, max_srq_receives;
	char device[64], gid[64]; /* of the RDMA device; empty if the IA does not say */
	unsigned port;
};

void adapter_open(struct adapter *a, const char *name);
void adapter_listen(struct adapter *a, DAT_CONN_QUAL port);
/* The IA's own address, as a peer would name it. */
void adapter_address(const struct adapter *a, struct sockaddr_storage *address);
/* All links are closed. */
void adapter_close(struct adapter *a);

#endif
