/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* adapter.h - an open interface adapter and its events in a program that waits with poll():
 * for events, for a signal that ends the run, and for a point in time. Endpoints are peer.h's job. */
#ifndef DATPING_ADAPTER_H
#define DATPING_ADAPTER_H
#include <dat/udat.h>
#include <stdbool.h>
#include <sys/socket.h>

struct adapter {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, cr, conn, dto;
	DAT_CNO_HANDLE cno;
	DAT_FD cno_fd;
	int signal_fd;                   /* readable after SIGINT or SIGTERM */
	DAT_MEM_PRIV_FLAGS read_sink;    /* privileges that memory needs to take RDMA reads */
	struct sockaddr_storage address; /* its own */
	unsigned burst;                  /* events taken since the last poll() */
};

/* Opens the adapter, with room for events of `peers` endpoints. If `name` is NULL, opens the only adapter
 * that is configured; if there are several, that is a usage error. From now on SIGINT and SIGTERM end waits
 * instead of the program. */
void adapter_open(struct adapter *a, const char *name, DAT_COUNT peers);
void adapter_close(struct adapter *a);

enum arrival {
	ARRIVED_EVENT,
	ARRIVED_SIGNAL, /* each later call returns it, too */
	ARRIVED_LATE,   /* the time `until` has come */
};

/* Waits for the next event of any kind until now() is `until`, or without limit if `until` is 0. */
enum arrival adapter_next(struct adapter *a, double until, DAT_EVENT *event);

#endif
