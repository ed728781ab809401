/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* polls.c - counts empty reads. See polls.h. */
#include "sock/polls.h"

bool polls_note(struct polls *p, bool found)
{
	if (found || !p->limit)
		p->empty = 0, p->limit = POLLS_FIRST;
	if (found || ++p->empty < p->limit)
		return false;
	p->empty = 0;
	if (p->limit < POLLS_MOST)
		p->limit *= 2;
	return true;
}
