/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pingpong.c - a ping-pong between two processes as MPI runtimes with a uDAPL 1.2 back end do it: RDMA
 * writes of payload and then of a flag, and polling of the flag in memory. 0 B to 4 MiB; all bytes
 * of each message are compared. Compiled with the header of include/dat-1.2 and with the transcription.
 * C89. */
#include "pair.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAYLOAD_MAX (4 << 20)	/* bytes */
#define ROUNDS 3		/* for each size */

/* What the peer writes, and what it is written from. */
struct area {
	volatile DAT_UINT64 flag;
	DAT_UINT64 flag_out;
	char in[PAYLOAD_MAX], out[PAYLOAD_MAX];
};

struct side {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr_evd, conn, recv, request;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_LMR_CONTEXT local;
	struct area *area;
	DAT_RMR_TRIPLET peer;	/* its area */
	DAT_UINT64 posted, completed;
};

static void prepare(struct side *s, DAT_RMR_TRIPLET *mine)
{
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_CONTEXT remote;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR address;
	DAT_VLEN length;

	memset(s, 0, sizeof *s);
	open_ia(IA_NAME, &s->ia, &s->async);
	OK(dat_pz_create(s->ia, &s->pz));
	OK(dat_evd_create(s->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &s->cr_evd));
	OK(dat_evd_create(s->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &s->conn));
	OK(dat_evd_create(s->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &s->recv));
	OK(dat_evd_create(s->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &s->request));
	s->area = calloc(1, sizeof *s->area);
	EXPECT(s->area != NULL);
	region.for_va = s->area;
	OK(dat_lmr_create(s->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof *s->area, s->pz, DAT_MEM_PRIV_ALL_FLAG, &lmr,
			  &s->local, &remote, &length, &address));
	mine->rmr_context = remote;
	mine->pad = 0;
	mine->target_address = address;
	mine->segment_length = sizeof *s->area;
	OK(dat_ep_create(s->ia, s->pz, s->recv, s->request, s->conn, NULL, &s->ep));
}

static void reap(struct side *s)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(s->request, &event) == DAT_SUCCESS) {
		EXPECT(event.event_number == DAT_DTO_COMPLETION_EVENT);
		EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
		EXPECT(event.event_data.dto_completion_event_data.user_cookie.as_64 == ++s->completed);
	}
}

/* Offsets are those within the area, at both ends. */
static void put(struct side *s, size_t from, size_t to, DAT_VLEN length)
{
	DAT_LMR_TRIPLET near;
	DAT_RMR_TRIPLET far = s->peer;

	near.lmr_context = s->local;
	near.pad = 0;
	near.virtual_address = (DAT_VADDR)(size_t)s->area + from;
	near.segment_length = length;
	far.target_address += to;
	far.segment_length = length;
	while (s->posted - s->completed >= 8)
		reap(s);
	OK(dat_ep_post_rdma_write(s->ep, 1, &near, cookie_of(++s->posted), &far, DAT_COMPLETION_DEFAULT_FLAG));
}

static char byte_of(size_t length, DAT_UINT64 turn, size_t i)
{
	return (char)(i * 131 + i / 509 + length + turn * 17);
}

static void say(struct side *s, size_t length, DAT_UINT64 turn)
{
	size_t i;

	/* what was posted before may still be on its way */
	while (s->completed < s->posted)
		reap(s);
	for (i = 0; i < length; i++)
		s->area->out[i] = byte_of(length, turn, i);
	s->area->flag_out = turn;
	put(s, offsetof(struct area, out), offsetof(struct area, in), length);
	put(s, offsetof(struct area, flag_out), offsetof(struct area, flag), 8);
}

static void hear(struct side *s, size_t length, DAT_UINT64 turn)
{
	size_t i;

	while (__atomic_load_n(&s->area->flag, __ATOMIC_ACQUIRE) != turn)
		reap(s);	/* the alarm of main() ends the process */
	for (i = 0; i < length; i++)
		EXPECT(s->area->in[i] == byte_of(length, turn, i));
}

static void play(struct side *s, int first)
{
	size_t length = 0;
	DAT_UINT64 turn = 0;
	int round;

	for (;;) {
		for (round = 0; round < ROUNDS; round++) {
			if (first)
				say(s, length, ++turn);
			hear(s, length, first ? turn : ++turn);
			if (!first)
				say(s, length, turn);
		}
		if (length == PAYLOAD_MAX)
			break;
		length = length == 0 ? 1 : 2 * length;
	}
	while (s->completed < s->posted)
		reap(s);
}

static void leave(struct side *s, int first)
{
	DAT_EVENT event;

	if (first)
		OK(dat_ep_disconnect(s->ep, DAT_CLOSE_GRACEFUL_FLAG));
	wait_event(s->conn, DAT_CONNECTION_EVENT_DISCONNECTED, &event);
	OK(dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG));
	free(s->area);
}

static void accept_and_play(int to)
{
	struct side s;
	DAT_RMR_TRIPLET mine;
	DAT_CONN_QUAL qual;
	DAT_CR_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	prepare(&s, &mine);
	OK(dat_psp_create_any(s.ia, &qual, s.cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	EXPECT(write(to, &qual, sizeof qual) == sizeof qual);
	wait_event(s.cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	cr = event.event_data.cr_arrival_event_data.cr_handle;
	OK(dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	EXPECT(param.private_data_size >= (DAT_COUNT)sizeof s.peer);
	memcpy(&s.peer, param.private_data, sizeof s.peer);
	OK(dat_cr_accept(cr, s.ep, sizeof mine, &mine));
	wait_event(s.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	play(&s, 0);
	leave(&s, 0);
}

static void connect_and_play(int from)
{
	struct side s;
	DAT_RMR_TRIPLET mine;
	DAT_CONN_QUAL qual;
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	prepare(&s, &mine);
	EXPECT(read(from, &qual, sizeof qual) == sizeof qual);
	OK(dat_ia_query(s.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	OK(dat_ep_connect(s.ep, attr.ia_address_ptr, qual, WAIT_MAX, sizeof mine, &mine, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	wait_event(s.conn, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
	EXPECT(event.event_data.connect_event_data.private_data_size >= (DAT_COUNT)sizeof s.peer);
	memcpy(&s.peer, event.event_data.connect_event_data.private_data, sizeof s.peer);
	play(&s, 1);
	leave(&s, 1);
}

int main(void)
{
	int ends[2], status;
	pid_t child;

	use_soft_device();
	EXPECT(pipe(ends) == 0);
	child = fork();
	EXPECT(child >= 0);
	alarm(300);
	if (child == 0) {
		close(ends[0]);
		accept_and_play(ends[1]);
		return 0;
	}
	close(ends[1]);
	connect_and_play(ends[0]);
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
	return 0;
}
