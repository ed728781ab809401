/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sp_request.h - what becomes of a request that reaches a service point. */
#ifndef DAPL_SP_REQUEST_H
#define DAPL_SP_REQUEST_H
#include <stdbool.h>

struct dapl_cr;
struct dapl_sp;

/* Publishes the CR and gives it to a service point: its endpoint, its event. False when there
 * is no room; then nothing has happened. */
bool dapl_sp_deliver(struct dapl_sp *sp, struct dapl_cr *cr);

#endif
