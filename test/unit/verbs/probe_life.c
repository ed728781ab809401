/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_life.c - the life of connections and listeners: disconnecting, releasing, ports, many connections,
 * a device that goes away. */
#include <arpa/inet.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "dapl/core/base/service.h"
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

void disconnects(struct point *p)
{
	struct side a, b;

	begin("disconnect by the active side");
	if (pair(p, &a, &b)) {
		EXPECT(a.disconnected + b.disconnected, 0);
		end_pair(&a, &b);
		EXPECT(b.orderly, true);
		EXPECT(b.disconnected, 1);
	}
	end();
	begin("disconnect by the passive side");
	if (pair(p, &a, &b)) {
		end_pair(&b, &a);
		EXPECT(a.orderly, true);
	}
	end();
	begin("disconnect by both at once");
	if (pair(p, &a, &b)) {
		OPS.error_qp(a.qp);
		OPS.error_qp(b.qp);
		OPS.disconnect(a.conn);
		OPS.disconnect(b.conn);
		release(&a);
		release(&b);
		COMES(a.released, 1);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	end();
}

void releases(struct point *p)
{
	struct side a, b;

	begin("release right after connect");
	p->refuse = true;	/* siw does not destroy a queue pair during a handshake */
	for (int i = 0; i < 20; i++) {
		if (!side_start(&a, false))
			return;
		EXPECT(connect_to(&a, p->port, "x", 1), 0);
		usleep(i * 500);
		release(&a);
		side_stop(&a);	/* must be allowed at once */
		COMES(a.released, 1);
	}
	usleep(500000);
	p->refuse = false;
	p->requests = 0;
	end();

	begin("release by the active side of what the passive one then accepts");
	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(connect_to(&a, p->port, "late", 4), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	release(&a);
	COMES(a.released, 1);
	usleep(300000);
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	if (!either(&b.failures, &b.disconnected))
		fail("accept of a peer that is gone: nothing came");
	printf("# accept of a peer that is gone: established %d failures %d (%d) disconnected %d\n",
	       b.established, b.failures, b.why, b.disconnected);
	release(&b);
	COMES(b.released, 1);
	side_stop(&a);
	side_stop(&b);
	end();

	begin("release of a request unanswered refuses it");
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	OPS.release(p->conn);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	end();

	begin("release right after accept");
	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	release(&b);
	COMES(b.released, 1);
	if (!either(&a.failures, &a.disconnected))
		fail("its peer got no upcall");
	printf("# its peer: established %d failures %d (%d) disconnected %d\n", a.established,
	       a.failures, a.why, a.disconnected);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	side_stop(&b);
	end();

	begin("release without a disconnect tells the peer");
	if (pair(p, &a, &b)) {
		release(&a);
		COMES(b.disconnected, 1);
		COMES(a.released, 1);
		hang_up(&b);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	end();

	begin("a connection is released once, and nothing follows");
	EXPECT(a.released, 1);
	EXPECT(a.failures + a.disconnected, 0);
	EXPECT(b.disconnected, 1);
	end();
}

void ports(void)
{
	struct point p, q;
	struct side a;
	uint16_t first;

	begin("a port in use");
	EXPECT(listen_at(&p, 7471, false), 0);
	EXPECT(p.port, 7471);
	EXPECT(listen_at(&q, 7471, false), EADDRINUSE);
	OPS.unlisten(p.listener);
	end();
	begin("unlisten frees the port, at once and often");
	for (int i = 0; i < 50; i++) {
		EXPECT(listen_at(&p, 7471, false), 0);
		OPS.unlisten(p.listener);
	}
	end();
	begin("any port");
	EXPECT(listen_at(&p, 0, false), 0);
	EXPECT(p.port >= 1024, true);
	EXPECT(listen_at(&q, 0, false), 0);
	EXPECT(p.port != q.port, true);
	OPS.unlisten(q.listener);
	end();
	begin("a request handed up outlives its listener");
	if (!side_start(&a, false))
		return;
	struct side b;
	if (!side_start(&b, false))
		return;
	first = p.port;
	EXPECT(connect_to(&a, first, "abc", 3), 0);
	COMES(p.requests, 1);
	OPS.unlisten(p.listener);
	EXPECT(accept_on(&p, &b, "d", 1), 0);
	COMES(a.established, 1);
	COMES(b.established, 1);
	end_pair(&a, &b);
	end();
	begin("no listener after unlisten");
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, first, "x", 1), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	end();
	begin("listening at an address of another device, and of none");
	struct sockaddr_in other = { .sin_family = AF_INET };
	uint16_t port = 0;
	inet_pton(AF_INET, attr.iwarp ? "10.99.0.1" : "10.98.0.1", &other.sin_addr);
	EXPECT(OPS.listen(dev, (struct sockaddr *)&other, &port, false, 8, &p, &p.listener),
	       EADDRNOTAVAIL);
	inet_pton(AF_INET, "192.0.2.7", &other.sin_addr);
	int err = OPS.listen(dev, (struct sockaddr *)&other, &port, false, 8, &p, &p.listener);
	if (!err)
		fail("listening at a foreign address");
	end();
}

/* Unlisten while requests arrive: none may come up afterwards. */
void unlisten_during_requests(void)
{
	struct point p;
	struct side s[16];

	for (int round = 0; round < 10; round++) {
		int seen;

		EXPECT(listen_at(&p, 0, false), 0);
		p.refuse = true;
		for (int i = 0; i < 16; i++) {
			if (!side_start(&s[i], false))
				return;
			EXPECT(connect_to(&s[i], p.port, "x", 1), 0);
		}
		usleep(round * 2000);
		OPS.unlisten(p.listener);
		seen = p.requests;
		usleep(50000);
		EXPECT(p.requests, seen);
		for (int i = 0; i < 16; i++) {
			release(&s[i]);
			side_stop(&s[i]);
		}
		for (int i = 0; i < 16; i++)
			COMES(s[i].released, 1);
	}
}

void cycles(struct point *p, int n)
{
	struct side a, b;
	int fd0 = 0;
	size_t memory0 = 0, memory1;
	double t = 0;

	for (int i = 0; i < n + 20; i++) {
		if (i == 20) {	/* all that is kept for reuse exists by now */
			fd0 = fds();
			memory0 = mallinfo2().uordblks;
			t = now();
		}
		if (!pair(p, &a, &b))
			return;
		end_pair(&a, &b);
		if (case_failed)
			return;
	}
	t = now() - t;
	usleep(2500000);	/* ids that waited for a peer's answer are destroyed */
	dapl_service_flush();
	memory1 = mallinfo2().uordblks;
	printf("# %d connections, %.1f ms each; heap %+ld bytes\n", n, t / n * 1000,
	       (long)(memory1 - memory0));
	EXPECT(fds(), fd0);
	if (memory1 > memory0 + 4096)
		fail("heap grew by %zu bytes", memory1 - memory0);
}

static void *one_of_four(void *arg)
{
	struct point p;
	struct side a, b;

	(void)arg;
	if (listen_at(&p, 0, false)) {
		fail("no listener");
		return NULL;
	}
	for (int i = 0; i < 40 && !case_failed; i++) {
		if (!pair(&p, &a, &b))
			return NULL;
		if (i % 4 == 3) {	/* both ends, without a wait */
			hang_up(&a);
			hang_up(&b);
			side_stop(&a);
			side_stop(&b);
			if (!wait_until(&a.released, 1, 30) || !wait_until(&b.released, 1, 30))
				fail("not released");
		} else if (i % 2) {
			end_pair(&a, &b);
		} else {
			end_pair(&b, &a);
		}
	}
	OPS.unlisten(p.listener);
	return NULL;
}

void four_threads(struct point *p)
{
	pthread_t t[4];

	(void)p;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, one_of_four, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

void removal(struct point *p)
{
	char command[100];
	struct side a, b;

	if (!pair(p, &a, &b))
		return;
	async_events = 0;
	/* In the background: the command returns when the last process has closed the device. */
	snprintf(command, sizeof(command), "rdma link delete %s &", attr.device);
	EXPECT(system(command), 0);
	COMES(async_events, 1);
	printf("# asynchronous events %d, the last %d; a disconnected %d orderly %d\n",
	       async_events, last_async, a.disconnected, a.orderly);
	EXPECT(last_async, IBV_EVENT_DEVICE_FATAL);
	COMES(a.disconnected, 1);
	COMES(b.disconnected, 1);
	hang_up(&a);
	hang_up(&b);
	COMES(a.released, 1);
	COMES(b.released, 1);
	OPS.destroy_qp(a.qp);
	OPS.destroy_qp(b.qp);
	OPS.destroy_cq(a.cq);
	OPS.destroy_cq(b.cq);
}
