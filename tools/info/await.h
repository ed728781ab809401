/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* await.h - datinfo --await: waits until an IA opens, for services that need it. */
#ifndef TOOLS_INFO_AWAIT_H
#define TOOLS_INFO_AWAIT_H

/* Waits `seconds` at most. Prints nothing if the IA opens; otherwise what adapters_show() prints about it. Returns the
 * exit status. */
int await_adapter(char *name, unsigned seconds);

#endif
