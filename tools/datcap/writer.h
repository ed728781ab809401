/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* writer.h - the thread that writes a capture file. It takes frames from the rings and copies them to the buffer of
 * output.c itself, without a queue between two threads. The main thread prints lines, and ends the capture, even while
 * a write blocks. */
#ifndef DATCAP_WRITER_H
#define DATCAP_WRITER_H
#include <stdbool.h>

/* Starts the thread, which calls `body` once. */
void writer_start(void (*body)(void *argument), void *argument);
/* Waits until the thread has returned from `body`, for so many ms at most, or until a signal comes. Returns whether it
 * has returned. */
bool writer_wait(int ms);
/* Waits until the thread has returned from `body`, and ends it. If a signal has requested the end, a write that blocks
 * is interrupted: output.c checks then before each write that it does not block. */
void writer_finish(void);

#endif
