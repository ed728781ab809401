/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ping_peer.c - peers of datping that do what none should: as its server or its client, over the
 * software device on the loopback interface. What datping says of them is test/tools/datping's job.
 *
 *	ping_peer MODE PORT
 *
 * Servers: "spoil" changes a byte of the echo of the third round, "mute" accepts and says nothing, "leave"
 * disconnects in the second round. Clients: "large" names too much memory, "small" too little
 * for its echo, "short" sends 8 bytes, "wrong-key" names memory that is not registered, "die" ends in the middle of a
 * round. */
#include "test/net/ends.h"
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEARD, SAID, DATA, SIZE = 100 };

struct message {
	uint64_t address;
	uint32_t key, size;
};

static const char *mode;
static DAT_CONN_QUAL port;

static bool mode_is(const char *name)
{
	return !strcmp(mode, name);
}

static void say(struct end *e, uint32_t key, uint32_t size, unsigned bytes)
{
	struct message *said = (struct message *)(e->memory + SAID * BLOCK);

	*said = (struct message){ htobe64((uintptr_t)e->memory + DATA * BLOCK), htobe32(key),
				  htobe32(size) };
	post_send(e, SAID, bytes);
}

static struct message hear(struct end *e)
{
	const struct message *heard = (const struct message *)(e->memory + HEARD * BLOCK);
	struct message m;

	if (done(e->recv, NULL) != DAT_DTO_SUCCESS)
		exit(0); /* the peer is satisfied */
	m = (struct message){ be64toh(heard->address), be32toh(heard->key), be32toh(heard->size) };
	post_receive(e, HEARD);
	return m;
}

/* Disconnected, or broken by what the peer found wrong. */
static void wait_for_end(struct end *e)
{
	DAT_EVENT event;
	DAT_COUNT more;

	OK(dat_evd_wait(e->conn, DEATH, 1, &event, &more));
	EXPECT(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	       event.event_number == DAT_CONNECTION_EVENT_BROKEN);
}

/* --- servers ------------------------------------------------------------------- */

static void transfer(struct end *e, struct message m, bool read)
{
	server->remote = m.key;
	server->at = m.address;
	post_rdma(e, DATA, 0, m.size, read);
	EXPECT(done(e->request, NULL) == DAT_DTO_SUCCESS);
	say(e, 0, 0, sizeof m);
	EXPECT(done(e->request, NULL) == DAT_DTO_SUCCESS);
}

static void serve(struct end *e)
{
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;

	OK(dat_psp_create(e->ia, port, e->cr, DAT_PSP_CONSUMER_FLAG, &psp));
	post_receive(e, HEARD);
	OK(await(e->cr, DAT_CONNECTION_REQUEST_EVENT, DEATH, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, e->ep, 0, NULL));
	OK(await(e->conn, DAT_CONNECTION_EVENT_ESTABLISHED, DEATH, NULL));
	if (mode_is("mute"))
		wait_for_end(e);
	for (int round = 0; !mode_is("mute"); round++) {
		transfer(e, hear(e), true);
		if (mode_is("leave") && round == 1)
			break;
		if (mode_is("spoil") && round == 2)
			e->memory[DATA * BLOCK + 17] ^= 1;
		transfer(e, hear(e), false);
	}
}

/* --- clients --------------------------------------------------------------------- */

static void call(struct end *e)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	bool large = mode_is("large"), small = mode_is("small");

	post_receive(e, HEARD);
	OK(dat_ep_connect(e->ep, (DAT_IA_ADDRESS_PTR)&to, port, MOMENT, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(e->conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT, NULL));
	say(e, mode_is("wrong-key") ? ~e->remote : e->remote, large ? 65536 : SIZE,
	    mode_is("short") ? 8 : sizeof(struct message));
	if (small || mode_is("die"))
		hear(e);
	if (mode_is("die"))
		_exit(0);
	if (small)
		say(e, e->remote, SIZE - 1, sizeof(struct message));
	wait_for_end(e);
}

static void play_part(void)
{
	struct end e;

	make_server();
	setenv("DAPL_DBG_TYPE", "0", 1); /* a connection that breaks is expected */
	open_end(&e, "libdaplsoft.so.2", "lo");
	if (mode_is("spoil") || mode_is("mute") || mode_is("leave"))
		serve(&e);
	else
		call(&e);
	if (mode_is("leave"))
		OK(dat_ep_disconnect(e.ep, DAT_CLOSE_GRACEFUL_FLAG));
	close_end(&e);
}

int main(int argc, char **argv)
{
	static const struct life_case part[] = { CASE(play_part) };

	if (argc != 3)
		return 2;
	mode = argv[1];
	port = strtoul(argv[2], NULL, 10);
	return life_main(1, argv, part, 1);
}
