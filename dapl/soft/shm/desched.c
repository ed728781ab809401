/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* desched.c - detects a peer that is descheduled (desched.h). A ring answers in a microsecond if
 * its peer runs. If the peer does not run, the answer takes ten times as long as a copy by the
 * kernel. So CMA pays if one answer in eight is late. The score rises by DESCHED_SCORE for a late
 * answer and falls by one for each answer in time, so it stays high if one in seven is late. A single
 * late answer says nothing: every process is preempted now and then. Answers also look late to a
 * thread that does something else before it looks for them; what it does then takes longer than the
 * copy. */
#include "dapl/soft/shm/desched.h"
#include "dapl/soft/tunables.h"

static bool is_late(const struct shm_desched *desched)
{
	return desched->score >= DESCHED_ENOUGH;
}

bool desched_decide(struct shm_desched *desched)
{
	if (!is_late(desched) || !desched->direct)
		return false;
	desched->direct--;
	return true;
}

void desched_skip(struct shm_desched *desched)
{
	desched->left = is_late(desched) ? 0 : DESCHED_SAMPLE - 1;
}

void desched_begin(struct shm_desched *desched, uint32_t wqe, uint64_t now_ns)
{
	desched_skip(desched);
	desched->wqe = wqe;
	desched->since_ns = now_ns;
}

void desched_end(struct shm_desched *desched, uint64_t now_ns)
{
	if (now_ns - desched->since_ns <= DESCHED_LATE_NS) {
		desched->score -= desched->score > 0;
		desched->gap = desched->gap > 4 * DESCHED_SAMPLE ? desched->gap / 4 : DESCHED_SAMPLE;
	} else {
		desched->score = desched->score + DESCHED_SCORE < DESCHED_MOST
				 ? desched->score + DESCHED_SCORE : DESCHED_MOST;
		desched->gap = desched->gap < DESCHED_SAMPLE_RARE ? 2 * desched->gap + DESCHED_SAMPLE
								  : DESCHED_SAMPLE_RARE;
	}
	desched->direct = desched->gap;
	desched->since_ns = 0;
	desched_skip(desched);
}
