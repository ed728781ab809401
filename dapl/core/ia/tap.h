/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tap.h - begins and ends captures of RDMA messages for clients of the control socket (tap.c). */
#ifndef DAPL_IA_TAP_H
#define DAPL_IA_TAP_H
#include "dapl/core/base/control.h"

struct dapl_ia;

/* Called when the library starts. */
void dapl_tap_client_init(void);
/* CONTROL_TAP: "client", a number that the client made up; "snap", bytes of payload; "end", 1 to end it.
 * The first request begins the capture, and later ones of the same client keep it alive. A second "end"
 * reports that the client has read the messages. */
const char *dapl_tap_verb(const struct json_object *request, struct json_writer *json, char *why, size_t size);
/* Called when the IA was opened: it takes part in a capture that runs. */
void dapl_tap_ia_opened(struct dapl_ia *ia);
/* Called when an IA has left the list of open IAs. The capture ends with the last IA. */
void dapl_tap_ia_closed(void);

#endif
