/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameters.h - where the value of a parameter comes from: set through the control socket, the
 * environment, or dapl.conf; the first that has it counts. What a parameter means and its
 * default are its reader's job (log_env_number); ranges for tools are in parameter_range.h. Each
 * library has its own copy of this state. */
#ifndef COMMON_PARAMETERS_H
#define COMMON_PARAMETERS_H
#include <stdbool.h>
#include "common/parameter_range.h"

enum parameter_origin { PARAMETER_DEFAULT, PARAMETER_FILE, PARAMETER_ENVIRONMENT, PARAMETER_SET };

/* The text of a value. NULL: none, so the default counts. `buffer` may hold the text. */
const char *parameter_text(const char *name, char buffer[PARAMETER_NUMBER],
			   enum parameter_origin *origin);
/* Any thread. False: `name` is none of variables.h. The value must fit 32 bits. */
bool parameter_set(const char *name, unsigned long value);
void parameter_unset(const char *name);

/* Reads dapl.conf. `report`: wrong lines give a message; libdat2 does that, the providers read the
 * same file in silence. A file that others than root may write is ignored, with a message. */
void parameters_read_file(bool report);
void parameters_fini(void);
/* Of dapl.conf, for messages; valid until the next call. */
const char *parameters_file(void);

#endif
