/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapter.h - the open interface adapter, what it can do, and its listener. All links of the process
 * (link.h) share it. If a function fails, it calls fail() (cli.h). */
#ifndef DATPERF_ADAPTER_H
#define DATPERF_ADAPTER_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>
#include <sys/socket.h>

enum {
	ADAPTER_READS = 16, /* RDMA reads and atomics in flight of an endpoint, at most */
};

struct adapter {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, requests; /* requests: connection requests */
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	bool atomics, immediate, datagrams;  /* the IA supports them */
	DAT_COUNT reads;                     /* RDMA reads in flight of an endpoint */
	DAT_COUNT max_endpoints, max_events; /* of the IA; of one EVD */
	DAT_COUNT max_dtos;		     /* of one endpoint */
	DAT_COUNT max_srqs, max_srq_receives;
	uint64_t dm_size; /* bytes of device memory; 0: none */
	bool dm_maps;     /* processes can map it */
	char device[64], gid[64]; /* of the RDMA device; "" if the IA does not report it */
	unsigned port;
	bool is_rdma; /* an RDMA device: not the software device */
	unsigned mtu; /* bytes of a packet's payload, and of a datagram; 0: not known */
};

void adapter_open(struct adapter *a, const char *name);
/* Listens at a connection qualifier; at a free one if `port` is 0. Returns it. */
DAT_CONN_QUAL adapter_listen(struct adapter *a, DAT_CONN_QUAL port);
/* Stores the IA's own address, which a peer uses to connect to it. */
void adapter_address(const struct adapter *a, struct sockaddr_storage *address);
/* Closes the adapter. All links must be closed. */
void adapter_close(struct adapter *a);

#endif
