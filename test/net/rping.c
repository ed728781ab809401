/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rping.c - the software device and a program that knows nothing of DAT: rping, of librdmacm's
 * examples, over kernel siw. We are the client of rping -s, or the server of rping -c.
 *
 * What rping's ends say to each other is 16 bytes, big-endian: address(8), key(4), length(4).
 * Each round the client names the memory where its data is; the server reads it, and answers;
 * the client names memory for the echo; the server writes it there, and answers. An answer's
 * bytes mean nothing. rping -s echoes a string: up to the first NUL, and that.
 *
 * In the test machine, over the link that soft-siw makes. No TESTS: it needs that. */
#include "link.h"
#include <endian.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALLEST = 23, USUAL = 100, LARGEST = 65535 };	/* data that rping takes */
enum { HEARD, SAID, DATA, ECHO };			/* blocks of our memory */

struct advert {
	uint64_t at;
	uint32_t key, length;
};

struct play {
	unsigned size, rounds;
	unsigned clients;	/* connections of one rping, one after the other */
	bool spoil;		/* the last echo */
	const char *options;	/* more of rping's */
	pid_t rping;
};

static bool soft_connects;		/* else it serves */
static struct play *play;	/* shared by the processes */

/* --- both parts --------------------------------------------------------------------- */

static void expect_done(struct end *e, const char *what, unsigned round)
{
	DAT_DTO_COMPLETION_STATUS status = done(e->request, NULL);

	if (status != DAT_DTO_SUCCESS)
		fail("the %s of round %u completes with status %d", what, round, (int)status);
}

static void say(struct end *e, int block, unsigned round)
{
	struct advert *said = (struct advert *)(e->memory + SAID * BLOCK);

	said->at = htobe64((uintptr_t)e->memory + block * BLOCK);
	said->key = htobe32(e->remote);
	said->length = htobe32(play->size);
	post_send(e, SAID, sizeof *said);
	expect_done(e, "message", round);
}

static void hear(struct end *e, struct advert *heard, unsigned round)
{
	DAT_DTO_COMPLETION_STATUS status;
	unsigned length;

	status = done(e->recv, &length);
	if (status != DAT_DTO_SUCCESS || length != sizeof *heard)
		fail("the message of round %u: status %d, %u bytes", round, (int)status, length);
	memcpy(heard, e->memory + HEARD * BLOCK, sizeof *heard);
	post_receive(e, HEARD);
}

/* The data of this client: printable characters. */
static void make_our_data(char *p, unsigned round)
{
	for (unsigned i = 0; i < play->size - 1; i++)
		p[i] = (char)('!' + ((i + round) * 2654435761u >> 16) % 94);
	p[play->size - 1] = '\0';
}

/* The data of rping: "rdma-ping-3: DEFG", from A to z and again. Each round begins with the next letter. */
static void make_rpings_data(char *p, unsigned round)
{
	unsigned head = sprintf(p, "rdma-ping-%u: ", round);

	for (unsigned i = head; i < play->size - 1; i++)
		p[i] = (char)('A' + (round + i - head) % ('z' - 'A' + 1));
	p[play->size - 1] = '\0';
}

static void expect_same(const char *p, const char *good, const char *what, unsigned round)
{
	for (unsigned i = 0; i < play->size; i++)
		if (p[i] != good[i])
			fail("%s: byte %u of %u in round %u is wrong", what, i, play->size, round);
}

/* --- we are the client ------------------------------------------------------------------ */

static bool rping_listens(void)
{
	FILE *file = fopen("/proc/net/tcp", "re");
	unsigned port, state;
	char line[300];
	bool found = false;

	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "%*d: %*x:%x %*x:%*x %x", &port, &state) == 2)
			found |= port == PORT && state == 10;
	if (file)
		fclose(file);
	return found;
}

