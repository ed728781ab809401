/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_recv_repost.c - receives that are posted again to another QP. */
#include "dapl/core/ep/recv_repost.h"
#include "test/unit/core/core_device.h"
#include "test/unit/unit.h"

enum { POSTS = 4, SEGMENTS = 3 };

static struct dapl_ia *ia;
static struct dapl_ep *ep;
static struct ibv_recv_wr posted[POSTS];	/* what the device got */
static uint64_t first_address[POSTS];
static int posts, fails_at;			/* the index of the post that the device refuses */

static int post_recv(struct ibv_recv_wr *wr)
{
	if (posts == fails_at)
		return ENOMEM;
	posted[posts] = *wr;
	first_address[posts++] = wr->num_sge ? wr->sg_list[0].addr : 0;
	return 0;
}

UNIT_FIXTURE(set_up)
{
	core_device = (struct core_device){ .post_recv = post_recv };
	ia = core_ia_new();
	ep = core_ep_new(ia, NULL, POSTS);
	posts = 0;
	fails_at = -1;
}

static struct dapl_saved_recv *detach(void)
{
	struct dapl_saved_recv *list;

	dapl_post_lock(&ep->rq.lock);
	list = dapl_saved_recv_detach(ep);
	dapl_post_unlock(&ep->rq.lock);
	return list;
}

static int repost(unsigned max_sge)
{
	int err;

	dapl_post_lock(&ep->rq.lock);
	err = dapl_saved_recv_repost(ep, core_qp(), max_sge);
	dapl_post_unlock(&ep->rq.lock);
	return err;
}

UNIT_FIXTURE(tear_down)
{
	dapl_saved_recv_free(detach());
	core_ep_free(ep);
	core_ia_free(ia);
}

/* Posts a receive of n segments, which is recorded. The caller's segments are overwritten afterwards. */
static struct dapl_dto *post_saved(uint64_t address, int n)
{
	struct ibv_sge segments[SEGMENTS];
	struct ibv_recv_wr wr = { .sg_list = segments, .num_sge = n };
	struct dapl_saved_recv *saved;

	for (int i = 0; i < n; i++)
		segments[i] = (struct ibv_sge){ .addr = address + (uint64_t)i, .length = 8, .lkey = 7 };
	saved = dapl_saved_recv_new(&wr);
	assert_non_null(saved);
	dapl_post_lock(&ep->rq.lock);
	dapl_saved_recv_add(ep, saved);
	dapl_post_unlock(&ep->rq.lock);
	for (int i = 0; i < n; i++)
		segments[i].addr = 0;
	return core_post(ep, DAT_DTO_RECEIVE, 0, address);
}

UNIT_CASE(receives_are_posted_in_their_order_and_places)
{
	struct dapl_dto *records[3];

	records[0] = post_saved(0x1000, 1);
	records[1] = post_saved(0x2000, 0);
	records[2] = post_saved(0x3000, SEGMENTS);
	assert_int_equal(repost(SEGMENTS), 0);
	assert_int_equal(posts, 3);
	for (int i = 0; i < 3; i++)
		assert_ptr_equal((void *)(uintptr_t)posted[i].wr_id, records[i]);
	assert_int_equal(first_address[0], 0x1000);
	assert_int_equal(posted[1].num_sge, 0);
	assert_int_equal(first_address[2], 0x3000);
	assert_int_equal(posted[2].num_sge, SEGMENTS);
}

/* The ring of records begins anew after its last place. */
UNIT_CASE(places_wrap_with_the_ring)
{
	struct dapl_dto *record;

	ep->rq.head = ep->rq.tail = UINT32_MAX;
	post_saved(0x1000, 1);
	record = post_saved(0x2000, 1);
	assert_int_equal(repost(SEGMENTS), 0);
	assert_int_equal(posts, 2);
	assert_ptr_equal((void *)(uintptr_t)posted[1].wr_id, record);
}

UNIT_CASE(new_qp_may_have_fewer_segments)
{
	post_saved(0x1000, 2);
	assert_int_equal(repost(1), E2BIG);
	assert_int_equal(posts, 0);
	assert_int_equal(repost(2), 0);
}

UNIT_CASE(receive_that_was_not_kept_is_an_error)
{
	post_saved(0x1000, 1);
	core_post(ep, DAT_DTO_RECEIVE, 0, 2);
	assert_int_equal(repost(1), ENODATA);
}

UNIT_CASE(refused_post_ends_it)
{
	for (int i = 0; i < 3; i++)
		post_saved(0x1000, 1);
	fails_at = 1;
	assert_int_equal(repost(1), ENOMEM);
	assert_int_equal(posts, 1);
}

UNIT_CASE(detached_list_is_the_callers)
{
	post_saved(0x1000, 1);
	post_saved(0x2000, 1);
	dapl_saved_recv_free(detach());
	assert_null(ep->saved_recvs);
	assert_null(detach());
	ep->rq.tail = ep->rq.head;
	post_saved(0x3000, 1);		/* a list can begin again */
	assert_int_equal(repost(1), 0);
	assert_int_equal(first_address[0], 0x3000);
}

UNIT_MAIN(NULL, NULL)
