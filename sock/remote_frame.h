/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_frame.h - the frames of 32 bytes that end epochs of streams over DAT in TCP. */
#ifndef SOCK_REMOTE_FRAME_H
#define SOCK_REMOTE_FRAME_H
#include <stdbool.h>
#include <stdint.h>
#include "sock/link.h"

enum { REMOTE_FRAME = 32 }; /* bytes of a frame in TCP */

/* `position`: of the ring, from which on TCP carries the stream. remote_decode_frame() returns false for what is
 * none of this epoch. */
void remote_encode_frame(unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t position);
bool remote_decode_frame(const unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t *position);

#endif
