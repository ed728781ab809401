/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* remote_frame.c - the frames that end epochs in TCP. See remote_frame.h. */
#include "sock/remote_frame.h"
#include <endian.h>
#include <string.h>

static uint32_t crc32c(const unsigned char *p, size_t size)
{
	uint32_t crc = ~0u;

	while (size--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

void remote_encode_frame(unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t position)
{
	uint64_t at = htobe64(position);
	uint32_t number = htobe32(epoch), crc;

	memcpy(frame, key, LINK_KEY);
	memcpy(frame + 16, &at, 8), memcpy(frame + 24, &number, 4);
	crc = htobe32(crc32c(frame, 28));
	memcpy(frame + 28, &crc, 4);
}

bool remote_decode_frame(const unsigned char frame[REMOTE_FRAME], const unsigned char key[LINK_KEY], uint32_t epoch,
			 uint64_t *position)
{
	unsigned char expected[REMOTE_FRAME];
	uint64_t at;

	memcpy(&at, frame + 16, 8);
	*position = be64toh(at);
	remote_encode_frame(expected, key, epoch, *position);
	return !memcmp(frame, expected, sizeof expected);
}
