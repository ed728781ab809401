/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_requests.c - connection requests: private data, rejections, refusals, peers that are not there. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

/* Private data of every length arrives unchanged, in both directions. */
void private_data(struct point *p)
{
	uint8_t out[256], back[256];

	for (size_t n = 0; n <= attr.pdata_accept; n++) {
		size_t m = n % (attr.pdata_connect + 1);
		struct side a, b;

		p->requests = 0;
		fill(out, m, n);
		fill(back, n, n + 3);
		if (!side_start(&a, false) || !side_start(&b, false))
			return;
		EXPECT(connect_to(&a, p->port, out, m), 0);
		COMES(p->requests, 1);
		if (!same(p->pdata, p->pdata_len, out, m))
			return;
		EXPECT(accept_on(p, &b, back, n), 0);
		COMES(a.established, 1);
		COMES(b.established, 1);
		if (!same(a.pdata, a.pdata_len, back, n))
			return;
		EXPECT(b.pdata_len, 0);
		p->requests = 0;
		end_pair(&a, &b);
		if (case_failed)
			return;
	}
	struct side a;

	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, p->port, out, attr.pdata_connect + 1), EMSGSIZE);
	side_stop(&a);
}

void rejections(struct point *p, bool ud, size_t limit)
{
	uint8_t out[256];

	for (size_t n = 0; n <= limit; n++) {
		struct side a;

		p->requests = 0;
		fill(out, n, n);
		if (!side_start(&a, ud))
			return;
		EXPECT(connect_to(&a, p->port, NULL, 0), 0);
		COMES(p->requests, 1);
		EXPECT(p->pdata_len, 0);
		EXPECT(OPS.reject(p->conn, true, out, n), 0);
		COMES(a.failures, 1);
		EXPECT(a.why, DAPL_CONN_REJECTED);
		if (!same(a.pdata, a.pdata_len, out, n))
			return;
		release(&a);
		COMES(a.released, 1);
		side_stop(&a);
	}
	p->requests = 0;
}

void refusal(struct point *p, bool ud)
{
	struct side a;

	if (!side_start(&a, ud))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	EXPECT(OPS.reject(p->conn, false, NULL, 0), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	p->requests = 0;
}

void nobody(bool ud)
{
	struct side a;
	double t = now();

	if (!side_start(&a, ud))
		return;
	EXPECT(connect_to(&a, 19, "x", 1), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	printf("# %s after %.3f s\n", case_name, now() - t);
	release(&a);
	COMES(a.released, 1);
	EXPECT(a.failures, 1);
	EXPECT(a.established, 0);
	side_stop(&a);
}

void no_route(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(4000) };
	struct dapl_conn_params params;
	struct side a;
	double t = now();

	if (!side_start(&a, false))
		return;
	inet_pton(AF_INET, address, &to.sin_addr);
	params = params_of(&a, NULL, 0);
	params.remote = (struct sockaddr *)&to;
	EXPECT(OPS.connect(dev, &params, &a.conn), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_UNREACHABLE);
	printf("# %s after %.3f s\n", case_name, now() - t);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
}
