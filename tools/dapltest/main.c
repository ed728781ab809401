/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - dapltest: dispatches on the test that -T names. See dapltest(1). */
#include "../cli.h"
#include "client.h"
#include "functional.h"
#include "limit.h"
#include "options.h"
#include "server.h"
#include <stdlib.h>

static const char usage_text[] =
	"usage: dapltest [-T S] [-D IA] [COMMON]           serve, until told to quit\n"
	"       dapltest -T Q -s HOST [COMMON]             tell the server to quit\n"
	"       dapltest -T T -s HOST [COMMON] [-t THREADS] [-w ENDPOINTS] [-i COUNT]\n"
	"                [-Q] [-V] [-P] [-r] OP...         transactions\n"
	"       dapltest -T P -s HOST [COMMON] [-m b|p] [-i COUNT] [-p PIPELINE] OP\n"
	"                                                  performance of RDMA\n"
	"       dapltest -T L [COMMON] [-m MOST] [-w WIDTH] [limit_ia ...]     limits\n"
	"       dapltest -T F [COMMON] -f FEATURE [case0 ...]              functions:\n"
	"                hwconn, endpoint, pz, mem, connmgt, queryinfo\n"
	"       dapltest -f FILE                           the options are in a file\n"
	"COMMON: [-D IA] [-n QUALIFIER (62000)] [-d] [-R BE|HT|LL|EC|PM]\n"
	"OP:     client|server SR|RR|RW [SIZE (4096) [SEGMENTS (1)]] [-f], without\n"
	"        client or server for -T P; -f: reap the send with the next receive\n"
	"  -t, -w   threads (1), endpoints of each (1)    -i   iterations (1000)\n"
	"  -Q       wait with a CNO                       -V   validate the data\n"
	"  -P       poll for completions                  -r   reserved service points\n"
	"  -m       b: block (default), p: poll           -p   requests under way\n"
	"  --help, --version\n";

int main(int argc, char **argv)
{
	static struct options o;
	int status;

	cli_init("dapltest", usage_text);
	o = options_parse(argc, argv);
	switch (o.mode) {
	case 'S': status = server_run(&o); break;
	case 'L': status = limit_run(&o); break;
	case 'F': status = functional_run(&o); break;
	default: status = client_run(&o); break;
	}
	if (status)
		exit(status);
	cli_finish();
}
