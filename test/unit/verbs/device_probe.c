/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_probe PARAMS [PARAMS6]: drives dapl/verbs through its table of operations,
 * without core. Both ends are in this process. It needs an RDMA device, real or of the kernel,
 * so it runs in the test machine. Prints "ok NAME" or "FAIL NAME: what", and "N passed, N
 * failed" at the end. The cases are in the files that probe_cases.h names. */
#include <stdio.h>
#include "common/log.h"
#include "common/trace.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "test/unit/verbs/probe_cases.h"

static void rejections_rc(struct point *p) { rejections(p, false, attr.pdata_reject); }
static void refusal_rc(struct point *p) { refusal(p, false); }
static void cycles_200(struct point *p) { cycles(p, 200); }

int main(int argc, char **argv)
{
	struct point p;
	bool remove_it = argc > 3 && strcmp(argv[3], "remove") == 0;

	upcall_observer = on_upcall;
	if (argc < 2)
		return fputs("usage: device_probe PARAMS [PARAMS6 [remove]]\n", stderr), 2;
	log_init("dapl", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST", 3);
	trace_init("DAPL_TRACE_LEVEL");
	dapl_settings_read();
	dapl_settings.arp_timeout_ms = 500;
	dapl_settings.arp_retries = 1;
	if (dapl_service_get())
		return 1;
	int fd0 = -1;

	for (int round = 0; round < 2; round++) {
		begin("open");
		if (!open_device(argv[1]))
			return 1;
		facts();
		end();
		if (round == 0) {
			limits_of_the_kernel();
			spellings();
		}
		begin("listen");
		EXPECT(listen_at(&p, 0, false), 0, 1);
		end();
		if (round == 0) {
			one("private data of every length", private_data, &p);
			one("reject with private data of every length", rejections_rc, &p);
			one("refusal by the provider", refusal_rc, &p);
			begin("no listener");
			nobody(false);
			end();
			if (!attr.iwarp) {	/* a dummy device resolves every neighbour */
				begin("a neighbour that is not there");
				no_route("10.99.0.77");
				end();
			}
			begin("a network that is not there");
			no_route("192.0.2.1");
			end();
			one("data both ways, RDMA read, flush, reset", data, &p);
			if (!attr.iwarp)
				one("limits of one connection", limits_of_one_connection, &p);
			disconnects(&p);
			releases(&p);
			ports();
			begin("unlisten while requests pour in");
			unlisten_during_requests();
			end();
			foreign_peers(&p);
			if (attr.ud)
				datagrams();
			one("four threads at once", four_threads, &p);
			one("200 connections leave nothing behind", cycles_200, &p);
		}
		if (round == 1 && remove_it)
			one("the device is removed", removal, &p);
		begin("close with connections that linger");
		struct side a, b;
		if (!(round == 1 && remove_it) && pair(&p, &a, &b)) {
			OPS.error_qp(a.qp);
			OPS.disconnect(a.conn);
			release(&a);
			OPS.error_qp(b.qp);
			OPS.disconnect(b.conn);
			release(&b);
			side_stop(&a);
			side_stop(&b);
		}
		OPS.unlisten(p.listener);
		close_device();
		end();
		begin("close leaves no descriptor");
		if (round == 0)
			fd0 = fds();
		else
			EXPECT(fds(), fd0, 1);
		end();
	}
	if (argc > 2 && argv[2][0] && !remove_it) {
		begin("IPv6");
		if (open_device(argv[2])) {
			struct side a, b;

			facts();
			EXPECT(listen_at(&p, 0, false), 0, 1);
			if (pair(&p, &a, &b))
				end_pair(&a, &b);
			begin("IPv6: no listener");
			nobody(false);
			end();
			if (attr.ud)
				datagrams();
			OPS.unlisten(p.listener);
			close_device();
		}
		end();
	}
	dapl_service_put();
	trace_fini();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
