/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - see messages.h. */
#include "messages.h"
#include "common/log_handler.h"
#include "names.h"
#include <dat/dat_diag_extensions.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

static bool from_registry, from_providers;	/* lines that are taken over */

/* Errors of this thread. */
static _Thread_local struct {
	bool holding;
	char library[8], text[CAUSE_TEXT];	/* "": nothing */
} held;

static void print_held(void)
{
	if (*held.text)
		fprintf(stderr, "%s: %s\n", held.library, held.text);
	held.text[0] = '\0';
}

/* Of several errors the last one is the cause. */
static bool hold(const struct log_message *message)
{
	print_held();
	snprintf(held.library, sizeof held.library, "%s", message->library);
	snprintf(held.text, sizeof held.text, "%s", message->text);
	return true;
}

/* A failed connection is the tool's to report, with connection_cause(). */
static bool take(const struct log_message *message)
{
	if (!(strcmp(message->library, "dat") ? from_providers : from_registry))
		return false;
	if (message->kind && !strcmp(message->kind, "ep"))
		return true;
	return held.holding && message->priority <= LOG_ERR && hold(message);
}

void messages_init(void)
{
	void (*set_handler)(log_handler);

	from_registry = !getenv("DAT_DBG_TYPE");
	from_providers = !getenv("DAPL_DBG_TYPE") && !getenv("DAPL_DBG_LEVEL");
	*(void **)&set_handler = dlsym(RTLD_DEFAULT, "dats_set_message_handler");
	if (set_handler)
		set_handler(take);
}

void messages_hold(void)
{
	print_held();
	held.holding = true;
}

const char *messages_release(bool failed)
{
	static _Thread_local char cause[CAUSE_TEXT];

	held.holding = false;
	if (!failed)
		print_held();
	if (!*held.text)
		return NULL;
	memcpy(cause, held.text, sizeof cause);
	held.text[0] = '\0';
	return cause;
}

static bool find_failure(DAT_EP_HANDLE ep, DAT_LAST_ERROR *error)
{
	*error = (DAT_LAST_ERROR){ 0 };
	return ep && dat_ext_last_error(ep, error) == DAT_SUCCESS && error->event;
}

bool connection_cause(DAT_EP_HANDLE ep, char text[CAUSE_TEXT])
{
	DAT_LAST_ERROR error;
	bool known = find_failure(ep, &error);

	if (known)
		snprintf(text, CAUSE_TEXT, "%s", error.text);
	return known;
}

const char *connection_failure(const DAT_EVENT *event, const char *what, char text[CAUSE_TEXT])
{
	static const char connect[] = "connect to ";
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	DAT_EVENT_NUMBER number = event->event_number;
	const char *hint = connection_hint(number);
	DAT_LAST_ERROR error;

	/* The peer's program decides on these: the provider reports no failure. */
	if (number == DAT_CONNECTION_EVENT_PEER_REJECTED || number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	    !find_failure(ep, &error))
		snprintf(text, CAUSE_TEXT, "%s: %s%s%s%s", what, event_name(number), *hint ? " (" : "", hint,
			 *hint ? ")" : "");
	else if (!strncmp(what, connect, sizeof connect - 1) && !strncmp(error.text, connect, sizeof connect - 1))
		snprintf(text, CAUSE_TEXT, "%s; %s", error.text, event_name(number));	/* says what, too */
	else
		snprintf(text, CAUSE_TEXT, "%s: %s; %s", what, error.text, event_name(number));
	return text;
}

const char *completion_cause(const DAT_EVENT *event, char text[CAUSE_TEXT])
{
	DAT_LAST_ERROR error;

	text[0] = '\0';
	if (find_failure(event->event_data.dto_completion_event_data.ep_handle, &error))
		snprintf(text, CAUSE_TEXT, ": %s", error.text);
	return text;
}
