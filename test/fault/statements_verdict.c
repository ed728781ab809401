/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* statements_verdict.c - judges a run with a fault: which errors may be reported, and what may be left
 * behind. */
#include "test/conform/conform.h"
#include "test/conform/run.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "runs.h"
#include "statements.h"

/* Returns whether a call may return this code because of this errno. */
static bool names(const char *found, int error)
{
	static const char *const in_use[] = { "DAT_CONN_QUAL_IN_USE", "DAT_CONN_QUAL_UNAVAILABLE",
					      "DAT_PORT_IN_USE" };

	switch (error) {
	case EADDRINUSE:
		for (int i = 0; i < 3; i++)
			if (!strncmp(found, in_use[i], strlen(in_use[i])))
				return true;
		return false;
	case EIO: case ECONNRESET:
		return !strncmp(found, "DAT_INTERNAL_ERROR", 18);
	default:
		return !strncmp(found, "DAT_INSUFFICIENT_RESOURCES", 26);
	}
}

/* The text of the failed test names what it found: a return code, an event, or the status of a completion.
 * */
static bool names_the_cause(const char *text)
{
	static const char returned[] = "that it returned ";
	const char *found = strstr(text, "found ");

	if (run->told || !found)
		return run->told;
	found += strlen("found ");
	if (!strncmp(found, returned, strlen(returned)))	/* a thread that should have stayed blocked */
		found += strlen(returned);
	if (strstr(found, "with DAT_DTO_ERR") || strstr(text, "status 0, found"))
		return true;
	if (!strncmp(found, "DAT_", 4) && strstr(found, "_EVENT"))
		return strncmp(found, "DAT_CONNECTION_EVENT_ESTABLISHED", 32) != 0;
	for (int i = 0; run->page.fault.errors[i]; i++)
		if (names(found, run->page.fault.errors[i]))
			return true;
	return false;
}

static bool said(const char *what)
{
	FILE *f = fdopen(dup(output), "r");
	char line[1000];
	bool found = false;

	rewind(f);
	while (fgets(line, sizeof line, f))
		found |= strstr(line, what) != NULL;
	fclose(f);
	return found;
}

/* Returns whether the provider did not register itself. The registry then leaves it loaded, with its
 * records, as it may have started threads. */
static bool is_no_provider(void)
{
	return said("registered no");
}

bool timed_out_waiting(void)
{
	return report->verdict == FAILED && !run->told && !run->crowd &&
	       (strstr(report->text, "without it") || strstr(report->text, "found no event"));
}

/* A connection that ends before the Reply is made again as one with another implementation. There a request
 * completes once TCP has taken it, so that requests which should wait or fail succeed. Datagrams get lost.
 * */
static bool is_network(const char *text)
{
	bool reset = false;

	for (int i = 0; run->page.fault.errors[i]; i++)
		reset |= run->page.fault.errors[i] == ECONNRESET || run->page.fault.errors[i] == ENOSPC;
	if (timed_out_waiting())
		return reset && strstr(text, "DAT_IB_DTO_EVENT");
	return reset && !strstr(text, "is_filled");
}

bool is_excused(const char *text)
{
	if (names_the_cause(text) || is_network(text) || (is_no_provider() && said("no memory")))
		return true;
	return run->kind->lasting && timed_out_waiting();	/* the error is reported at the caller's time limit */
}

static const char *left_behind(const struct run *clean)
{
	static char text[700];
	char place[400] = "";

	if (!run->tidied || is_no_provider())
		return NULL;	/* not tidied: threads were still in calls */
	if (run->untidy[0])
		return run->untidy;
	if (!run->page.unloaded)
		return "the libraries were not unloaded";
	if (run->page.blocks)
		place_of(run->page.owner, place, sizeof place);
	if (run->page.blocks || run->threads > 0 || (clean && run->descriptors > clean->descriptors)) {
		snprintf(text, sizeof text, "left behind: %zu blocks (%s), %d descriptors, %d threads",
			 run->page.blocks, place, clean ? run->descriptors - clean->descriptors : 0,
			 run->threads);
		return text;
	}
	return NULL;
}

const char *wrong(int status, const struct run *clean)
{
	static char text[1000];
	const char *left;

	if (status == -1)
		return "it hangs";
	if (WIFSIGNALED(status))
		return strsignal(WTERMSIG(status));
	if (status) {
		snprintf(text, sizeof text, "exit status %d", WEXITSTATUS(status));
		return text;
	}
	left = left_behind(clean);
	if (left)
		return left;
	if (report->verdict != FAILED)
		return NULL;
	if (!run->page.happened) {
		snprintf(text, sizeof text, "without a fault: %s", report->text);
		return text;
	}
	if (run->crowd || is_excused(report->text))
		return NULL;
	snprintf(text, sizeof text, "%s: %s", timed_out_waiting() ? "nothing is told" : "the cause is not told",
		 report->text);
	return text;
}
