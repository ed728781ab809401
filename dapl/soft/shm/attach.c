/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.c - how two devices on one host come to share memory: the acceptor's offer, and the initiator
 * that takes it. ring.h says what lies in the memory. shm_conn.c writes to the rings,
 * receive/shm_rx.c reads them.
 *
 * The acceptor's Reply holds a token: the name of the Unix sockets of its process
 * (attach_socket.h), and a key. An initiator of the same process finds the key in the table of
 * offers (offers.c). An initiator of another process connects to the socket (attach_server.c). When
 * each side has seen that the other has the same user, the initiator sends the descriptors of its
 * process, and gets those of the acceptor and of the segment (attach_message.c): sealed memfds, and the
 * wake-up eventfds. None of these has a name in a file system, so the kernel frees all of it when the
 * processes have ended. If any step fails, the data stays on TCP.
 *
 * common/lock_rank.h has the order of the locks. */
#include "dapl/soft/shm/attach.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/attach_message.h"
#include "dapl/soft/shm/attach_server.h"
#include "dapl/soft/shm/attach_socket.h"
#include "dapl/soft/shm/reach.h"
#include "dapl/soft/shm/offers.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/revoke.h"
#include "dapl/soft/shm/shm_ring.h"
#include "dapl/soft/shm/sealed_file.h"
#include "dapl/soft/shm/shm_segment.h"
#include <errno.h>
#include <unistd.h>

/* --- the acceptor ---------------------------------------------------------------------------- */

struct attach_offer *attach_offer_new(struct dapl_device *dev, struct dapl_conn *conn,
				      uint8_t token[16])
{
	struct attach_offer *offer;
	uint64_t name, key;

	errno = 0;
	if (!dev->want_shm || !shm_process_own(dev) || !attach_server_use(dev, &name))
		return NULL;
	offer = offer_new(dev, conn, &key);
	if (!offer)
		return NULL;
	memcpy(token, &name, 8);
	memcpy(token + 8, &key, 8);
	return offer;
}

/* --- the initiator ----------------------------------------------------------------------------- */

/* The acceptor is in this process: both get the same segment. NULL and errno: no memory (ENOMEM), or
 * the offer has ended (ENODATA, as from another process). */
static struct shm_segment *take_here(struct dapl_device *dev, uint64_t key, struct dapl_conn **conn)
{
	struct shm_process *acceptor = offer_take(key, dev, conn);
	struct shm_segment *segment;

	errno = acceptor ? ENOMEM : ENODATA;
	if (!acceptor)
		return NULL;
	shm_process_get(dev->shm.process);
	segment = shm_segment_new(-1, dev->shm.process, acceptor);
	if (segment)
		offer_give(key, segment);
	return segment;
}

/* A connected socket with the request sent, or -1 and errno. */
static int request_memory(struct dapl_device *dev, uint64_t name, uint64_t key)
{
	struct attach_request request = { .key = key, .process = dev->shm.process->id };
	int fd = attach_socket_connect(name), err;

	if (fd < 0)
		return -1;
	if (!attach_send_request(fd, &request, dev->shm.process))
		return fd;
	err = errno;
	close(fd);
	errno = err;
	return -1;
}

enum soft_attach soft_attach_begin(struct dapl_device *dev, const uint8_t token[16], int *fd,
				   struct shm_segment **segment, struct dapl_conn **acceptor)
{
	uint64_t name, key;

	*acceptor = NULL;
	memcpy(&name, token, 8);
	memcpy(&key, token + 8, 8);
	errno = 0;
	if (!key || !dev->want_shm || !shm_process_own(dev))
		return SOFT_ATTACH_NO;
	if (name && name == attach_server_name()) {
		*segment = take_here(dev, key, acceptor);
		return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
	}
	*fd = request_memory(dev, name, key);
	if (*fd < 0 && errno == EAGAIN)
		return SOFT_ATTACH_AGAIN;
	return *fd >= 0 ? SOFT_ATTACH_WAIT : SOFT_ATTACH_NO;
}

enum soft_attach soft_attach_go_on(struct dapl_device *dev, int fd,
				   struct shm_segment **segment)
{
	struct shm_process *acceptor;
	struct attach_reply reply;
	int fds[ATTACH_REPLY_FDS], got = attach_receive_reply(fd, &reply, fds);

	if (!got)
		return SOFT_ATTACH_WAIT;
	if (got < 0)
		return SOFT_ATTACH_NO;
	errno = EPROTO;
	*segment = NULL;
	acceptor = shm_process_of_peer(reply.process, fds + 1);
	if (acceptor && sealed_file_check(fds[0], sizeof(struct ring_memory))) {
		shm_process_get(dev->shm.process);
		*segment = shm_segment_new(fds[0], dev->shm.process, acceptor);
	} else {
		shm_process_put(acceptor);
	}
	close(fds[0]);
	return *segment ? SOFT_ATTACH_DONE : SOFT_ATTACH_NO;
}

/* --- the device closes, the process forks ------------------------------------------------------ */

void soft_shm_close(struct dapl_device *dev)
{
	revoke_close(dev);
	attach_server_leave(dev);
	shm_segment_drop_spares();
	shm_process_put(dev->shm.process);
	dev->shm.process = NULL;
}

void soft_shm_fork_prepare(void)
{
	attach_server_fork_prepare();
	offers_fork_prepare();
	shm_process_fork_prepare();
	shm_segment_fork_prepare();
}

void soft_shm_fork_done(void)
{
	shm_segment_fork_done();
	shm_process_fork_done();
	offers_fork_done();
	attach_server_fork_done();
}

void soft_shm_fork_child(void)
{
	shm_process_fork_child();
	attach_server_fork_child();
	shm_segment_fork_child();
	offers_fork_child();
	reach_fence_fork_child();
}
