/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ring_side.c - a connection in shared memory whose peer is a fuzzer (ring_side.h). */
#include "test/fuzz/ring_side.h"
#include "dapl/soft/shm/shm_segment.h"
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/progress/progress.h"
#include "dapl/soft/progress/owner.h"
#include "dapl/soft/progress/owner_state.h"
#include <sys/mman.h>

enum { PASSIVE = 1, WITH_SRQ = 2, LAZY = 4, ROOMY = 8 };	/* of the first byte of an input */
enum { HEAD = 14, GUARD = 65536, TIMES = 16, UNPOLLED_MAX = 800 };

struct shm_segment *ring_segment;

/* --- the memory ---------------------------------------------------------------------- */

/* Processes are real ones, made as two connections of a process get them. The memory has
 * nothing around it: an access beyond it ends the process. */
static void make_segment(void)
{
	struct dapl_device *dev = stream_device.dev;
	size_t size = sizeof(struct ring_memory);
	struct attach_offer *offer;
	struct dapl_conn *conn;
	uint8_t token[16];
	char *at;
	int fd;

	dev->want_shm = true;
	soft_progress_lock(dev);
	offer = attach_offer_new(dev, NULL, token);
	side_demand(offer && soft_attach_begin(dev, token, &fd, &ring_segment, &conn) ==
		    SOFT_ATTACH_DONE, "no segment");
	shm_segment_put(attach_offer_end(offer));
	soft_progress_unlock(dev);
	munmap(ring_segment->memory, size);
	at = mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	side_demand(at != MAP_FAILED && !mprotect(at + GUARD, size, PROT_READ | PROT_WRITE),
		    "memory");
	ring_segment->memory = (struct ring_memory *)(at + GUARD);
}

static void set_owner(struct dapl_device *dev, enum progress_owner owner)
{
	dapl_mutex_lock(&dev->progress.owner_lock);
	if (dev->progress.owner != owner)
		soft_owner_set(dev, owner, "fuzzer");
	dapl_mutex_unlock(&dev->progress.owner_lock);
}

static void open_run(struct ring_run *r, uint8_t how)
{
	struct stream_options options = { .peer_is_dapl = true, .srq = how & WITH_SRQ };
	struct dapl_device *dev = stream_device.dev;
	struct dapl_conn *conn;

	memset(r, 0, sizeof *r);
	r->lazy = how & LAZY;
	stream_open(&r->s, &options);
	conn = r->s.conn;
	conn->passive = how & PASSIVE;
	conn->stream.mulpdu = (how & ROOMY ? RING_CHUNK : 1024) + WIRE_UNTAGGED;
	side_demand(!madvise(ring_segment->memory, sizeof *ring_segment->memory, MADV_DONTNEED), "madvise");
	__atomic_add_fetch(&ring_segment->refs, 1, __ATOMIC_RELAXED);
	r->shm = conn->shm = shm_conn_new(conn, ring_segment);
	side_demand(r->shm, "memory");
	soft_progress_lock(dev);
	dev->progress.turns = dev->progress.idle_polls = 0;
	set_owner(dev, OWNER_SERVICE_THREAD);
	side_demand(soft_progress_add(conn), "epoll");
	soft_progress_unlock(dev);
}

/* --- this side looks ------------------------------------------------------------------- */

void ring_serve(struct ring_run *r, uint8_t how)
{
	struct dapl_device *dev = stream_device.dev;
	struct ibv_wc wc[8];

	switch (how % 4) {
	case 0:
		soft_progress_poll((const struct soft_cq *)stream_device.cq);
		break;
	case 1:		/* the service thread, once no thread polls */
		soft_owner_sleep(dev);
		dev->progress.data_watch.ready(&dev->progress.data_watch);
		break;
	case 2:		/* a thread polls: acknowledgements may wait */
		set_owner(dev, OWNER_POLLING_THREADS);
		soft_progress_poll((const struct soft_cq *)stream_device.cq);
		break;
	case 3:
		stream_poll(&r->s, wc, 1 + how / 4 % 8);
		break;
	}
}

