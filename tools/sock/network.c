/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* network.c - see network.h. */
#include "tools/sock/network.h"
#include <errno.h>
#include <spawn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tools/cli.h"
#include "tools/sock/attach.h"

extern char **environ;

static void demand_root(const char *command)
{
	if (geteuid())
		fail("%s --network: user %u found, root expected", command, (unsigned)geteuid());
}

/* Returns whether systemd did it. Without systemd the administrator starts datsockd. */
static bool ask_systemd(const char *verb)
{
	char *argv[] = { "systemctl", (char *)verb, "--now", "datsockd.service", NULL };
	int status = 0, err;
	pid_t pid;

	if (access("/run/systemd/system", F_OK))
		return false;
	err = posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ);
	if (err)
		fail("systemctl: %s", strerror(err));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail("systemctl %s --now datsockd.service failed", verb);
	return true;
}

void network_enable(const char *cgroup)
{
	const char *wrong;

	demand_root("enable");
	wrong = attach_begin(cgroup);
	if (wrong)
		fail("%s", wrong);
	if (!cgroup && !ask_systemd("enable"))
		cli_warn("systemd is not running: start datsockd(8)");
}

void network_disable(void)
{
	const char *wrong;

	demand_root("disable");
	ask_systemd("disable");
	wrong = attach_end();
	if (wrong)
		fail("%s", wrong);
}
