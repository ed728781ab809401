/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* environment.h - finds misspelt environment variables. */
#ifndef DAT_ENVIRONMENT_H
#define DAT_ENVIRONMENT_H

/* Reports each variable that begins with DAT_ or DAPL_ and that no library reads, with the
 * nearest name that has a meaning. Does so if the registry's or the providers' trace level is 3
 * or more; not in programs with raised privileges. Called once in a process. */
void environment_check(void);

#endif
