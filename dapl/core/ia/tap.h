/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - begins and ends the capture of RDMA messages that a client of the control socket asks for. */
#ifndef DAPL_IA_TAP_H
#define DAPL_IA_TAP_H
#include "dapl/core/base/control.h"

struct dapl_ia;

/* At the start of the library. */
void dapl_tap_client_init(void);
/* CONTROL_TAP: "client", a number that the client made up; "snap", bytes of payload; "end" 1: ends it;
 * the second "end" says that the messages have been read. The first
 * request begins the capture; later ones of the same client keep it alive. */
const char *dapl_tap_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size);
/* The IA was opened: it takes part in a capture that runs. */
void dapl_tap_ia_opened(struct dapl_ia *ia);
/* An IA has left the list of open IAs. The capture ends with the last one. */
void dapl_tap_ia_closed(void);

#endif
