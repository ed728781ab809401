/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - offers lines of the registry and of the providers to the program (log_handler.h). */
#include "common/log.h"
#include "common/log_handler.h"
#include "dat/error.h"
#include <stddef.h>

static log_handler program;

EXPORT void dats_set_message_handler(log_handler handler)
{
	__atomic_store_n(&program, handler, __ATOMIC_RELEASE);
	log_set_handler(dats_offer_message);
}

EXPORT bool dats_offer_message(const struct log_message *message)
{
	log_handler handler = __atomic_load_n(&program, __ATOMIC_ACQUIRE);

	return handler && handler(message);
}
