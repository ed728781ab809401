/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c - the link that soft-siw makes (link.h). */
#include "link.h"
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

void open_siw(struct end *e)
{
	open_end(e, "libdaplofa.so.2", "vsiw0");
}

void open_soft(struct end *e)
{
	int ns = open("/run/netns/soft", O_RDONLY | O_CLOEXEC);

	if (ns < 0 || setns(ns, CLONE_NEWNET))
		skip("no network namespace \"soft\" here: see soft-siw");
	close(ns);
	open_end(e, "libdaplsoft.so.2", "vsoft0");
}
