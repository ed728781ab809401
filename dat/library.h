/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* library.h - libdat2 as a whole, above all its files: what it does when it is loaded, over a fork of the
 * process, and when it is unloaded or the process ends. */
#ifndef DAT_LIBRARY_H
#define DAT_LIBRARY_H

/* The constructor. Its name has programs that are linked with the objects take in this one. */
void library_watch_forks(void);

#endif
