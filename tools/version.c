/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* version.c - see version.h. The only file that is compiled again after a commit: tools/commit.h is generated. */
#include "tools/version.h"
#include "tools/cli.h"
#include "tools/commit.h"
#include "config.h"
#include <stdio.h>

const char tools_version[] = PACKAGE_VERSION TOOLS_COMMIT;

void version_print(void)
{
	printf("%s (%s) %s\n", cli_program_name(), PACKAGE_NAME, tools_version);
	cli_finish();
}
