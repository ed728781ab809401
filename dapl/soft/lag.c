/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lag.c - see lag.h. A ring answers in a microsecond, if its peer runs. If it does not, that takes
 * ten times as long as a copy by the kernel; so it pays to ask the kernel if one answer in eight is
 * late, and the score falls by one for each that is not. One alone says nothing: everybody is
 * preempted now and then. Answers look late, too, to who does something else before he looks for them;
 * what he does takes longer than the copy, then. */
#include "dapl/soft/lag.h"

enum {
	EACH = 16,		/* one in so many is timed */
	SELDOM = 1024,		/* ... or one in up to so many, while they are late */
	LATE_NS = 4000,		/* a copy by the kernel takes one to three microseconds */
	SCORE = 6,		/* of an answer that is late, */
	ENOUGH = 12,		/* ... and from where on the peer is, */
	MOST = 24
};

static bool is_late(const struct soft_lag *lag)
{
	return lag->score >= ENOUGH;
}

bool soft_lag_decide(struct soft_lag *lag)
{
	if (!is_late(lag) || !lag->direct)
		return false;
	lag->direct--;
	return true;
}

void soft_lag_skip(struct soft_lag *lag)
{
	lag->left = is_late(lag) ? 0 : EACH - 1;
}

void soft_lag_begin(struct soft_lag *lag, uint32_t wqe, uint64_t now_ns)
{
	soft_lag_skip(lag);
	lag->wqe = wqe;
	lag->since_ns = now_ns;
}

void soft_lag_end(struct soft_lag *lag, uint64_t now_ns)
{
	if (now_ns - lag->since_ns <= LATE_NS) {
		lag->score -= lag->score > 0;
		lag->gap = lag->gap > 4 * EACH ? lag->gap / 4 : EACH;
	} else {
		lag->score = lag->score + SCORE < MOST ? lag->score + SCORE : MOST;
		lag->gap = lag->gap < SELDOM ? 2 * lag->gap + EACH : SELDOM;
	}
	lag->direct = lag->gap;
	lag->since_ns = 0;
	soft_lag_skip(lag);
}
