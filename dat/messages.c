/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - offers lines of the registry and of the providers to the program (dat_messages.h). */
#include "common/log.h"
#include "common/log_handler.h"
#include "dat/error.h"
#include <dat/dat_messages.h>
#include <stddef.h>

static DAT_MESSAGE_HANDLER program;

EXPORT void dats_set_message_handler(DAT_MESSAGE_HANDLER handler)
{
	__atomic_store_n(&program, handler, __ATOMIC_RELEASE);
	log_set_handler(dats_offer_message);
}

EXPORT bool dats_offer_message(const struct log_message *message)
{
	DAT_MESSAGE_HANDLER handler = __atomic_load_n(&program, __ATOMIC_ACQUIRE);
	const DAT_MESSAGE offered = {
		.library = message->library, .text = message->text, .priority = message->priority,
		.kind = message->kind, .id = message->id, .error = message->error,
	};

	return handler && handler(&offered) != DAT_FALSE;
}
