/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows.c - rows that two processes with one connection measure. */
#include <string.h>
#include "plain.h"
#include "rounds.h"
#include "rows.h"
#include "side.h"
#include "two.h"

enum { TURNS = 25, TURN_BATCHES = 8 };

const char *only = "";

static bool wanted(const char *what)
{
	return strstr(what, only) != NULL;
}

void data_ping_pong(const char *what, size_t bytes, bool write, int rounds)
{
	if (wanted(what))
		report(what, data_half_round(bytes, write, rounds, BATCHES), "us");
}

/* The median round trip between two waiting threads, without the time that the answer takes. */
static void both_wait(const char *what, double us, bool for_cno)
{
	static double took[ACCESSES];

	if (!wanted(what))
		return;
	size = SMALL;
	answer_after = us / 1e6;
	finish();
	waits = !for_cno;
	if (for_cno) {
		good(dat_cno_create(ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno), "dat_cno_create");
		good(dat_evd_modify_cno(evd, cno), "dat_evd_modify_cno");
	}
	for (int i = 0; i < ACCESSES; i++) {
		double begin = now();

		send_round(i + 1);
		took[i] = now() - begin - answer_after;
	}
	if (for_cno) {
		good(dat_evd_modify_cno(evd, DAT_HANDLE_NULL), "dat_evd_modify_cno");
		good(dat_cno_free(cno), "dat_cno_free");
		cno = DAT_HANDLE_NULL;
	}
	waits = false;
	answer_after = 0;
	finish();
	report(what, median(took, ACCESSES) * 1e6, "us");
}

static void stream(const char *what, size_t bytes, bool write, unsigned count)
{
	double speed;

	if (!wanted(what))
		return;
	speed = stream_speed(bytes, write, count, STREAMS);
	report(what, bytes < 4096 ? speed / bytes / 1e6 : speed / 1e9,
	       bytes < 4096 ? "million/s" : "GB/s");
}

void to_sleeper(const char *what, void (*act)(size_t), size_t bytes)
{
	double took;

	if (!wanted(what))
		return;
	finish();
	took = while_it_sleeps(act, bytes);
	finish();
	report(what, took, "us");
	report("  and it woke up", shared->wakes, "times");
}

void data_rows(void)
{
	hand_overs();
	data_ping_pong("send 8 B", SMALL, false, ROUNDS);
	data_ping_pong("RDMA write 8 B until seen", SMALL, true, ROUNDS);
	data_ping_pong("send 64 KiB", MIDDLE, false, 20);
	data_ping_pong("RDMA write 64 KiB until seen", MIDDLE, true, 20);
	both_wait("send 8 B and back, both in dat_evd_wait", 0, false);
	both_wait("  if the other computes for 100 us", 100, false);
	both_wait("send 8 B and back, both in dat_cno_wait", 0, true);
	both_wait("  if the other computes for 100 us", 100, true);
	stream("send 8 B stream", SMALL, false, 2000);
	stream("send 64 KiB stream", MIDDLE, false, 128);
	stream("send 1 MiB stream", LARGE, false, STREAM);
	stream("RDMA write 1 MiB stream", LARGE, true, STREAM);
	to_sleeper("RDMA write 8 B to a sleeping process", write_and_wait, SMALL);
	to_sleeper("RDMA read 8 B from a sleeping process", read_and_wait, SMALL);
	to_sleeper("RDMA write 16 KiB to a sleeping process", write_and_wait, 16 << 10);
	to_sleeper("RDMA read 16 KiB from a sleeping process", read_and_wait, 16 << 10);
}

/* Each row once in its turn, over and over: so the two are compared while the machine runs at one
 * speed. Plain TCP's stream counts in the way of reading that is the fastest by its median. */
void turn_rows(void)
{
	static double plain[TCP_WAYS][TURNS], send[TURNS], write[TURNS];
	static double plain_small[TURNS], plain_middle[TURNS], small[TURNS], middle[TURNS];
	double best = 0;

	tcp_connect();
	for (int i = 0; i < TURNS; i++) {
		block_size = SMALL;
		plain_small[i] = half_round(tcp_round, ROUNDS, TURN_BATCHES);
		small[i] = data_half_round(SMALL, false, ROUNDS, TURN_BATCHES);
		block_size = MIDDLE;
		plain_middle[i] = half_round(tcp_round, 20, TURN_BATCHES);
		middle[i] = data_half_round(MIDDLE, false, 20, TURN_BATCHES);
		for (int way = 0; way < TCP_WAYS; way++)
			plain[way][i] = tcp_stream(&tcp_way[way], TURN_BATCHES);
		send[i] = stream_speed(LARGE, false, STREAM, TURN_BATCHES);
		write[i] = stream_speed(LARGE, true, STREAM, TURN_BATCHES);
	}
	for (int way = 0; way < TCP_WAYS; way++)
		best = median(plain[way], TURNS) > best ? median(plain[way], TURNS) : best;
	report("send 8 B, time", median(small, TURNS) / median(plain_small, TURNS), "of plain TCP's");
	report("send 64 KiB, time", median(middle, TURNS) / median(plain_middle, TURNS),
	       "of plain TCP's");
	report("send 1 MiB stream, speed", median(send, TURNS) / 1e9 / best, "of plain TCP's");
	report("RDMA write 1 MiB stream, speed", median(write, TURNS) / 1e9 / best,
	       "of plain TCP's");
}

void mapped_rows(void)
{
	target_mapped();
	data_ping_pong("RDMA write 8 B until seen", SMALL, true, ROUNDS);
	data_ping_pong("RDMA write 64 KiB until seen", MIDDLE, true, 20);
	stream("RDMA write 8 B stream", SMALL, true, 2000);
	stream("RDMA write 1 MiB stream", LARGE, true, STREAM);
	to_sleeper("RDMA write 8 B to a sleeping process", write_and_wait, SMALL);
	to_sleeper("RDMA read 8 B from a sleeping process", read_and_wait, SMALL);
	to_sleeper("RDMA write 16 KiB to a sleeping process", write_and_wait, 16 << 10);
	to_sleeper("RDMA read 16 KiB from a sleeping process", read_and_wait, 16 << 10);
}

int data(const char *name, void (*rows)(void))
{
	pid_t child = split();
	DAT_PSP_HANDLE psp;

	open_ia(name, 4 * DEPTH);
	register_memory();
	if (me)
		listen_any(&psp);
	together();
	good(dat_ep_create(ia, pz, evd, evd, conn_evd, NULL, &ep), "dat_ep_create");
	for (int i = 0; i < DEPTH; i++)
		post_receive();
	if (!me)
		connect_ep(ep);
	else
		good(dat_cr_accept(wait_for(DAT_CONNECTION_REQUEST_EVENT)
					   .event_data.cr_arrival_event_data.cr_handle,
				   ep, 0, NULL), "dat_cr_accept");
	wait_for(DAT_CONNECTION_EVENT_ESTABLISHED);
	rows();
	finish();
	good(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG), "dat_ia_close");
	return join(child);
}
