/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_datagrams.c - datagram associations and their data. */
#include <errno.h>
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

void datagrams(void)
{
	struct side a, b;
	struct point p;
	uint8_t out[256], back[256];

	begin("UD: private data, address handles, data both ways");
	EXPECT(listen_at(&p, 0, true), 0);
	for (size_t n = 0; n <= 132; n += 12) {
		if (!side_start(&a, true) || !side_start(&b, true))
			return;
		fill(out, n, n);
		fill(back, n, n + 1);
		EXPECT(post_recv(&a, 4096), 0);
		EXPECT(post_recv(&b, 4096), 0);
		EXPECT(connect_to(&a, p.port, out, n), 0);
		COMES(p.requests, 1);
		p.requests = 0;
		EXPECT(p.ud, true);
		if (!same(p.pdata, p.pdata_len, out, n))
			return;
		EXPECT(accept_on(&p, &b, back, n), 0);
		COMES(a.established, 1);
		COMES(b.established, 1);
		if (!same(a.pdata, a.pdata_len, back, n))
			return;
		EXPECT(a.had_peer && b.had_peer, true);
		EXPECT(a.ud_peer.qpn, b.qp->qp_num);
		EXPECT(b.ud_peer.qpn, a.qp->qp_num);
		send_one(&a, &b, 40);
		send_one(&b, &a, 40);
		if (case_failed)
			return;
		OPS.disconnect(a.conn);
		release(&a);
		release(&b);
		COMES(a.released, 1);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	if (!side_start(&a, true))
		return;
	EXPECT(connect_to(&a, p.port, out, 149), EMSGSIZE);
	side_stop(&a);
	end();
	begin("UD: reject");
	rejections(&p, true, 132);
	end();
	begin("UD: refusal by the provider");
	refusal(&p, true);
	end();
	begin("UD: no listener");
	nobody(true);
	end();
	OPS.unlisten(p.listener);
}
