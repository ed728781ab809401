/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - see messages.h. */
#include "messages.h"
#include "names.h"
#include <dat/dat_diag_extensions.h>
#include <dat/dat_messages.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static bool from_registry, from_providers;	/* whether their lines are taken over */

enum { HELD_TEXT = 2048 };	/* bytes of kept lines, with the final zero: two long lines */

/* The kept errors of this thread, each as the library would print it. */
static _Thread_local struct {
	bool holding;
	char lines[HELD_TEXT];
} held;

static void print_held(void)
{
	fputs(held.lines, stderr);
	held.lines[0] = '\0';
}

static bool hold(const DAT_MESSAGE *message)
{
	size_t length = strlen(held.lines), room = sizeof held.lines - length;
	int written = snprintf(held.lines + length, room, "%s: %s\n", message->library, message->text);

	if (written >= 0 && (size_t)written < room)
		return true;
	held.lines[length] = '\0';	/* no part of a line */
	return false;
}

/* Lines about failed connections (kind "ep") are dropped: the tool reports these failures itself, with
 * connection_cause(). */
static DAT_BOOLEAN take(const DAT_MESSAGE *message)
{
	if (!(strcmp(message->library, "dat") ? from_providers : from_registry))
		return DAT_FALSE;
	if (message->kind && !strcmp(message->kind, "ep"))
		return DAT_TRUE;
	return held.holding && message->priority <= LOG_ERR && hold(message) ? DAT_TRUE : DAT_FALSE;
}

void messages_init(void)
{
	void (DAT_API *set_handler)(DAT_MESSAGE_HANDLER);

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

/* Joins several errors with "; ": the first is the cause, the others are its consequences. */
const char *messages_release(bool failed)
{
	static _Thread_local char cause[HELD_TEXT];
	char *rest = held.lines, *line;
	size_t length = 0;

	held.holding = false;
	if (!failed)
		print_held();
	cause[0] = '\0';
	while ((line = strsep(&rest, "\n")))
		if (*line)	/* without the name of the library */
			length += (size_t)snprintf(cause + length, sizeof cause - length, "%s%s", length ? "; " : "",
						   strchr(line, ' ') + 1);
	held.lines[0] = '\0';
	return length ? cause : NULL;
}

enum { KNOWN_MS = 2000 };	/* after a flushed completion; the provider knows the failure by then */

static bool has_ended(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;

	return dat_ep_get_status(ep, &state, NULL, NULL) != DAT_SUCCESS || state == DAT_EP_STATE_DISCONNECTED;
}

/* Waits until the provider knows whether the connection has failed: completions may be flushed a little
 * earlier. Returns false if there was no failure, or if none is known after KNOWN_MS. */
static bool find_failure(DAT_EP_HANDLE ep, DAT_LAST_ERROR *error)
{
	*error = (DAT_LAST_ERROR){ 0 };
	for (int ms = 0; ep && ms < KNOWN_MS; ms++) {
		bool ended = has_ended(ep);

		if (dat_ext_last_error(ep, error) != DAT_SUCCESS)
			return false;
		if (error->event || ended)
			return error->event != 0;
		usleep(1000);
	}
	return false;
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

	/* The peer's program causes these events, so the provider records no failure. */
	if (number == DAT_CONNECTION_EVENT_PEER_REJECTED || number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	    !find_failure(ep, &error))
		snprintf(text, CAUSE_TEXT, "%s: %s%s%s%s", what, event_name(number), *hint ? " (" : "", hint,
			 *hint ? ")" : "");
	else if (!strncmp(what, connect, sizeof connect - 1) && !strncmp(error.text, connect, sizeof connect - 1))
		snprintf(text, CAUSE_TEXT, "%s; %s", error.text, event_name(number));	/* includes `what` */
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
