/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* offers.c - the table of offers to share memory (offers.h). */
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/random.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_segment.h"
#include <stdlib.h>

struct attach_offer {
	uint64_t key;
	struct dapl_conn *conn;		/* the connection that made the offer */
	struct shm_process *process;
	struct shm_segment *segment;	/* made when the offer was taken */
	bool taken;
	int err;			/* errno: it was taken, and there is no segment */
	uint64_t peer;			/* the process that took it */
	LIST_ENTRY(attach_offer) link;
};

/* Guards the list and its offers. Taken before process_lock (process.c). */
static struct dapl_mutex offers_lock = DAPL_MUTEX_INIT(RANK_SOFT_OFFERS);
static LIST_HEAD(, attach_offer) offers = LIST_HEAD_INITIALIZER(offers);

struct attach_offer *offer_new(struct dapl_device *dev, struct dapl_conn *conn, uint64_t *key)
{
	struct attach_offer *offer = calloc(1, sizeof *offer);

	if (!offer)
		return NULL;
	offer->key = *key = soft_random_64() | 1;
	offer->conn = conn;
	offer->process = dev->shm.process;
	shm_process_get(offer->process);
	dapl_mutex_lock(&offers_lock);
	LIST_INSERT_HEAD(&offers, offer, link);
	dapl_mutex_unlock(&offers_lock);
	return offer;
}

struct shm_segment *attach_offer_end(struct attach_offer *offer)
{
	struct shm_segment *segment;

	if (!offer)
		return NULL;
	dapl_mutex_lock(&offers_lock);
	LIST_REMOVE(offer, link);
	segment = offer->segment;
	dapl_mutex_unlock(&offers_lock);
	shm_process_put(offer->process);
	free(offer);
	return segment;
}

int attach_offer_error(const struct attach_offer *offer, uint64_t *peer)
{
	int err;

	if (!offer)
		return 0;
	dapl_mutex_lock(&offers_lock);
	*peer = offer->peer;
	err = offer->err;
	dapl_mutex_unlock(&offers_lock);
	return err;
}

/* offers_lock held. */
static struct attach_offer *find_offer(uint64_t key)
{
	struct attach_offer *offer;

	assert_held(&offers_lock);
	LIST_FOREACH(offer, &offers, link)
		if (offer->key == key)
			return offer;
	return NULL;
}

struct shm_process *offer_take(uint64_t key, const struct dapl_device *dev,
			       struct dapl_conn **conn)
{
	struct shm_process *process = NULL;
	struct attach_offer *offer;

	dapl_mutex_lock(&offers_lock);
	offer = find_offer(key);
	if (offer && !offer->taken) {
		offer->taken = true;
		process = offer->process;
		shm_process_get(process);
		if (dev && dev->shm.process == process)
			*conn = offer->conn;
	}
	dapl_mutex_unlock(&offers_lock);
	return process;
}

void offer_give(uint64_t key, struct shm_segment *segment)
{
	struct attach_offer *offer;

	dapl_mutex_lock(&offers_lock);
	offer = find_offer(key);
	if (offer)
		offer->segment = shm_segment_get(segment);
	dapl_mutex_unlock(&offers_lock);
}

void offer_refuse(uint64_t key, uint64_t peer, int err)
{
	struct attach_offer *offer;

	dapl_mutex_lock(&offers_lock);
	offer = find_offer(key);
	if (offer) {
		offer->peer = peer;
		offer->err = err;
	}
	dapl_mutex_unlock(&offers_lock);
}

void offers_fork_prepare(void)
{
	dapl_mutex_lock(&offers_lock);
}

void offers_fork_done(void)
{
	dapl_mutex_unlock(&offers_lock);
}

void offers_fork_child(void)
{
	LIST_INIT(&offers);
}
