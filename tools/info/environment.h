/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* environment.h - the environment variables of the libraries: default, present value, meaning; and
 * variables that look like one of them but have no meaning. */
#ifndef TOOLS_INFO_ENVIRONMENT_H
#define TOOLS_INFO_ENVIRONMENT_H
#include <stdbool.h>

void environment_show(bool json);

#endif
