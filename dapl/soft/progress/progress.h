/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* progress.h - what the holder of the progress lock does: looks for messages in rings and on
 * sockets, has them executed, acknowledges them and sends on. owner.h decides which thread does so. */
#ifndef SOFT_PROGRESS_H
#define SOFT_PROGRESS_H
#include <stdbool.h>
#include "dapl/soft/obj/rnic.h"

struct dapl_conn;
struct dapl_device;
struct soft_cq;
struct soft_srq;

/* 0 or an errno value. */
int soft_progress_open(struct dapl_device *dev);
void soft_progress_close(struct dapl_device *dev);

/* Moves data; called by a thread that polls the CQ and finds it empty. Returns false if nothing has changed. */
bool soft_progress_poll(const struct soft_cq *cq);
/* Called after an empty poll, with no lock held. Yields the processor if a thread should. */
void soft_progress_idle(void);

/* Receives were posted to the SRQ: gives them to the messages that wait for one. No lock held. */
void soft_progress_srq_posted(struct soft_srq *srq);

/* --- progress lock held ---------------------------------------------------------------------- */

/* Looks at rings and sockets once. `polling`: the caller is a polling thread, which comes back
 * soon. Returns true if there was something. */
bool soft_progress_serve(struct dapl_device *dev, bool polling);
/* Adds the connection to those whose input is looked for. False and errno: its input would not be
 * noticed. */
bool soft_progress_add(struct dapl_conn *conn);
void soft_progress_del(struct dapl_conn *conn);
/* The socket of a shared-memory connection is readable: the peer has closed it, or violates the
 * protocol. */
void soft_progress_end(struct dapl_conn *conn);

#endif
