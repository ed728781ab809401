/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_reader.h - the peer's side of the ring of a connection (ring_reader.c). */
#ifndef TEST_SOFT_RING_READER_H
#define TEST_SOFT_RING_READER_H
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/wire/message.h"

/* Takes the next message, which must be there, as the peer does. Its data stays in the ring until the next call. */
struct soft_message ring_read(struct ring_rx *rx);

#endif
