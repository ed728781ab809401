/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_size.h - makes files longer without the signal of RLIMIT_FSIZE ("ulimit -f"). The kernel sends SIGXFSZ to
 * a thread that makes a file longer than the limit, memory files included; its default action ends the process.
 * A library has no right to end the program, nor to change the actions of its signals. */
#ifndef COMMON_FILE_SIZE_H
#define COMMON_FILE_SIZE_H
#include <sys/types.h>

/* ftruncate() and write(), which fail with EFBIG at the limit, without a signal. They keep the signal's action and
 * the thread's signal mask, so other threads may do the same. They may be called in a signal handler. */
int file_set_size(int fd, off_t size);
ssize_t file_write(int fd, const void *bytes, size_t n);

#endif
