/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* acks.h - acknowledgements that wait for a message to ride on. The caller of each function holds the
 * progress lock. */
#ifndef SOFT_PROGRESS_ACKS_H
#define SOFT_PROGRESS_ACKS_H
#include <stdbool.h>

struct dapl_conn;
struct dapl_device;
struct shm_conn;

/* Input of the connection was processed: sends an acknowledgement if one is due. It waits for a
 * message to ride on only while a thread polls, which will come back, or while the timer that
 * watches the polling threads runs. `polling`: the caller is such a thread. */
void soft_acks_schedule(struct dapl_conn *conn, bool polling);
/* The connection ends: its acknowledgement no longer waits. */
void soft_acks_forget(struct dapl_conn *conn);

/* Sends the acknowledgements over TCP that wait. */
void soft_acks_flush_sockets(struct dapl_device *dev);
/* Sends the acknowledgement of a shared-memory connection, whose ring was found empty. */
void soft_acks_flush_ring(struct shm_conn *shm);
/* Sends all acknowledgements that wait. */
void soft_acks_flush(struct dapl_device *dev);

#endif
