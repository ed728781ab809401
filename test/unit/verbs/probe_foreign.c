/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_foreign.c - a peer on librdmacm, without this provider's private data, and one that sends at once. */
#include <arpa/inet.h>
#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "test/unit/verbs/probe.h"
#include "test/unit/verbs/probe_cases.h"

static void foreign_active(struct point *p, const uint8_t *bytes, size_t len, size_t seen)
{
	struct rdma_conn_param param = { .private_data = bytes, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.rnr_retry_count = 7 };
	struct sockaddr_storage to = attr.address;
	struct rdma_cm_id *id;
	struct side s;

	p->requests = 0;
	if (!side_start(&s, false))
		return;
	((struct sockaddr_in *)&to)->sin_port = htons(p->port);
	EXPECT(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	EXPECT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
	EXPECT(rdma_resolve_route(id, 2000), 0);
	param.qp_num = s.qp->qp_num;
	/* rdma_migrate_id() is synchronous and would wait for an answer: use a channel of its
	 * own. */
	struct rdma_event_channel *c = rdma_create_event_channel();

	EXPECT(rdma_migrate_id(id, c), 0);
	EXPECT(rdma_connect(id, &param), 0);
	COMES(p->requests, 1);
	EXPECT(p->pdata_len, seen);
	EXPECT(memcmp(p->pdata, bytes, len < seen ? len : seen), 0);
	EXPECT(OPS.reject(p->conn, true, "no", 2), 0);
	struct rdma_cm_event *e;

	EXPECT(rdma_get_cm_event(c, &e), 0);
	EXPECT(e->event, RDMA_CM_EVENT_REJECTED);
	EXPECT(e->status, attr.iwarp ? -ECONNRESET : 28);
	EXPECT(memcmp((const char *)e->param.conn.private_data + 4, "no", 2), 0);
	rdma_ack_cm_event(e);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(c);
	side_stop(&s);
	p->requests = 0;
}

/* Answers with `bytes`: accept if `accept`, else reject. */
static void foreign_passive(const uint8_t *bytes, size_t len, struct side *a)
{
	struct sockaddr_storage at = attr.address;
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	EXPECT(rdma_create_id(c, &id, NULL, RDMA_PS_TCP), 0);
	EXPECT(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	EXPECT(rdma_listen(id, 4), 0);
	if (!side_start(a, false))
		return;
	EXPECT(connect_to(a, ntohs(rdma_get_src_port(id)), "abc", 3), 0);
	EXPECT(rdma_get_cm_event(c, &e), 0);
	EXPECT(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	printf("# a foreign listener sees %u bytes of private data of the provider: %.3s\n",
	       e->param.conn.private_data_len, (const char *)e->param.conn.private_data);
	struct rdma_cm_id *conn = e->id;

	EXPECT(rdma_reject(conn, bytes, len), 0);
	rdma_ack_cm_event(e);
	COMES(a->failures, 1);
	release(a);
	COMES(a->released, 1);
	rdma_destroy_id(conn);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(c);
	side_stop(a);
}

/* Receives the MPA Request from a socket: 20 bytes, of which the last two are the length of
 * the rest. */
static size_t take_request(int fd, uint8_t *frame, size_t room)
{
	size_t got = 0, whole = 20;

	while (got < whole && whole <= room) {
		ssize_t n = recv(fd, frame + got, whole - got, 0);

		if (n <= 0)
			return 0;
		got += n;
		if (got >= 20)
			whole = 20 + (frame[18] << 8 | frame[19]);
	}
	return got;
}

/* An iWARP peer that accepts and sends at once: siw takes what arrives with the Reply as a
 * part of it, and gives the handshake up. The peer exists and did not reject. */
static void peer_that_sends_at_once(void)
{
	struct sockaddr_storage here = attr.address;
	socklen_t size = sizeof(here);
	int server = socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	uint8_t frame[600];
	size_t n;
	struct side a;

	EXPECT(bind(server, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
	EXPECT(listen(server, 1), 0);
	EXPECT(getsockname(server, (struct sockaddr *)&here, &size), 0);
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, ntohs(((struct sockaddr_in *)&here)->sin_port), "x", 1), 0);
	fd = accept(server, NULL, NULL);
	n = take_request(fd, frame, sizeof(frame) - 4);
	EXPECT(n >= 20, true);
	memcpy(frame, "MPA ID Rep Frame", 16);
	memset(frame + n, 0, 4);
	EXPECT(send(fd, frame, n + 4, MSG_NOSIGNAL), (ssize_t)n + 4);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	EXPECT(a.established, 0);
	close(fd);
	close(server);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
}

void foreign_peers(struct point *p)
{
	uint8_t bytes[256];
	struct side a;
	size_t padded = attr.iwarp ? 20 : 56;

	begin("a foreign active peer");
	fill(bytes, sizeof(bytes), 1);
	foreign_active(p, bytes, 20, padded);
	end();
	if (!attr.iwarp) {
		begin("a hostile active peer");
		bytes[52] = 0xda, bytes[53] = 0x92, bytes[54] = 0, bytes[55] = 255;
		foreign_active(p, bytes, 56, 56);
		bytes[55] = 10;		/* but the padding is not zero */
		foreign_active(p, bytes, 56, 56);
		end();
	}
	if (attr.iwarp) {
		begin("a hasty passive peer is a refusal");
		peer_that_sends_at_once();
		end();
	}
	begin("a foreign passive peer rejects");
	fill(bytes, sizeof(bytes), 1);
	foreign_passive(bytes, 20, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 20 : 148);
	end();
	begin("a peer like OFA's provider rejects");
	memcpy(bytes, "\2\0\0\0data", 8);
	foreign_passive(bytes, 8, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 4 : 144);
	EXPECT(memcmp(a.pdata, "data", 4), 0);
	end();
	begin("a reject without anything is a refusal");
	foreign_passive(NULL, 0, &a);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	end();
	begin("a hostile passive peer rejects");
	memcpy(bytes, "\xda\x92\0\xff", 4);
	foreign_passive(bytes, attr.iwarp ? 251 : 148, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 251 : 148);
	end();
}
