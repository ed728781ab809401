/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - the control socket of a provider library (common/control.h has the messages). It exists while
 * an IA is open, and the service thread serves it. Programs of the same user and of root get answers. The
 * verbs themselves are in ia/control_verbs.c. */
#ifndef DAPL_CORE_CONTROL_H
#define DAPL_CORE_CONTROL_H
#include <stddef.h>
#include "common/json_read.h"
#include "common/json_write.h"

/* Writes the members of the answer to `request`. Returns NULL, or the reason of a failure: then the
 * members are not sent. The reason is a constant, or is in `why`. Called on the service thread with no
 * locks held. */
typedef const char *dapl_control_verb(const struct json_object *request, struct json_writer *answer,
				      char *why, size_t size);

/* Sets the table of verbs, by their number; NULL stands for an unknown verb. Called before the first
 * dapl_control_get(). */
void dapl_control_serve(dapl_control_verb *const *verbs, unsigned count);

/* Called when an IA was opened, after dapl_service_get(). Returns nothing, because a program can run
 * without its control socket. */
void dapl_control_get(void);
/* Called when an IA closes, before dapl_service_put(). Waits for a verb that runs, so the caller holds no
 * lock that a verb takes. */
void dapl_control_put(void);

#endif