static void ping(struct end *e)
{
	char *data = e->memory + DATA * BLOCK, *echo = e->memory + ECHO * BLOCK;
	struct advert answer;

	for (unsigned round = 0; round < play->rounds; round++) {
		make_our_data(data, round);
		memset(echo, 0xff, BLOCK);
		say(e, DATA, round);
		hear(e, &answer, round);
		say(e, ECHO, round);
		hear(e, &answer, round);
		expect_same(echo, data, "the echo", round);
		if (play->size < BLOCK && (unsigned char)echo[play->size] != 0xff)
			fail("more than the echo was written in round %u", round);
	}
}

static void call_rping(struct end *e)
{
	post_receive(e, HEARD);
	OK(connect_to(e, SIW, DEATH, DAT_CONNECTION_EVENT_ESTABLISHED));
	ping(e);
	OK(dat_ep_disconnect(e->ep, DAT_CLOSE_GRACEFUL_FLAG));
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
	if (done(e->recv, NULL) != DAT_DTO_ERR_FLUSHED)
		fail("the receive that was left is not flushed");
}

static void be_client(struct end *e)
{
	while (!rping_listens())
		usleep(1000);
	open_soft(e);
	call_rping(e);
	for (unsigned i = 1; i < play->clients; i++) {
		OK(dat_ep_reset(e->ep));
		call_rping(e);
	}
	if (play->clients > 1)	/* it waits for the next one */
		kill(play->rping, SIGTERM);
}

/* --- we are the server ------------------------------------------------------------------- */

static void move(struct end *e, const struct advert *heard, bool read, unsigned round)
{
	if (be32toh(heard->length) != play->size)
		fail("round %u is about %u bytes", round, be32toh(heard->length));
	server->remote = be32toh(heard->key);
	server->at = be64toh(heard->at);
	post_rdma(e, DATA, 0, play->size, read);
	expect_done(e, read ? "read" : "write", round);
}

static void echo_rping(struct end *e)
{
	char *data = e->memory + DATA * BLOCK, *good = e->memory + ECHO * BLOCK;
	struct advert heard;

	for (unsigned round = 0; round < play->rounds; round++) {
		memset(data, 0, BLOCK);
		hear(e, &heard, round);
		move(e, &heard, true, round);
		make_rpings_data(good, round);
		expect_same(data, good, "what was read", round);
		say(e, DATA, round);
		hear(e, &heard, round);
		data[play->size / 2] ^= play->spoil && round == play->rounds - 1;
		move(e, &heard, false, round);
		say(e, DATA, round);
	}
}

static void be_server(struct end *e)
{
	open_soft(e);
	accept_one(e);
	echo_rping(e);
	OK(await(e->conn, DAT_CONNECTION_EVENT_DISCONNECTED, DEATH, NULL));
}

/* --- rping ---------------------------------------------------------------------------------- */

/* What fits into struct told. */
static bool is_shown(void)
{
	return play->size * play->rounds * play->clients < 50000;
}

static void become_rping(const void *unused)
{
	char line[200];

	(void)unused;
	play->rping = getpid();
	snprintf(line, sizeof line, "exec stdbuf -oL rping %s -p %d -S %u -C %u -V %s %s",
		 soft_connects ? "-s -a " SIW : "-c -a " SOFT, PORT, play->size, play->rounds,
		 is_shown() ? "-v" : "", play->options ? play->options : "");
	execl("/bin/sh", "sh", "-c", line, (char *)NULL);
	fail("no /bin/sh");
}

/* rping prints the data of all rounds, in this order. */
static void expect_shown(const char *text)
{
	char *line = malloc(play->size + 40), *data;

	data = line + sprintf(line, "%sping data: ", soft_connects ? "server " : "");
	for (unsigned i = 0; i < play->rounds * play->clients; i++) {
		unsigned round = i % play->rounds;

		soft_connects ? make_our_data(data, round) : make_rpings_data(data, round);
		data[play->size - 1] = '\n';
		data[play->size] = '\0';
		if (!(text = strstr(text, line)))
			fail("rping does not show the data of round %u", round);
		text += strlen(line);
	}
	free(line);
}

