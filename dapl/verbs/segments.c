/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* segments.c - the regions of a context by their local keys, and the check of a request's segments (segments.h).
 *
 * Raw Ethernet queue pairs are not checked: their completions tell. Neither is inline data, whose keys no device
 * reads. */
#include "segments.h"
#include "common/lock.h"
#include "common/log.h"
#include "hw.h"
#include "object_table.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { BUCKETS = 1024 };	/* programs register some hundred regions */

struct region {
	struct region *next;
	const struct ibv_mr *mr;
	uint64_t base;			/* the address of its first byte in segments */
};

struct checked {
	struct object_entry entry;	/* first */
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);	/* below */
	struct dapl_mutex lock;		/* guards regions */
	struct region *regions[BUCKETS];
};

/* Drivers put the index of a region into the upper bits of its key, and change the lower ones. */
static struct region **bucket_of(struct checked *c, uint32_t lkey)
{
	return &c->regions[(lkey ^ lkey >> 8) % BUCKETS];
}

/* c->lock held. Returns NULL if no region of the PD has the key. */
static const struct region *find_region(struct checked *c, const struct ibv_pd *pd, uint32_t lkey)
{
	struct region *r;

	for (r = *bucket_of(c, lkey); r && (r->mr->lkey != lkey || r->mr->pd != pd); r = r->next)
		;
	return r;
}

static int report_unknown(const struct ibv_qp *qp, int number, const struct ibv_sge *sge)
{
	log_report(REPORT_BAD_SEGMENT, LOG_FIELDS(.err = SEGMENT_NOT_REGISTERED),
		   "%s QP %u: a request is refused: segment %d (%" PRIu32 " bytes at 0x%" PRIx64 ") names LMR context "
		   "0x%" PRIx32 ", which no LMR of the endpoint's PZ has", ibv_get_device_name(qp->context->device),
		   qp->qp_num, number, sge->length, sge->addr, sge->lkey);
	return SEGMENT_NOT_REGISTERED;
}

static int report_outside(const struct ibv_qp *qp, int number, const struct ibv_sge *sge, uint64_t base,
			  uint64_t length)
{
	log_report(REPORT_BAD_SEGMENT, LOG_FIELDS(.err = SEGMENT_OUTSIDE),
		   "%s QP %u: a request is refused: segment %d (%" PRIu32 " bytes at 0x%" PRIx64 ") is not within "
		   "the LMR of context 0x%" PRIx32 " (%" PRIu64 " bytes at 0x%" PRIx64 ")",
		   ibv_get_device_name(qp->context->device), qp->qp_num, number, sge->length, sge->addr, sge->lkey,
		   length, base);
	return SEGMENT_OUTSIDE;
}

static int check_segment(struct checked *c, const struct ibv_qp *qp, int number, const struct ibv_sge *sge)
{
	const struct region *r;
	uint64_t base = 0, length = 0;

	dapl_mutex_lock(&c->lock);
	r = find_region(c, qp->pd, sge->lkey);
	if (r) {
		base = r->base;
		length = r->mr->length;
	}
	dapl_mutex_unlock(&c->lock);
	if (!r)
		return report_unknown(qp, number, sge);
	if (sge->addr < base || sge->length > length || sge->addr - base > length - sge->length)
		return report_outside(qp, number, sge, base, length);
	return 0;
}

/* Devices ignore the key of an empty segment. */
static int check_request(struct checked *c, const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	int err = 0;

	if (wr->send_flags & IBV_SEND_INLINE)
		return 0;
	for (int i = 0; i < wr->num_sge && !err; i++)
		if (wr->sg_list[i].length)
			err = check_segment(c, qp, i, &wr->sg_list[i]);
	return err;
}

int hw_segments_check(const struct ibv_qp *qp, const struct ibv_send_wr *wr)
{
	struct checked *c = (struct checked *)object_table_find(qp->context);

	return c ? check_request(c, qp, wr) : 0;
}

/* Posts the requests before the first faulty one, as a device does. */
static int checked_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct checked *c = (struct checked *)object_table_find(qp->context);
	struct ibv_send_wr *faulty = wr, *last = NULL;
	int err = 0, refused;

	if (qp->qp_type == IBV_QPT_RAW_PACKET)
		return c->post_send(qp, wr, bad);
	for (; faulty && !(refused = check_request(c, qp, faulty)); faulty = faulty->next)
		last = faulty;
	if (!faulty)
		return c->post_send(qp, wr, bad);
	if (last) {
		last->next = NULL;
		err = c->post_send(qp, wr, bad);
		last->next = faulty;
	}
	if (err)
		return err;
	*bad = faulty;
	return refused;
}

int hw_segments_adopt(struct ibv_context *verbs)
{
	struct checked *c = calloc(1, sizeof *c);

	if (!c)
		return ENOMEM;
	c->post_send = verbs->ops.post_send;
	dapl_mutex_init(&c->lock, RANK_OBJECT_TABLE);	/* never held with the table's */
	object_table_add(&c->entry, verbs);
	verbs->ops.post_send = checked_post_send;
	return 0;
}

void hw_segments_release(struct ibv_context *verbs)
{
	struct checked *c = (struct checked *)object_table_remove(verbs);

	for (int i = 0; c && i < BUCKETS; i++)
		while (c->regions[i]) {
			struct region *r = c->regions[i];

			c->regions[i] = r->next;
			free(r);
		}
	free(c);
}

static void insert(struct checked *c, struct region *r)
{
	struct region **bucket = bucket_of(c, r->mr->lkey);

	dapl_mutex_lock(&c->lock);
	r->next = *bucket;
	*bucket = r;
	dapl_mutex_unlock(&c->lock);
}

int hw_segments_add(struct ibv_mr *mr, uint64_t base)
{
	struct checked *c;
	struct region *r;

	if (!mr)
		return hw_null_errno();
	c = (struct checked *)object_table_find(mr->context);
	if (!c)
		return 0;
	r = malloc(sizeof *r);
	if (!r) {
		ibv_dereg_mr(mr);
		return ENOMEM;
	}
	r->mr = mr;
	r->base = base;
	insert(c, r);
	return 0;
}

static struct region *take_out(struct checked *c, const struct ibv_mr *mr)
{
	struct region **at, *r;

	dapl_mutex_lock(&c->lock);
	for (at = bucket_of(c, mr->lkey); *at && (*at)->mr != mr; at = &(*at)->next)
		;
	r = *at;
	if (r)
		*at = r->next;
	dapl_mutex_unlock(&c->lock);
	return r;
}

int hw_segments_dereg(struct ibv_mr *mr)
{
	struct checked *c = (struct checked *)object_table_find(mr->context);
	struct region *r = c ? take_out(c, mr) : NULL;
	int rc = ibv_dereg_mr(mr);

	if (rc && r)
		insert(c, r);
	else
		free(r);
	return rc;
}
