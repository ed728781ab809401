/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h - the control socket of a provider library (common/control.h has the messages). It
 * exists while an IA is open, and is served by the service thread. Programs of the same user and of
 * root get answers. What the verbs do is their owner's job. */
#ifndef DAPL_CORE_CONTROL_H
#define DAPL_CORE_CONTROL_H
#include <stddef.h>
#include "common/json_read.h"
#include "common/json_write.h"

/* Writes the members of the answer to `request`. Returns NULL, or why it failed: then nothing that it
 * wrote is sent. The text is constant, or in `why`. On the service thread, no locks held. */
typedef const char *dapl_control_verb(const struct json_object *request, struct json_writer *answer,
				      char *why, size_t size);

/* Before the first dapl_control_get(): the verbs by their number, `count` of them; NULL: unknown. */
void dapl_control_serve(dapl_control_verb *const *verbs, unsigned count);

/* An IA was opened; dapl_service_get() came before. Without a socket the program runs all the same,
 * so nothing is returned. */
void dapl_control_get(void);
/* An IA closes; dapl_service_put() comes after. Waits for a verb that runs, so no lock that a verb
 * takes is held. */
void dapl_control_put(void);

#endif