/* --- the peer -------------------------------------------------------------------------- */

unsigned ring_theirs(const struct ring_run *r)
{
	return !r->s.conn->passive;	/* index of what the peer produces */
}

/* What a correct peer has taken of ours by now, and less or more of it. */
static void acknowledge(const struct ring_run *r, unsigned how, uint32_t *delivered,
			uint32_t *consumed)
{
	const struct dapl_conn *conn = r->s.conn;

	*delivered = conn->stream.peer_delivered;
	*consumed = conn->stream.peer_consumed;
	if (how) {
		*delivered = conn->stream.tx.cursor.seq - (how == 2);
		*consumed = conn->stream.tx.cursor.charged + (how == 3);
	}
}

static uint32_t bulk_place(struct ring_run *r, uint32_t length)
{
	uint32_t size = (length + RING_LINE - 1) & ~(RING_LINE - 1u), at = r->bulk;

	if (at + size > RING_BULK)
		at = 0;
	r->bulk = at + size;
	return at;
}

/* Payload, as often as it was asked for and fits. Returns its length. */
static uint32_t fill(uint8_t *to, const uint8_t *from, uint32_t length, unsigned times)
{
	uint32_t n = 0;

	for (; times && n + length <= RING_CHUNK; times--, n += length)
		memcpy(to + n, from, length);
	return n;
}

/* how: 1 last, 2 names our STags, 4 much payload, 8 the payload begins with a wrong length
 * and place, 16 and 32 which acknowledgement rides along, 64 rendezvous: the source is valid, or
 * NULL if 8 is set, too; 128: and cancelled. */
static void peer_put(struct ring_run *r, const uint8_t *p, uint32_t length)
{
	static uint8_t payload[RING_CHUNK], rndv[2 * RING_CHUNK];
	struct ring_slot *slot = &ring_segment->memory->slot[ring_theirs(r)][r->tail % RING_SLOTS];
	uint8_t *bulk = ring_segment->memory->bulk[ring_theirs(r)], how, stag[4];

	if (length < HEAD)
		return;
	how = p[1];
	memcpy(stag, p + 2, 4);
	if (how & 2)
		side_name(&r->s, stag);
	slot->op = p[0];
	slot->flags = (how & 1 ? RING_IS_LAST : 0) | (how & 64 ? RING_IS_RNDV : 0);
	slot->word = wire_get32(stag);
	slot->to = wire_get64(p + 6);
	acknowledge(r, how >> 4 & 3, &slot->delivered, &slot->consumed);
	length = fill(payload, p + HEAD, length - HEAD, how & 4 ? TIMES : 1);
	if (how & 2)
		side_name_body(&r->s, slot->op, payload, length);
	slot->length = length;
	if (how & 64) {
		ring_segment->memory->grant[!ring_theirs(r)].rndv_enabled = !(how & 128);
		slot->length = how & 8 ? wire_get32(stag) : RING_CHUNK + 1 + length;
		slot->address = (uintptr_t)(how & 8 ? NULL : rndv);
	} else if (how & 8 && length >= 8) {
		slot->length = wire_get32(payload);
		slot->at = wire_get32(payload + 4);
	} else if (length > RING_INLINE) {
		slot->at = bulk_place(r, length);
		memcpy(bulk + slot->at, payload, length);
	} else {
		memcpy(slot->data, payload, length);
	}
	slot->seq = ++r->tail;
}

static void peer_ack(struct ring_run *r, const uint8_t *p, uint32_t length)
{
	struct ring_ack *ack = &ring_segment->memory->ack[!ring_theirs(r)];

	if (length < 2)
		return;
	acknowledge(r, p[0] & 3, &ack->delivered, &ack->consumed);
	ack->head = p[0] & 4 ? r->shm->tx.tail : r->shm->tx.head;
	ack->head += (int8_t)p[1];
	ack->fallback_request += p[0] >> 3 & 1;
	ack->fallback_done += p[0] >> 4 & 1;
	if (p[0] & 32)			/* the bit that marks its ring as pending */
		ring_segment->memory->grant[!ring_theirs(r)].pending_nr = (int8_t)p[1] * 64;
	ack->count++;
}

