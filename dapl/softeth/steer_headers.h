/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer_headers.h - a frame to keys. */
#ifndef SOFTETH_STEER_HEADERS_H
#define SOFTETH_STEER_HEADERS_H
#include "dapl/softeth/steer_code.h"

/* Adds the code that reads a frame: then the keys are on the stack, and TYPE is the kind of frame, PACKET_*. It begins
 * the program. */
void steer_headers(struct steer *s);

#endif