static void expect_of_rping(const struct child_result *result)
{
	if (play->spoil) {
		if (!result->status || !strstr(result->text, "mismatch"))
			fail("rping takes a spoilt echo: status 0x%x, \"%.300s\"", result->status,
			     result->text);
		return;
	}
	if (result->status != (play->clients > 1 ? SIGTERM : 0))
		fail("rping ends with status 0x%x, \"%.300s\"", result->status, result->text);
	if (is_shown())
		expect_shown(result->text);
}

static pid_t start_our_end(void)
{
	struct end e;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		soft_connects ? be_client(&e) : be_server(&e);
		close_end(&e);
		exit(0);
	}
	return pid;
}

static void play_out(struct play p)
{
	struct child_result result;
	pid_t pid;

	make_server();
	play = mmap(NULL, sizeof *play, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	*play = p;
	pid = start_our_end();
	if (!soft_connects)
		await_server(pid);
	result = run(become_rping, NULL);
	expect_of_rping(&result);
	expect_good_end(pid);
}

/* --- cases ---------------------------------------------------------------------------------- */

static void rounds_of(unsigned size, unsigned rounds)
{
	play_out((struct play){ .size = size, .rounds = rounds, .clients = 1 });
}

static void one_round_comes_back(void) { rounds_of(USUAL, 1); }
static void a_hundred_rounds(void) { rounds_of(USUAL, 100); }
static void the_smallest_data_come_back(void) { rounds_of(SMALLEST, 20); }
static void the_largest_data_come_back(void) { rounds_of(LARGEST, 20); }

/* Lengths: a segment of siw, a byte more, a page, several segments and a rest. */
static void data_of_several_sizes(void)
{
	static const unsigned sizes[] = { 1428, 1429, 4096, 30001 };

	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		rounds_of(sizes[i], 5);
}

static void the_largest_data_come_back_with_crc(void)
{
	setenv("DAPL_SOFT_CRC", "1", 1);
	the_largest_data_come_back();
}

static void crc_and_several_sizes(void)
{
	setenv("DAPL_SOFT_CRC", "1", 1);
	data_of_several_sizes();
}

/* rping is the server here: as client it calls rdma_establish, which fails on iWARP, also with `rping -s`.
 * */
static void rping_makes_its_own_queue_pair(void)
{
	play_out((struct play){ .size = USUAL, .rounds = 20, .clients = 1, .options = "-q" });
}

static void three_clients_of_one_rping(void)
{
	play_out((struct play){ .size = USUAL, .rounds = 20, .clients = 3, .options = "-P" });
}

static void rping_sees_a_spoilt_echo(void)
{
	play_out((struct play){ .size = USUAL, .rounds = 3, .clients = 1, .spoil = true });
}

/* clang-format off */
#define IN_BOTH_ROLES \
	CASE(one_round_comes_back), \
	CASE(a_hundred_rounds), \
	CASE(the_smallest_data_come_back), \
	CASE(the_largest_data_come_back), \
	CASE(data_of_several_sizes), \
	CASE(the_largest_data_come_back_with_crc), \
	CASE(crc_and_several_sizes)
/* clang-format on */

int main(int argc, char **argv)
{
	static const struct life_case calls[] = {
		IN_BOTH_ROLES,
		CASE(rping_makes_its_own_queue_pair),
		CASE(three_clients_of_one_rping),
	};
	static const struct life_case serves[] = {
		IN_BOTH_ROLES,
		CASE(rping_sees_a_spoilt_echo),
	};

	if (argc < 2 || (strcmp(argv[1], "calls") && strcmp(argv[1], "serves"))) {
		fprintf(stderr, "usage: rping calls|serves [CASE...]\n");
		return 2;
	}
	soft_connects = !strcmp(argv[1], "calls");
	return soft_connects ? life_main(argc - 1, argv + 1, calls, sizeof calls / sizeof calls[0]) :
			    life_main(argc - 1, argv + 1, serves, sizeof serves / sizeof serves[0]);
}
