/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.c - see network.h. */
#include "tools/sock/network.h"
#include <unistd.h>
#include "tools/cli.h"
#include "tools/sock/attach.h"

static void demand_root(const char *command)
{
	if (geteuid())
		fail("%s --network: user %u found, root expected", command, (unsigned)geteuid());
}

void network_enable(const char *cgroup)
{
	const char *wrong;

	demand_root("enable");
	wrong = attach_begin(cgroup);
	if (wrong)
		fail("%s", wrong);
}

void network_disable(void)
{
	const char *wrong;

	demand_root("disable");
	wrong = attach_end();
	if (wrong)
		fail("%s", wrong);
}
