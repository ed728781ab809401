/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mpa.h - MPA frames of a handshake on the socket of a connection. Progress lock held. */
#ifndef SOFT_CM_MPA_H
#define SOFT_CM_MPA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dapl_conn;
struct wire_mpa;
struct wire_trailer;

enum mpa_got { GOT_PART, GOT_ALL, GOT_END, GOT_BAD };

/* Returns false and errno if the socket did not take the whole frame; EAGAIN: TCP is not up yet. A
 * frame is small and the socket is fresh, so a part is never taken. */
bool mpa_send(const struct dapl_conn *conn, const struct wire_mpa *mpa,
	      const struct wire_trailer *trailer, const void *pdata, size_t length);
/* Reads the frame into conn->cm->frame and its header into conn->cm->mpa, and no byte of the stream behind
 * it. */
enum mpa_got mpa_receive(struct dapl_conn *conn);
/* Decodes the enhanced data of the frame. Returns what follows it, or NULL if the frame is
 * malformed. */
const uint8_t *mpa_data(struct dapl_conn *conn, size_t *length);

#endif
