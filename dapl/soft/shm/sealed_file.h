/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sealed_file.h - memory files that processes share: nameless, and sealed against a change of their
 * size, so that touching their memory cannot fail later. The callers define the contents. */
#ifndef SOFT_SEALED_FILE_H
#define SOFT_SEALED_FILE_H
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010	/* Linux 5.1 */
#endif

/* RLIMIT_FSIZE in bytes. */
uint64_t sealed_file_limit(void);
/* A descriptor of a new file of `size` bytes with these seals (F_SEAL_*), or -1 and errno. */
int sealed_file_new(uint64_t size, int seals);
/* Returns true if the file, which a peer made, has this size and cannot change it. */
bool sealed_file_check(int fd, size_t size);
/* Maps a file, or private memory if fd is -1; a forked child has none of it. `protection` is
 * PROT_*. NULL: errno says why. */
void *sealed_file_map(int fd, size_t size, int protection);

#endif
