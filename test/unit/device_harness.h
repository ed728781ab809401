/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_harness.h - the upcalls of a device, for programs that use a device without core: unit tests,
 * fuzz targets, probes. Each upcall is recorded until it is taken, or goes to the program's
 * observer. An upcall on another thread than the service thread ends the program. */
#ifndef TEST_UNIT_DEVICE_HARNESS_H
#define TEST_UNIT_DEVICE_HARNESS_H
#include "dapl/core/device.h"
#include <stdbool.h>
#include <sys/socket.h>

/* dapl_up_disconnected() is CLOSED if orderly, else BROKEN. */
enum upcall_kind { REQUEST, ESTABLISHED, FAILED, CLOSED, BROKEN, RELEASED, ASYNC, JOINED };

struct upcall {
	enum upcall_kind kind;
	void *owner;			/* service point, owner, or the object of an async event */
	struct dapl_conn *conn;
	enum dapl_conn_failure failure;	/* FAILED */
	enum ibv_event_type event;	/* ASYNC */
	bool ud;			/* REQUEST, ESTABLISHED: of datagrams */
	size_t length;			/* of pdata, bytes */
	char pdata[512];		/* no device hands up more */
	struct sockaddr_storage local, remote;
	struct dapl_ud_peer peer;	/* ESTABLISHED, if ud; JOINED, if no error */
	int err;			/* JOINED */
	struct upcall *next;
};

/* If set, gets each upcall on the service thread; nothing is recorded. */
extern void (*upcall_observer)(const struct upcall *up);

/* Waits for the first recorded upcall of this kind, takes it from the record and copies it to *out.
 * An owner of NULL stands for all. Returns false if none came within `ms`. */
bool upcall_take(enum upcall_kind kind, const void *owner, unsigned ms, struct upcall *out);
/* Waits for such an upcall and leaves it in the record. */
bool upcall_wait(enum upcall_kind kind, const void *owner, unsigned ms, struct upcall *out);
/* Returns the number of recorded upcalls of this kind. */
unsigned upcall_count(enum upcall_kind kind, const void *owner);
/* Drops what is recorded for this owner. */
void upcalls_drop(const void *owner);

#endif