static void peer_store(const uint8_t *p, uint32_t length)
{
	struct ring_memory *m = ring_segment->memory;
	const struct {
		void *at;
		uint32_t size;
	} areas[] = {
		{ m->ack, sizeof m->ack }, { m->slot, sizeof m->slot }, { m->bulk, sizeof m->bulk },
		{ m->fallback, sizeof m->fallback },
	}, *area;
	uint32_t offset;

	if (length < 4)
		return;
	area = &areas[p[0] % 4];
	offset = (p[0] / 4u << 16 | wire_get16(p + 1)) * 4 % area->size;
	length -= 3;
	if (length > area->size - offset)
		length = area->size - offset;
	memcpy((char *)area->at + offset, p + 3, length);
}

void ring_peer_act(struct ring_run *r, const struct ring_record *record)
{
	if (record->kind == PUT)
		peer_put(r, record->bytes, record->length);
	else if (record->kind == ACK)
		peer_ack(r, record->bytes, record->length);
	else if (record->kind == STORE)
		peer_store(record->bytes, record->length);
}

/* --- what must hold ---------------------------------------------------------------------- */

void ring_check_room(const struct ring_run *r)
{
	const struct shm_conn *shm = r->shm;

	side_demand(shm->rx.head - shm->rx.acked_head <= RING_SLOTS, "slots were taken and not acknowledged");
	side_demand(r->s.conn->stream.unexpected_bytes <= SOFT_WINDOW + SOFT_CHARGE + RING_CHUNK,
		    "too much is kept for later");
}

/* An overrun of the completion queue would lose some. */
void ring_make_room(struct ring_run *r)
{
	struct ibv_wc wc[16];

	while (r->s.posted > UNPOLLED_MAX && stream_poll(&r->s, wc, 16))
		;
}

/* --- inputs ------------------------------------------------------------------------------ */

enum { INPUT_HEAD = 4, RECORD_HEAD = 2 };	/* bytes */

bool ring_begin(struct ring_run *r, struct ring_input *input)
{
	const uint8_t *head = input->at;
	uint32_t length;

	if (input->left < INPUT_HEAD)
		return false;
	length = head[1] & 64 ? STREAM_LOCAL : head[1] & 32 ? 64 : 4096;
	open_run(r, head[0]);
	for (int i = 0; i < (head[1] & 31); i++)
		stream_receive(&r->s, i, 0, length);	/* a rendezvous needs the longest */
	for (int i = 0; i < 8; i++)
		if (head[2] >> i & 1)
			side_act(&r->s, (const uint8_t[]){ i, 64 }, 2);
	ring_serve(r, head[3]);
	input->at += INPUT_HEAD;
	input->left -= INPUT_HEAD;
	return true;
}

bool ring_next(struct ring_input *input, struct ring_record *record)
{
	uint32_t length;

	if (input->left < RECORD_HEAD)
		return false;
	length = wire_get16(input->at) & 0xfff;
	*record = (struct ring_record){ .kind = input->at[0] >> 5, .flags = input->at[0] & 31,
					.bytes = input->at + RECORD_HEAD, .length = length };
	input->left -= RECORD_HEAD;
	if (record->length > input->left)
		record->length = input->left;
	input->at = record->bytes + record->length;
	input->left -= record->length;
	return true;
}

void ring_end(struct ring_run *r)
{
	static unsigned inputs;

	stream_end(&r->s);
	side_check(&r->s);
	stream_close(&r->s);
	if (++inputs % 64 == 0)
		dapl_service_flush();	/* frees what has ended; memory would pile up */
}

void ring_side_open(void)
{
	side_open();
	dapl_watch_stop(&stream_device.dev->progress.data_watch);	/* only this thread serves */
	make_segment();
}
