/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* version.h - the version of the tools with the git commit of their source: "3.0.0+g0123456789ab", or "3.0.0" when the
 * commit is not known. Less than 32 bytes, the size of the field in which datperf sends it. */
#ifndef TOOLS_VERSION_H
#define TOOLS_VERSION_H

extern const char tools_version[];

/* Prints the line of --version, and exits. */
void version_print(void) __attribute__((noreturn));

#endif
