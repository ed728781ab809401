/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* diag_limit.c - prints lines about failed connections, and limits their rate (diag_limit.h). */
#include <stdio.h>
#include <string.h>
#include "common/clock.h"
#include "common/lock.h"
#include "dapl/core/base/cause.h"
#include "dapl/core/base/diag_limit.h"
#include "dapl/core/base/service.h"

enum {
	LOG_FAILURES = 0x3,	/* bits of DAPL_DBG_TYPE; if both are clear, nothing is printed */
	TICK_US = 1000000,	/* the end of a window is noticed at most this late */
	KEYS = 32,		/* different failures that have a window at a time; others are only
				 * counted */
};

/* A failure that was printed, and the window in which its repetitions are counted. */
struct key {
	char text[DIAG_TEXT];		/* dapl_diag_key(); "": the entry is free */
	enum log_id id;
	const char *kind;		/* "ep" if there is an endpoint, or NULL */
	uint64_t ends_ns;		/* of the window */
	unsigned more;			/* repetitions that were not printed */
};

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_DIAG);	/* guards all that follows */
static struct key keys[KEYS];
static unsigned others;			/* failures that found no free key */
static struct dapl_timer timer;		/* ends windows */
static bool ticking;			/* the timer is started */

static void write_line(const struct dapl_diag *diag)
{
	char text[DIAG_TEXT], peer[DIAG_ADDRESS];

	log_report(dapl_diag_id(diag),
		   LOG_FIELDS(.ia = diag->ia, .kind = diag->ep ? "ep" : NULL, .object = diag->ep,
			      .peer = dapl_cause_address(&diag->cause.remote, peer),
			      .err = diag->cause.err, .result = diag->result),
		   "%s", dapl_diag_format(diag, text));
}

static void write_more(enum log_id id, const char *kind, const char *text, unsigned more)
{
	log_report(id, LOG_FIELDS(.kind = kind), "%s: %u more like this", text, more);
}

/* Called with the lock held. Frees a key that had no repetitions in its window. */
static void end_window(struct key *key, uint64_t now)
{
	if (key->more) {
		write_more(key->id, key->kind, key->text, key->more);
		key->more = 0;
		key->ends_ns = now + DIAG_WINDOW_S * 1000000000ull;
	} else {
		key->text[0] = '\0';
	}
}

/* Called with the lock held. Returns true if a key is still in use. */
static bool end_windows(uint64_t now)
{
	bool taken = false;

	for (struct key *key = keys; key < keys + KEYS; key++) {
		if (key->text[0] && key->ends_ns <= now)
			end_window(key, now);
		taken |= key->text[0] != '\0';
	}
	if (others)
		write_more(REPORT_CONNECT_FAILED, NULL, "other failed connections", others);
	others = 0;
	return taken;
}

static void window_ends(struct dapl_timer *fired)
{
	dapl_mutex_lock(&lock);
	ticking = end_windows(clock_now_ns());
	if (ticking)
		dapl_timer_start(fired, TICK_US, window_ends);
	dapl_mutex_unlock(&lock);
}

/* Called with the lock held. Returns the key of this text, or a free one that it takes. A key whose window
 * is over without repetitions counts as free. Returns NULL if there is none. */
static struct key *take_key(const char *text, uint64_t now)
{
	struct key *free_key = NULL;

	for (struct key *key = keys; key < keys + KEYS; key++) {
		if (key->text[0] && !strcmp(key->text, text))
			return key;
		if (!key->text[0] || (key->ends_ns <= now && !key->more))
			free_key = key;
	}
	if (free_key) {
		snprintf(free_key->text, sizeof free_key->text, "%s", text);
		free_key->ends_ns = 0;
		free_key->more = 0;
	}
	return free_key;
}

/* Called with the lock held. Returns false if the failure is only counted. */
static bool may_say(const char *text, enum log_id id, const char *kind)
{
	uint64_t now = clock_now_ns();
	struct key *key = take_key(text, now);

	if (!ticking)
		dapl_timer_start(&timer, TICK_US, window_ends);
	ticking = true;
	if (!key) {
		others++;
		return false;
	}
	key->id = id;
	key->kind = kind;
	if (key->more || key->ends_ns > now) {
		key->more++;
		return false;
	}
	key->ends_ns = now + DIAG_WINDOW_S * 1000000000ull;
	return true;
}

void dapl_diag_say(const struct dapl_diag *diag)
{
	char text[DIAG_TEXT];
	bool say;

	if (!log_on(LOG_FAILURES))
		return;
	dapl_diag_key(diag, text);
	dapl_mutex_lock(&lock);
	say = may_say(text, dapl_diag_id(diag), diag->ep ? "ep" : NULL);
	dapl_mutex_unlock(&lock);
	if (say)
		write_line(diag);
}

/* The windows stay open: another IA of this process may fail in the same way. */
void dapl_diag_flush(void)
{
	dapl_mutex_lock(&lock);
	for (struct key *key = keys; key < keys + KEYS; key++)
		if (key->more)
			end_window(key, clock_now_ns());
	end_windows(0);
	dapl_mutex_unlock(&lock);
}

void dapl_diag_fork_prepare(void)
{
	dapl_mutex_lock(&lock);
}

void dapl_diag_fork_parent(void)
{
	dapl_mutex_unlock(&lock);
}

/* The child has no timers. The parent prints the counts. */
void dapl_diag_fork_child(void)
{
	memset(&timer, 0, sizeof timer);
	memset(keys, 0, sizeof keys);
	others = 0;
	ticking = false;
	dapl_mutex_unlock(&lock);
}
