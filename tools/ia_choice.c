/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ia_choice.c - see ia_choice.h. */
#include "ia_choice.h"
#include "cli.h"
#include <dat/udat.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ADAPTERS = 256 };	/* of dat.conf that are looked at */

static DAT_PROVIDER_INFO infos[ADAPTERS];

/* Returns whether an earlier entry has the name of entry i: dat.conf may have a name for each version of DAT. */
static bool is_repeated(int i)
{
	for (int k = 0; k < i; k++)
		if (!strcmp(infos[k].ia_name, infos[i].ia_name))
			return true;
	return false;
}

/* Reads the entries into `infos`. Returns their number. */
static int list_adapters(void)
{
	DAT_PROVIDER_INFO *list[ADAPTERS];
	DAT_COUNT count = 0;

	for (int i = 0; i < ADAPTERS; i++)
		list[i] = &infos[i];
	/* the first ADAPTERS are stored even if there are more */
	dat_registry_list_providers(ADAPTERS, &count, list);
	return count < ADAPTERS ? count : ADAPTERS;
}

const char *only_ia(const char *option)
{
	static char names[ADAPTERS * (DAT_NAME_MAX_LENGTH + 2) + 1];
	int count = list_adapters(), different = 0;

	for (int i = 0; i < count; i++) {
		size_t used = strlen(names);

		if (!is_repeated(i))
			snprintf(names + used, sizeof names - used, "%s%.*s", different++ ? ", " : "",
				 DAT_NAME_MAX_LENGTH - 1, infos[i].ia_name);
	}
	if (!different)
		fail("no interface adapter is configured");
	if (different > 1)
		usage_error("%s, the interface adapter, is missing; there are: %s", option, names);
	return infos[0].ia_name;
}

bool ia_is_configured(const char *name)
{
	for (int i = list_adapters(); i-- > 0;)
		if (!strcmp(infos[i].ia_name, name))
			return true;
	return false;
}

void ia_make_up(const char *name, const char *params)
{
	static int fd = -1;		/* all entries */
	char path[64], line[256];
	int n = snprintf(line, sizeof line, "%s u2.0 threadsafe default libdaplsoft.so.2 dapl.2.0 \"%s\" \"\"\n", name,
			 params);

	if (fd < 0)
		fd = memfd_create("dat.conf", MFD_CLOEXEC);
	if (fd < 0 || write(fd, line, (size_t)n) != n)
		fail("%s: no memory file for its entry of dat.conf: %s", name, cli_write_error(errno));
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	if (setenv("DAT_OVERRIDE", path, 1))
		fail("no memory");
}

enum stands_for { STANDS_FOR_NONE, STANDS_FOR_ITSELF, STANDS_FOR_RDMA };

/* Finds out whether dat.conf has an entry `name`, or else one `rdma`: in another process, since the registry reads
 * DAT_OVERRIDE, which ia_make_up() sets, but once. What is wrong in dat.conf is told when the IA is opened. */
static enum stands_for look_up(const char *name, const char *rdma)
{
	pid_t pid = fork();
	int status = 0;

	if (pid < 0)
		fail("fork: %m");
	if (!pid) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(STANDS_FOR_ITSELF);
		_exit(ia_is_configured(name) ? STANDS_FOR_ITSELF : ia_is_configured(rdma) ? STANDS_FOR_RDMA :
		      STANDS_FOR_NONE);
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? (enum stands_for)WEXITSTATUS(status) : STANDS_FOR_ITSELF;
}

const char *ia_choose(const char *option, const char *name)
{
	static char rdma[DAT_NAME_MAX_LENGTH];
	char params[IF_NAMESIZE + 8];

	if (!name)
		return only_ia(option);
	if (!if_nametoindex(name))
		return name;
	snprintf(rdma, sizeof rdma, "ofa-v2-%s", name);
	switch (look_up(name, rdma)) {
	case STANDS_FOR_ITSELF: return name;
	case STANDS_FOR_RDMA: return rdma;
	default: break;
	}
	snprintf(params, sizeof params, "%s 0", name);
	ia_make_up(name, params);
	return name;
}
