/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* main.c - dapltest: dispatches on the test that -T names. See dapltest(1). */
#include "../cli.h"
#include "../messages.h"
#include "client.h"
#include "functional.h"
#include "limit.h"
#include "options.h"
#include "server.h"
#include <stdlib.h>

static const char usage_text[] =
	"usage: dapltest [-T S] [COMMON]               serve, until told to quit\n"
	"       dapltest -T Q -s HOST [COMMON]         tell the server to quit\n"
	"       dapltest -T T -s HOST [COMMON] [-t THREADS] [-w ENDPOINTS] [-i COUNT]\n"
	"                [-Q|-P] [-V] [-r] OP...       transactions\n"
	"       dapltest -T P -s HOST [COMMON] [-m b|p] [-i COUNT] [-p PIPELINE]\n"
	"                RR|RW [SIZE [SEGMENTS]]       performance of RDMA\n"
	"       dapltest -T L [COMMON] [-m MOST] [-w WIDTH] [limit_ep...]\n"
	"                                              limits: objects of each kind\n"
	"       dapltest -T F [COMMON] -f FEATURE [case0...]\n"
	"                                              hwconn, endpoint, pz, mem,\n"
	"                                              connmgt or queryinfo\n"
	"       dapltest -f FILE                       the options are in a file\n"
	"\n"
	"COMMON   [-D IA] [-n QUALIFIER (62000)] [-d] [-R BE|HT|LL|EC|PM]\n"
	"OP       client|server SR|RR|RW [SIZE (4096) [SEGMENTS (1)]] [-f]\n"
	"         -f: reap the send with the next receive\n"
	"  -t, -w     threads (1), endpoints of each (1)    -i   iterations (1000)\n"
	"  -Q, -P     wait with a CNO; poll                 -V   validate the data\n"
	"  -m         b: block (default), p: poll           -p   requests under way\n"
	"  -r         reserved service points               -d   print more\n"
	"  -h, --help, --version\n";

int main(int argc, char **argv)
{
	static struct options o;
	int status;

	cli_init("dapltest", usage_text);
	messages_init();
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
