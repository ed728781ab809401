/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sp_request.h - delivers a request that reaches a service point (sp_request.c). */
#ifndef DAPL_SP_REQUEST_H
#define DAPL_SP_REQUEST_H
#include <stdbool.h>

struct dapl_cr;
struct dapl_sp;

/* Publishes the CR, gives it an endpoint if the service point has or makes one, and queues its event.
 * Returns false if there is no room; then nothing has happened. */
bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr);

#endif
