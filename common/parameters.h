/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parameters.h - where the value of a parameter comes from: set through the control socket, the
 * environment, or dapl.conf; the first that has it counts. The code that reads a parameter has its meaning
 * and its default (log_env_number); parameter_range.h has the ranges for tools. Each library has its own
 * copy of this state. */
#ifndef COMMON_PARAMETERS_H
#define COMMON_PARAMETERS_H
#include <stdbool.h>
#include "common/parameter_range.h"

enum parameter_origin { PARAMETER_DEFAULT, PARAMETER_FILE, PARAMETER_ENVIRONMENT, PARAMETER_SET };

/* Returns the text of the value, which may be in `buffer`; NULL: there is none, so the default counts. */
const char *parameter_text(const char *name, char buffer[PARAMETER_NUMBER],
			   enum parameter_origin *origin);
/* May be called by any thread. Returns false if variables.h does not have `name`, or the value exceeds 32
 * bits. */
bool parameter_set(const char *name, unsigned long value);
void parameter_unset(const char *name);

/* Takes a sentence about a wrong line of dapl.conf, or about the file; valid during the call. */
typedef void parameters_report(const char *message);
/* Reads dapl.conf. `report` may be NULL: libdat2 reports what is wrong, the providers read the same file in
 * silence. A file that others than root may write is ignored, and so is one that is no text. */
void parameters_read_file(parameters_report *report);
void parameters_fini(void);
/* The path of dapl.conf, for messages; valid until the next call. */
const char *parameters_file(void);

#endif
