/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.h - how two devices on one host come to share memory, and how one wakes the other.
 *
 * The acceptor makes an offer and sends its token in the MPA Reply; the initiator takes it. Each
 * gets the same struct shm_segment. If any step fails, the data stays on TCP. */
#ifndef SOFT_ATTACH_H
#define SOFT_ATTACH_H
#include "dapl/soft/soft.h"

/* AGAIN: the peer process has no room for another caller now. NO: errno says why; 0: memory is not
 * wanted, or not offered. */
enum soft_attach { SOFT_ATTACH_DONE, SOFT_ATTACH_WAIT, SOFT_ATTACH_AGAIN, SOFT_ATTACH_NO };

void soft_shm_close(struct dapl_device *dev);
void soft_shm_fork_prepare(void);
void soft_shm_fork_done(void);
void soft_shm_fork_child(void);
/* RLIMIT_FSIZE in bytes. The kernel answers a file that would get longer with a deadly signal. */
uint64_t soft_file_limit(void);
/* A descriptor of a nameless file of `size` bytes with these seals (F_SEAL_*), or -1 and errno. */
int soft_sealed_file(uint64_t size, int seals);

/* The acceptor offers memory to the initiator that knows the token. NULL: errno says why; 0:
 * memory is not wanted. Progress lock held. */
struct attach_offer *attach_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				  uint8_t token[16]);
/* Ends the offer. Returns a reference to the segment that was made for it; NULL: it was not
 * taken. */
struct shm_segment *attach_offer_end(struct attach_offer *offer);
/* errno if process *peer took the offer and got no memory, else 0. `offer` may be NULL. */
int attach_offer_error(const struct attach_offer *offer, uint64_t *peer);
/* The initiator takes the offer. DONE: *segment is a reference. WAIT: call soft_attach_go_on() when
 * *fd is readable. *acceptor, if not NULL, is the connection of this device that made the offer.
 * Progress lock held. */
enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct shm_segment **segment, struct dapl_conn **acceptor);
enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct shm_segment **segment);
void shm_segment_put(struct shm_segment *segment);

/* Signals the wake-up eventfd of a peer whose sleep count was read as `sleep_count`: at most once
 * for each value. */
void shm_notify_wake(struct shm_process *process, uint32_t sleep_count);
/* Signals this device's own wake-up eventfd: the service thread looks at the rings once more. */
void shm_notify_self(struct shm_process *process);
/* Clears this device's own wake-up eventfd. Progress lock held. */
void shm_notify_clear(struct dapl_device *dev);

static inline bool shm_is_asleep(const struct shm_process *process)
{
	return __atomic_load_n(process->sleep_count, __ATOMIC_RELAXED) & 1;
}

/* qp->lock held. True: the peer's service thread drives progress, and waking it costs more than to
 * access the peer's memory. The sleep count alone does not tell: a peer that polls looks asleep as
 * long as nothing comes through its rings. When something comes, its service thread hands over to
 * the polling thread. */
static inline bool shm_peer_is_idle(struct shm_conn *shm)
{
	return unlikely(shm_is_asleep(shm->peer)) && shm_peer_does_not_poll(shm);
}

/* Makes sure that the peer sees what was stored for it before: it polls, or it is woken. */
static inline void shm_notify(const struct shm_conn *shm)
{
	struct shm_process *process = shm->peer;
	uint32_t sleep_count, pending_nr;

	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	sleep_count = __atomic_load_n(process->sleep_count, __ATOMIC_RELAXED);
	pending_nr = READ_ONCE(shm->grant->pending_nr);
	if (unlikely(pending_nr))
		pending_mark(process->pending, pending_nr);
	if (unlikely(sleep_count & 1))
		shm_notify_wake(process, sleep_count);
}

static inline struct ring_grant *shm_own_grant(const struct shm_conn *shm)
{
	return &shm->segment->memory->grant[!shm->conn->passive];
}

/* What this side, and what the peer says of its writes to the other's memory (revoke.h). */
static inline struct ring_writer *shm_own_writer(const struct dapl_conn *conn)
{
	return &conn->shm->segment->memory->writer[conn->passive];
}

static inline const struct ring_writer *shm_peer_writer(const struct dapl_conn *conn)
{
	return &conn->shm->segment->memory->writer[!conn->passive];
}

#endif
