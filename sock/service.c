/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* service.c - the library's thread. The end that called connect() looks for the peer's socket by sock_diag, connects to
 * the abstract Unix socket that is named after its inode, and sends OPEN with the memory of both rings. The other end
 * answers OPENED. Both check that the peer's process has the user that the kernel tells for the peer's TCP socket, and
 * that it has the socket. The Unix connection stays, for BACK; its end tells that the peer is gone. */
#include "sock/service.h"
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <linux/magic.h>
#include <linux/netlink.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/un.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/container_of.h"
#include "sock/answers.h"
#include "sock/closer.h"
#include "sock/conn.h"
#include "sock/foreign.h"
#include "sock/full.h"
#include "sock/hosts.h"
#include "sock/move.h"
#include "sock/peer.h"
#include "sock/rate.h"
#include "sock/real.h"
#include "sock/remote.h"
#include "sock/remote_chores.h"
#include "sock/remote_open.h"
#include "sock/settings.h"
#include "sock/share.h"

enum {
	MESSAGE_MAGIC = 0x44534b31,
	LISTEN_MS = 2000,
	ANSWER_MS = 2000,
	HOST_MS = 4000,            /* datsockd asks another one for 2 s at most */
	RETRIES = 5,
	TRIES = 8,
	SERVICE_FDS = 64,
	LATER_CALLS = 256,         /* when memory lacked, a connection asks again after so many calls */
	LATER_BYTES = 16 << 20,    /* or so many bytes */
	SHARED_CALLS = 32,         /* another process had it */
	SHARED_BYTES = 1 << 20,
	IDLE_TURN_MS = 1000, /* while memory is short, idle connections are looked for so often */
	SHORT_MS = 20000,    /* memory counts as short for so long after a connection could not move */
	IDLE_BACKS = 256,    /* idle connections that go back at a time */
	FDS = 3,             /* descriptors of a message at most: memory, wake-up, proof */
	STRANGERS = 16,      /* processes that come for a TCP connection and are not its peer; then it stays on TCP */
	STRANGERS_TURN = 32, /* processes of other users that connect to the control socket; then it rests for */
	STRANGERS_MS = 100,
	PAUSE_MS = 100,         /* a connection between hosts that cannot move asks again after this, then twice */
	PAUSE_MOST_MS = 16000,  /* as long each time; far longer than a question that gets no answer */
	ACCEPTOR_PAUSE_MS = 1000, /* at most, since it waits for the other end for SOCK_SERVICE_HERE_MS then */
	STEADY_MS = 30000,      /* after a break that comes so late, pauses are short again */
};
enum message_type { OPEN = 1, OPENED, NO, BACK, BACKED, ASK_REMOTE, AT };

struct message {
	uint32_t magic;
	uint16_t type;
	uint16_t reason; /* of NO: DAT_SOCKET_WHY_* */
	uint32_t inode;  /* of the sender's TCP socket */
	uint32_t ring;   /* bytes of a ring */
	int32_t fd;      /* the sender's descriptor of it, for a peer of the same user */
};

/* Follows a message AT: where the asker opens a stream over DAT (DATSOCK_IA). */
struct remote_place {
	unsigned char key[LINK_KEY];
	uint64_t qualifier;
	struct sockaddr_storage address;
};

/* What an event of the thread's epoll set is about: the low bits of its data. */
enum tag { TAG_CONTROL, TAG_LISTENER, TAG_RESEND, TAG_MASK = 3 };

enum { ANSWERS_DATA = 4, LINK_DATA = 8, HOSTS_DATA = 12 }; /* no addresses */

struct service_counts service_counts;
static int epoll = -1, wake_fd = -1, diag = -1, answers_fd = -1;
static bool started, failed;
static bool link_watched;
static bool forking; /* atomic */
static struct conn *queue;  /* by next_queued; guarded by sock_lock */
static struct conn *closed; /* by next_closed; guarded by sock_lock */
static struct timers timers;
static struct timer idle_timer, answers_timer;
static unsigned answers_strangers; /* since the last turn of answers_timer */
static uint64_t short_until; /* monotonic ns; memory or descriptors are short */
static __thread bool is_service __attribute__((tls_model("initial-exec")));

bool service_is_this_thread(void)
{
	return is_service;
}

bool service_is_running(void)
{
	return started;
}

static void watch(int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event event = { events, { .u64 = data } };

	REAL(epoll_ctl)(epoll, op, fd, &event);
}

/* The descriptor is another one when datsockd has begun again; a closed one is not watched any more. */
static void watch_hosts(void)
{
	watch(EPOLL_CTL_ADD, hosts_fd(), EPOLLIN, HOSTS_DATA);
}

/* A thread of the program is in a call that may sleep. */
static bool is_in_kernel(struct conn *c)
{
	return __atomic_load_n(&c->kernel_in, __ATOMIC_SEQ_CST) || __atomic_load_n(&c->kernel_out, __ATOMIC_SEQ_CST);
}

static void watch_link(void)
{
	if (!link_watched && link_fd() >= 0) {
		watch(EPOLL_CTL_ADD, link_fd(), EPOLLIN, LINK_DATA);
		link_watched = true;
	}
}

static bool send_message(int fd, const struct message *m, const int *fds, int count)
{
	char control[CMSG_SPACE(FDS * sizeof(int))] = { 0 };
	struct iovec iov = { (void *)m, sizeof *m };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (count) {
		struct cmsghdr *head;

		msg.msg_control = control, msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		head = CMSG_FIRSTHDR(&msg);
		*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(count * sizeof(int)),
					  .cmsg_level = SOL_SOCKET,
					  .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(head), fds, count * sizeof(int));
	}
	return REAL(sendmsg)(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof *m;
}

static void close_two(const int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			REAL(close)(fds[i]);
}

static void no_descriptors(int fds[FDS])
{
	for (int i = 0; i < FDS; i++)
		fds[i] = -1;
}

/* Unknown descriptors: to close them may take long. */
static void drop_descriptors(int fds[FDS])
{
	for (int i = 0; i < FDS; i++)
		closer_take(fds[i]);
	no_descriptors(fds);
}

/* Returns 1 for a message, 0 when there is none now, -1 at the end or for what is no message. Such a one stays in the
 * socket, with its descriptors. */
static int receive_message(int fd, struct message *m, int fds[FDS], struct remote_place *place)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(FDS * sizeof(int))];
	struct iovec iov[2] = { { m, sizeof *m }, { place, sizeof *place } };
	struct msghdr msg = {
		/* without the padding, where the kernel would put one descriptor more */
		.msg_iov = iov, .msg_iovlen = 2, .msg_control = control, .msg_controllen = CMSG_LEN(FDS * sizeof(int))
	};
	/* What the kernel drops of a message that stays, it does not close. */
	ssize_t n = REAL(recvmsg)(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC | MSG_PEEK);
	struct cmsghdr *h = CMSG_FIRSTHDR(&msg);
	char taken[sizeof *m + sizeof *place];
	size_t wanted;

	no_descriptors(fds);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		memcpy(fds, CMSG_DATA(h), h->cmsg_len - CMSG_LEN(0));
	wanted = sizeof *m + (n >= (ssize_t)sizeof *m && m->type == AT ? sizeof *place : 0);
	if ((size_t)n == wanted && m->magic == MESSAGE_MAGIC && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) &&
	    REAL(recv)(fd, taken, sizeof taken, MSG_DONTWAIT) == n)
		return 1;
	drop_descriptors(fds);
	return -1;
}

static bool addresses(struct conn *c, struct sockaddr_storage *local, struct sockaddr_storage *peer)
{
	socklen_t n = sizeof *local, m = sizeof *peer;

	memset(local, 0, sizeof *local), memset(peer, 0, sizeof *peer);
	return !getsockname(c->fd, (struct sockaddr *)local, &n) && !getpeername(c->fd, (struct sockaddr *)peer, &m);
}

static void close_control(struct conn *c)
{
	if (c->control >= 0 && c->foreign)
		foreign_close(c->control);
	else
		own_fd_close(c->control);
	c->control = -1;
}

/* Other users may have connected to it. */
static void close_listener(struct conn *c)
{
	if (c->listener >= 0)
		REAL(shutdown)(c->listener, SHUT_RDWR);
	closer_take(c->listener);
	c->listener = -1;
}

static void close_link(struct conn *c)
{
	close_control(c);
	close_listener(c);
	if (c->offered) {
		munmap(c->offered, c->segment_size);
		c->offered = NULL;
	}
	if (c->link == LINK_REMOTE)
		remote_forget(c);
	hosts_forget(c);
	timers_cancel(&timers, &c->timer);
	c->link = LINK_NONE;
}

/* There was no memory or no descriptor for a move: idle connections make room from now on. */
static void note_shortage(void)
{
	__atomic_store_n(&short_until, clock_now_ns() + SHORT_MS * 1000000ull, __ATOMIC_RELAXED);
}

/* Traffic does not make the connection ask until a pause is over. Pauses grow. */
static void pause_asking(struct conn *c)
{
	unsigned most = c->connector ? PAUSE_MOST_MS : ACCEPTOR_PAUSE_MS;

	c->pause_ms = !c->pause_ms ? PAUSE_MS : 2 * c->pause_ms < most ? 2 * c->pause_ms : most;
	rate_ask_after(c, settings.after_calls, settings.after_bytes);
	__atomic_store_n(&c->ask_at, clock_now_ns() + c->pause_ms * 1000000ull, __ATOMIC_RELAXED);
}

/* Asks again at twice the traffic. For memory and descriptors, and after a fork, others have to do something, so it
 * goes on asking. So it does between hosts, where adapters come and go. */
static void ask_later(struct conn *c, enum dat_socket_why why)
{
	c->why = why;
	if (why == DAT_SOCKET_WHY_ADAPTER)
		c->failure = link_failure();
	c->asked = false;
	service_counts.refused[why]++;
	if (why == DAT_SOCKET_WHY_MEMORY) {
		note_shortage();
		rate_ask_after(c, LATER_CALLS, LATER_BYTES);
	} else if (why == DAT_SOCKET_WHY_FORK) {
		rate_ask_after(c, SHARED_CALLS, SHARED_BYTES);
	} else if (c->other_host) {
		c->tries++;
		pause_asking(c);
	} else {
		c->ask_calls = c->ask_calls * 2 + 8, c->ask_bytes = c->ask_bytes * 2 + 65536;
		c->tries++;
		rate_begin(c);
	}
}

/* The move does not take place. After `for_good` it is not tried again; otherwise at twice the traffic. */
static void refuse(struct conn *c, enum dat_socket_why why, bool for_good)
{
	if (c->mode == CONN_ATTACHED)
		return;
	close_link(c);
	if (c->closed || !conn_lock(c))
		return;
	ask_later(c, why);
	if (c->tries >= TRIES && !c->other_host)
		for_good = true;
	c->never |= for_good;
	if (c->mode == CONN_WATCHED && !c->resend && !c->pending_error)
		__atomic_store_n(&c->mode, CONN_PLAIN, __ATOMIC_SEQ_CST);
	conn_unlock(c);
	conn_wake(c);
	if (for_good)
		move_log_stays(c);
}

/* The link waits until that time. Without memory for the timer the connection does not move. */
static bool await(struct conn *c, int link, uint64_t ms)
{
	c->link = link;
	if (timers_set(&timers, &c->timer, clock_now_ns() + ms * 1000000))
		return true;
	refuse(c, DAT_SOCKET_WHY_MEMORY, false);
	return false;
}

static void retry(struct conn *c, enum dat_socket_why why)
{
	if (c->retries >= RETRIES) {
		refuse(c, why, false);
		return;
	}
	close_link(c);
	/* 1, 4, 16, 64, 256 ms: both ends count the same traffic, so the peer is ready soon, or it does not want to. */
	await(c, LINK_RETRY, 1ull << 2 * c->retries++);
}

static size_t segment_bytes(uint32_t ring)
{
	return SEGMENT_DATA + 2 * (size_t)ring;
}

/* Options that change what a byte stream is, or that the ring cannot keep. */
static bool has_odd_options(int fd)
{
	int value = 0;
	socklen_t size = sizeof value;
	char ulp[16] = "";
	socklen_t ulp_size = sizeof ulp;

	if (!REAL(getsockopt)(fd, SOL_SOCKET, SO_RCVLOWAT, &value, &size) && value > 1)
		return true;
	size = sizeof value, value = -1;
	if (!REAL(getsockopt)(fd, SOL_SOCKET, SO_PEEK_OFF, &value, &size) && value >= 0)
		return true;
	size = sizeof value, value = 0;
	if (!REAL(getsockopt)(fd, SOL_SOCKET, SO_OOBINLINE, &value, &size) && value)
		return true;
	if (!REAL(getsockopt)(fd, IPPROTO_TCP, TCP_ULP, ulp, &ulp_size) && ulp_size && *ulp)
		return true;
	return REAL(fcntl)(fd, F_GETFL) & O_ASYNC;
}

static int unix_name(struct sockaddr_un *sa, uint32_t inode)
{
	*sa = (struct sockaddr_un){ .sun_family = AF_UNIX };
	return offsetof(struct sockaddr_un, sun_path) + 1 + sprintf(sa->sun_path + 1, "datsock1-%x", inode);
}

static bool peer_is(int fd, uid_t uid)
{
	struct ucred cred;
	socklen_t size = sizeof cred;

	return !REAL(getsockopt)(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) && cred.uid == uid;
}

/* Whether the process at the other end of the channel has the TCP socket of that inode, as the descriptor that it
 * names. Other processes of the same user may know the inode, too. */
static bool process_has(int control, int fd, uint32_t inode)
{
	struct ucred cred;
	socklen_t size = sizeof cred;
	char path[64], link[64] = "", wanted[64];

	if (REAL(getsockopt)(control, SOL_SOCKET, SO_PEERCRED, &cred, &size))
		return false;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)cred.pid, fd);
	snprintf(wanted, sizeof wanted, "socket:[%u]", inode);
	return readlink(path, link, sizeof link - 1) > 0 && !strcmp(link, wanted);
}

/* The same for a process of any user, which has sent a proof if it is another one. */
static bool peer_has(struct conn *c, const struct message *m, int proof)
{
	return c->foreign ? foreign_is_proof(proof, c->peer_inode) : process_has(c->control, m->fd, c->peer_inode);
}

/* Takes a descriptor that wakes the peer. Returns -1 if that is none whose use can never wait: a write to a pipe or a
 * socket could, or raise SIGPIPE. */
static int take_peer_efd(struct conn *c, int *fd)
{
	struct stat st;
	int flags = *fd < 0 ? -1 : REAL(fcntl)(*fd, F_GETFL), taken = *fd;

	/* Descriptors without a file have no type. */
	if (c->foreign ? !foreign_is_wake(taken) :
			 flags < 0 || fstat(taken, &st) || st.st_mode & S_IFMT ||
				 REAL(fcntl)(taken, F_SETFL, flags | O_NONBLOCK))
		return -1;
	*fd = -1;
	return own_fd(taken);
}

/* What the peer gets beside memory. False: there are no descriptors. */
static bool make_own_fds(struct conn *c, int *efd, int *proof)
{
	*proof = -1;
	if (c->foreign && !foreign_renew_wake(c->efd))
		return false;
	if (c->foreign)
		*proof = foreign_prove(c->fd);
	*efd = c->efd;
	return !c->foreign || *proof >= 0;
}

static bool send_with_fds(struct conn *c, const struct message *m, const int *fds, int count)
{
	bool sent = send_message(c->control, m, fds, count);

	if (sent && c->foreign)
		foreign_sent(c->control, c->peer_uid);
	return sent;
}

/* Whether a descriptor is memory of that size, which the peer cannot take away. */
static bool is_sealed_memory(int fd, size_t size)
{
	struct stat st;
	struct statfs fs;
	int seals = fd < 0 ? -1 : REAL(fcntl)(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_SHRINK && seals & F_SEAL_SEAL && !fstatfs(fd, &fs) &&
	       fs.f_type == TMPFS_MAGIC && !fstat(fd, &st) && st.st_size >= 0 && (size_t)st.st_size == size;
}

/* Makes the memory of both rings and maps it. */
static bool offer_memory(struct conn *c, uint32_t ring, int *fd)
{
	*fd = memfd_create("datsock", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	c->segment_size = segment_bytes(ring);
	if (*fd < 0 || ftruncate(*fd, c->segment_size) ||
	    REAL(fcntl)(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return false;
	c->offered = mmap(NULL, c->segment_size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (c->offered == MAP_FAILED)
		c->offered = NULL;
	return c->offered;
}

static void ask_peer(struct conn *c, uint32_t own_inode)
{
	struct sockaddr_un sa;
	int length = unix_name(&sa, c->peer_inode);
	int fd = own_fd(REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	uint32_t ring = settings.ring;
	struct message m = { .magic = MESSAGE_MAGIC, .type = OPEN, .inode = own_inode, .ring = ring,
			     .fd = c->fd };
	int fds[FDS] = { -1, -1, -1 };
	bool sent;

	/* Looked at before the peer moves. */
	if (fd < 0 || !settings_take_memory(RING_MIN)) {
		own_fd_close(fd);
		refuse(c, DAT_SOCKET_WHY_MEMORY, false);
		return;
	}
	settings_give_memory(RING_MIN);
	if (REAL(connect)(fd, (void *)&sa, length)) {
		own_fd_close(fd);
		retry(c, DAT_SOCKET_WHY_PEER);
		return;
	}
	/* A process of any user may have bound the name. */
	if (!peer_is(fd, c->peer_uid)) {
		closer_take(fd);
		service_counts.strangers++;
		refuse(c, DAT_SOCKET_WHY_USER, false);
		return;
	}
	c->control = fd;
	if (settings.ia[0] && !c->foreign) {
		m.type = ASK_REMOTE;
		sent = send_message(fd, &m, NULL, 0);
	} else if (c->foreign && !foreign_may_send(c->peer_uid)) {
		retry(c, DAT_SOCKET_WHY_USER);
		return;
	} else {
		sent = offer_memory(c, ring, &fds[0]) && make_own_fds(c, &fds[1], &fds[2]) &&
		       send_with_fds(c, &m, fds, c->foreign ? 3 : 2);
	}
	close_two((int[2]){ fds[0], fds[2] });
	if (!sent) {
		refuse(c, DAT_SOCKET_WHY_MEMORY, false);
		return;
	}
	if (await(c, LINK_ASKED, ANSWER_MS))
		watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uintptr_t)c | TAG_CONTROL);
}

static void await_peer(struct conn *c, uint32_t own_inode)
{
	struct sockaddr_un sa;
	int length = unix_name(&sa, own_inode);
	int fd = own_fd(REAL(socket)(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));

	if (fd < 0 || bind(fd, (void *)&sa, length) || REAL(listen)(fd, 4)) {
		/* Another process may have bound the name. That is no shortage, and must not look like one. */
		bool taken = fd >= 0 && errno == EADDRINUSE;

		own_fd_close(fd);
		service_counts.strangers += taken;
		refuse(c, taken ? DAT_SOCKET_WHY_USER : DAT_SOCKET_WHY_MEMORY, false);
		return;
	}
	c->listener = fd;
	c->strangers = 0;
	if (await(c, LINK_LISTEN, LISTEN_MS))
		watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uintptr_t)c | TAG_LISTENER);
}

/* The peer is on another host, or in another network namespace. */
static void ask_other_host(struct conn *c, const struct sockaddr *local, const struct sockaddr *peer)
{
	int err;

	if (!settings_allow_network(peer, c->connector ? peer : local)) {
		refuse(c, DAT_SOCKET_WHY_HOST, true);
		return;
	}
	if (is_in_kernel(c)) {
		retry(c, DAT_SOCKET_WHY_BUSY);
		return;
	}
	c->other_host = true;
	err = hosts_ask(c);
	/* The administrator has not enabled it: no use to ask again. */
	if (err == ENOENT)
		refuse(c, DAT_SOCKET_WHY_HOST, true);
	else if (err)
		refuse(c, err == EAGAIN ? DAT_SOCKET_WHY_BUSY : DAT_SOCKET_WHY_HOST, false);
	else if (await(c, LINK_HOST, HOST_MS))
		watch_hosts();
}

/* Looks up both sockets. False if the connection was refused, or its peer is on another host. */
static bool find_peer(struct conn *c, uint32_t *own_inode)
{
	struct sockaddr_storage local, other;
	struct peer peer;
	struct stat st;
	int err;

	if (c->never || c->closed || !addresses(c, &local, &other) || fstat(c->fd, &st)) {
		refuse(c, c->why, c->never);
		return false;
	}
	if (!settings_allow((void *)&local, (void *)&other, c->connector)) {
		refuse(c, DAT_SOCKET_WHY_SETTING, true);
		return false;
	}
	if (has_odd_options(c->fd)) {
		refuse(c, DAT_SOCKET_WHY_OPTION, true);
		return false;
	}
	err = peer_find(diag, &local, &other, &peer);
	if (err == EAGAIN) {
		retry(c, DAT_SOCKET_WHY_PEER);
		return false;
	}
	if (err == ENOENT && c->link == LINK_RETRY) {
		ask_other_host(c, (void *)&local, (void *)&other);
		return false;
	}
	if (err) {
		refuse(c, err == ENOENT ? DAT_SOCKET_WHY_HOST : DAT_SOCKET_WHY_MEMORY, err == ENOENT);
		return false;
	}
	/* The peer would compare this user with that of the socket. */
	if (st.st_uid != geteuid()) {
		refuse(c, DAT_SOCKET_WHY_OWNER, false);
		return false;
	}
	if (!settings_allow_user(peer.uid, geteuid()) || foreign_is_ambiguous(peer.uid)) {
		refuse(c, DAT_SOCKET_WHY_USER, true);
		return false;
	}
	c->peer_inode = peer.inode, c->peer_uid = peer.uid;
	if (peer.uid != geteuid() && !c->foreign) {
		if (!foreign_renew_wake(c->efd)) {
			refuse(c, DAT_SOCKET_WHY_MEMORY, false);
			return false;
		}
		/* A wake-up of the other kind may have been lost between these two. */
		__atomic_store_n(&c->foreign, true, __ATOMIC_SEQ_CST);
		conn_wake(c);
	}
	*own_inode = st.st_ino;
	return true;
}

static void start(struct conn *c)
{
	uint32_t own_inode;

	if (c->closed || c->mode != CONN_WATCHED) {
		c->link = LINK_NONE;
		return;
	}
	if (!find_peer(c, &own_inode))
		return;
	if (is_in_kernel(c)) {
		retry(c, DAT_SOCKET_WHY_BUSY);
		return;
	}
	if (c->connector)
		ask_peer(c, own_inode);
	else
		await_peer(c, own_inode);
}

/* The peer's end has come to the listener. */
static void accept_peer(struct conn *c)
{
	int fd = own_fd(REAL(accept4)(c->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));

	if (fd < 0 && errno != EAGAIN)
		refuse(c, DAT_SOCKET_WHY_MEMORY, false);
	if (fd < 0)
		return;
	if (c->control >= 0 || !peer_is(fd, c->peer_uid)) {
		closer_take(fd);
		service_counts.strangers++;
		if (++c->strangers >= STRANGERS)
			refuse(c, DAT_SOCKET_WHY_USER, false);
		return;
	}
	c->control = fd;
	c->link = LINK_OPENING;
	watch(EPOLL_CTL_ADD, fd, EPOLLIN, (uintptr_t)c | TAG_CONTROL);
}

static void count_moved(struct conn *c)
{
	service_counts.moved++;
	service_counts.foreign += c->foreign;
}

static int attach(struct conn *c, struct segment *segment, size_t size, uint32_t ring, int peer_efd)
{
	int why = DAT_SOCKET_WHY_BUSY;

	if (conn_lock(c)) {
		why = move_attach(c, segment, size, ring, peer_efd);
		conn_unlock(c);
	}
	if (!why)
		count_moved(c);
	return why;
}

static void link_up(struct conn *c)
{
	timers_cancel(&timers, &c->timer);
	c->link = LINK_UP;
}

/* What must be so before memory that the peer offers is mapped. Returns 0 or a DAT_SOCKET_WHY_*. */
static int check_open(struct conn *c, const struct message *m, const int fds[FDS])
{
	/* The kernel tells which socket is the other end: nothing else may offer memory for it. */
	if (m->inode != c->peer_inode || !peer_has(c, m, fds[2]) || m->ring < 4096 || m->ring > 64 << 20 ||
	    m->ring & (m->ring - 1) || !is_sealed_memory(fds[0], segment_bytes(m->ring)))
		return DAT_SOCKET_WHY_PEER;
	/* This process may have to pay for pages that a peer of another user makes it touch. */
	if (c->foreign && m->ring > settings.ring)
		return DAT_SOCKET_WHY_SETTING;
	if (c->foreign && !foreign_may_send(c->peer_uid))
		return DAT_SOCKET_WHY_BUSY;
	return 0;
}

/* Attaches, and stores the descriptors of the answer: wake-up, proof. Returns 0 or a DAT_SOCKET_WHY_*. */
static int take_offer(struct conn *c, const struct message *m, int fds[FDS], int answer_fds[2])
{
	size_t size = segment_bytes(m->ring);
	struct segment *segment = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	int peer_efd = take_peer_efd(c, &fds[1]), why = DAT_SOCKET_WHY_MEMORY;

	if (segment != MAP_FAILED && peer_efd >= 0 && make_own_fds(c, &answer_fds[0], &answer_fds[1]))
		why = attach(c, segment, size, m->ring, peer_efd);
	if (!why)
		return 0;
	if (segment != MAP_FAILED)
		munmap(segment, size);
	own_fd_close(peer_efd);
	return why;
}

static void on_open(struct conn *c, const struct message *m, int fds[FDS])
{
	struct message answer = { .magic = MESSAGE_MAGIC, .type = NO, .fd = c->fd };
	int answer_fds[2] = { -1, -1 }, why;
	uint32_t own_inode;

	if (!find_peer(c, &own_inode)) {
		drop_descriptors(fds);
		return;
	}
	why = check_open(c, m, fds);
	if (!why) {
		why = take_offer(c, m, fds, answer_fds);
		/* They were checked: memory, and a proof or none. */
		close_two((int[2]){ fds[0], c->foreign ? fds[2] : -1 });
		fds[0] = -1, fds[2] = c->foreign ? -1 : fds[2];
	}
	drop_descriptors(fds);
	if (!why) {
		answer.type = OPENED;
		link_up(c);
		close_listener(c);
		if (!send_with_fds(c, &answer, answer_fds, c->foreign ? 2 : 1))
			move_peer_gone(c);
	} else if (why != DAT_SOCKET_WHY_PEER) {
		answer.reason = why;
		send_message(c->control, &answer, NULL, 0);
	}
	close_two((int[2]){ answer_fds[1], -1 });
	if (why)
		refuse(c, why, false);
}

static void on_opened(struct conn *c, const struct message *m, int fds[FDS])
{
	int peer_efd, why = DAT_SOCKET_WHY_PEER;

	if (!peer_has(c, m, fds[1])) {
		drop_descriptors(fds);
		refuse(c, why, false);
		return;
	}
	peer_efd = take_peer_efd(c, &fds[0]);
	if (c->foreign)
		close_two((int[2]){ fds[1], -1 }), fds[1] = -1;
	drop_descriptors(fds);
	why = peer_efd < 0 ? DAT_SOCKET_WHY_MEMORY :
			     attach(c, c->offered, c->segment_size, (c->segment_size - SEGMENT_DATA) / 2, peer_efd);
	if (why) {
		own_fd_close(peer_efd);
		refuse(c, why, false); /* the end of the channel tells the peer, which takes its bytes back */
		return;
	}
	c->offered = NULL;
	link_up(c);
}

/* --- over DAT, within this host ---------------------------------------------------------------------------------- */

static bool send_place(int fd, const struct remote_place *place)
{
	struct message m = { .magic = MESSAGE_MAGIC, .type = AT };
	struct iovec iov[2] = { { &m, sizeof m }, { (void *)place, sizeof *place } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	return REAL(sendmsg)(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m + sizeof *place;
}

static void on_ask_remote(struct conn *c, const struct message *m)
{
	struct message answer = { .magic = MESSAGE_MAGIC, .type = NO, .reason = DAT_SOCKET_WHY_SETTING };
	struct remote_place place = { 0 };
	uint32_t own_inode;
	int why = 0;

	if (!find_peer(c, &own_inode))
		return;
	if (m->inode != c->peer_inode || !peer_has(c, m, -1)) {
		refuse(c, DAT_SOCKET_WHY_PEER, false);
		return;
	}
	if (settings.ia[0] && !c->foreign && link_listen(settings.ia, &place.address, &place.qualifier))
		why = DAT_SOCKET_WHY_ADAPTER;
	else if (!settings.ia[0] || c->foreign ||
		 getrandom(place.key, sizeof place.key, GRND_NONBLOCK) != sizeof place.key ||
		 !remote_expect(c, place.key))
		why = DAT_SOCKET_WHY_SETTING;
	if (why) {
		send_message(c->control, &answer, NULL, 0);
		refuse(c, why, false);
		return;
	}
	watch_link();
	close_listener(c);
	if (await(c, LINK_REMOTE, ANSWER_MS) && !send_place(c->control, &place))
		refuse(c, DAT_SOCKET_WHY_PEER, false);
}

static void on_place(struct conn *c, const struct remote_place *place)
{
	int why = DAT_SOCKET_WHY_SETTING;

	if (settings.ia[0])
		why = remote_open(c, settings.ia, (const void *)&place->address, place->qualifier, place->key);
	if (why) {
		refuse(c, why, false);
		return;
	}
	watch_link();
	await(c, LINK_REMOTE, ANSWER_MS);
}

/* --- over DAT, to another host --------------------------------------------------------------------------------- */

/* Peers may open a stream to this process with the key, by one more adapter if they might by others before. Returns 0
 * or a DAT_SOCKET_WHY_*. */
static int expect_host(struct conn *c, const struct hosts_answer *answer)
{
	struct sockaddr_storage own;
	uint64_t qualifier;

	if (link_listen(answer->ia, &own, &qualifier))
		return DAT_SOCKET_WHY_ADAPTER;
	watch_link();
	if (c->link == LINK_HOST && !remote_expect(c, answer->key))
		return DAT_SOCKET_WHY_MEMORY;
	hosts_here(c, qualifier);
	return 0;
}

static int open_to_host(struct conn *c, const struct hosts_answer *answer)
{
	int why = remote_open(c, answer->ia, (const void *)&answer->peer, answer->qualifier, answer->key);

	if (!why)
		watch_link();
	return why;
}

void service_host_answered(struct conn *c, const struct hosts_answer *answer)
{
	int why;

	/* While the peer is awaited, the service may name another adapter. Its end changes nothing then. */
	if (c->link != LINK_HOST && (c->connector || c->link != LINK_REMOTE || answer->result))
		return;
	switch (answer->result) {
	case SOCK_SERVICE_OK:
		why = c->connector ? open_to_host(c, answer) : expect_host(c, answer);
		if (why)
			refuse(c, why, false);
		else
			/* After a pause the ends do not ask at the same time. */
			await(c, LINK_REMOTE, c->connector ? HOST_MS : c->pause_ms ? SOCK_SERVICE_HERE_MS : LISTEN_MS);
		return;
	case SOCK_SERVICE_LATER:
	case SOCK_SERVICE_BUSY:
		retry(c, answer->result == SOCK_SERVICE_BUSY ? DAT_SOCKET_WHY_BUSY : DAT_SOCKET_WHY_PEER);
		return;
	case SOCK_SERVICE_NOT_AWARE:
		refuse(c, DAT_SOCKET_WHY_PEER, true);
		return;
	case SOCK_SERVICE_NO_PEER:
		refuse(c, DAT_SOCKET_WHY_PEER, false);
		return;
	case SOCK_SERVICE_NO_ADAPTER: /* it may come, or come back */
		refuse(c, DAT_SOCKET_WHY_HOST, false);
		return;
	default:
		refuse(c, DAT_SOCKET_WHY_HOST, true);
	}
}

void service_remote_opened(struct conn *c, enum dat_socket_why why)
{
	if (why) {
		c->link = LINK_NONE;
		if (why == DAT_SOCKET_WHY_BUSY)
			retry(c, why);
		else
			refuse(c, why, false);
		return;
	}
	hosts_forget(c);
	link_up(c);
	close_control(c);
	count_moved(c);
	c->moved_at = clock_now_ns();
}

void service_remote_back(struct conn *c, bool broken)
{
	if (broken) {
		c->why = DAT_SOCKET_WHY_ADAPTER;
		c->failure = (struct link_failure){ .call = "the DAT connection has broken" };
		if (clock_now_ns() - c->moved_at > STEADY_MS * 1000000ull)
			c->pause_ms = 0;
		pause_asking(c);
		move_log(c, "is on TCP again: the DAT connection has broken");
		c->logged = false;
	}
	service_counts.backs[c->why % 32]++;
	c->link = LINK_NONE;
}

static void link_down(struct conn *c)
{
	close_control(c);
	c->link = LINK_NONE;
}

static void on_control(struct conn *c)
{
	struct message m;
	int fds[FDS] = { -1, -1, -1 };
	struct remote_place place;
	int got = c->control < 0 ? 0 : receive_message(c->control, &m, fds, &place);

	if (!got)
		return;
	if (got > 0 && m.type == OPEN && c->link == LINK_OPENING) {
		on_open(c, &m, fds);
		return;
	}
	if (got > 0 && m.type == OPENED && c->link == LINK_ASKED) {
		on_opened(c, &m, fds);
		return;
	}
	drop_descriptors(fds);
	if (c->link == LINK_REMOTE || c->remote) {
		close_control(c); /* its work is done */
		return;
	}
	if (got > 0 && m.type == ASK_REMOTE && c->link == LINK_OPENING) {
		on_ask_remote(c, &m);
		return;
	}
	if (got > 0 && m.type == AT && c->link == LINK_ASKED) {
		on_place(c, &place);
		return;
	}
	if (c->link == LINK_UP && got > 0 && (m.type == BACK || m.type == BACKED)) {
		struct message answer = { .magic = MESSAGE_MAGIC, .type = BACKED };

		/* Both ends have ended their epochs now, or this call ends that of this end. */
		if (m.type == BACK) {
			if (conn_lock(c)) {
				c->may_begin = false;
				move_revoke(c);
				conn_unlock(c);
			}
			send_message(c->control, &answer, NULL, 0);
		}
		move_finish_back(c);
		if (c->mode != CONN_ATTACHED) {
			service_counts.backs[c->why % 32]++;
			link_down(c);
		}
		return;
	}
	if (c->link == LINK_UP) {
		move_peer_gone(c);
		link_down(c);
	} else if (c->link == LINK_ASKED) {
		if (got > 0 && m.type == NO && m.reason != DAT_SOCKET_WHY_BUSY)
			refuse(c, m.reason < 32 ? m.reason : DAT_SOCKET_WHY_PEER, false);
		else
			retry(c, DAT_SOCKET_WHY_BUSY);
	} else {
		refuse(c, DAT_SOCKET_WHY_PEER, false);
	}
}

static void on_resend(struct conn *c)
{
	bool done;
	int late = -1;

	if (!conn_lock_out(c))
		return;
	done = move_flush(c);
	if (done) {
		watch(EPOLL_CTL_DEL, c->fd, 0, 0);
		c->resend_watched = false;
		if (c->closed)
			late = c->fd;
	}
	conn_unlock_out(c);
	conn_wake(c);
	own_fd_close(late);
}

static bool is_used(const struct conn *c)
{
	return c->resend || c->waiters_in || c->waiters_out || c->kernel_in || c->kernel_out || c->link == LINK_QUEUED;
}

/* Recycles the objects of closed connections that no thread uses. */
static void reap(void)
{
	struct conn *all, *next, *kept = NULL;

	dapl_mutex_lock(&sock_lock);
	all = closed, closed = NULL;
	dapl_mutex_unlock(&sock_lock);
	for (struct conn *c = all; c; c = next) {
		next = c->next_closed;
		if (is_used(c)) {
			c->next_closed = kept, kept = c;
			continue;
		}
		close_link(c);
		own_fd_close(c->efd), c->efd = -1;
		conn_recycle(c);
	}
	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = kept; c; c = next) {
		next = c->next_closed;
		c->next_closed = closed, closed = c;
	}
	dapl_mutex_unlock(&sock_lock);
}

/* Idle connections go back to TCP and give their memory and descriptors to others. */
static void send_idle_back(uint64_t now)
{
	struct conn *idle[IDLE_BACKS];
	int count = 0;

	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = conn_list; c && count < IDLE_BACKS; c = c->next) {
		uint64_t bytes = c->tcp_in + c->tcp_out + c->ring_in + c->ring_out;

		if (c->mode != CONN_ATTACHED || c->closed)
			continue;
		if (!c->idle_at || bytes != c->idle_bytes)
			c->idle_at = now, c->idle_bytes = bytes;
		else if (now - c->idle_at >= settings.idle * 1000000000ull)
			c->idle_at = 0, idle[count++] = c;
	}
	dapl_mutex_unlock(&sock_lock);
	for (int i = 0; i < count; i++)
		move_back(idle[i], DAT_SOCKET_WHY_IDLE, false, 0);
}

/* Watches the control socket from now on, unless processes of other users have kept this thread too busy by it. */
static void await_questions(void)
{
	if (closer_is_behind())
		timers_set(&timers, &answers_timer, clock_now_ns() + STRANGERS_MS * 1000000ull);
	else
		answers_strangers = 0, watch(EPOLL_CTL_MOD, answers_fd, EPOLLIN, ANSWERS_DATA);
}

static void answer_questions(void)
{
	if (answers_serve() || ++answers_strangers < STRANGERS_TURN)
		return;
	if (timers_set(&timers, &answers_timer, clock_now_ns() + STRANGERS_MS * 1000000ull))
		watch(EPOLL_CTL_MOD, answers_fd, 0, ANSWERS_DATA);
}

/* Does what is due. Returns the time until the next timer in ms, -1: none. */
static int run_timers(void)
{
	uint64_t now = clock_now_ns();
	struct timer *t;

	if (!idle_timer.place && __atomic_load_n(&short_until, __ATOMIC_RELAXED) > now)
		timers_set(&timers, &idle_timer, now + IDLE_TURN_MS * 1000000ull);
	while ((t = timers_first(&timers)) && t->at <= now) {
		struct conn *c = container_of(t, struct conn, timer);

		timers_cancel(&timers, t);
		if (t == &idle_timer)
			send_idle_back(now);
		else if (t == &answers_timer)
			await_questions();
		else if (c->link == LINK_RETRY)
			start(c);
		else
			refuse(c, DAT_SOCKET_WHY_PEER, false);
	}
	if (!t)
		return -1;
	now = clock_now_ns();
	return t->at > now ? (int)((t->at - now) / 1000000) + 1 : 0;
}

/* Of two times in ms; -1: never. */
static int earlier(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void *run(void *arg)
{
	(void)arg;
	is_service = true;
	for (;;) {
		struct epoll_event events[64];
		int wait = earlier(earlier(run_timers(), remote_chores_run()), full_run());
		int n = REAL(epoll_wait)(epoll, events, 64, wait);
		struct conn *c;
		bool woken = false;

		for (int i = 0; i < n; i++) {
			c = (struct conn *)(uintptr_t)(events[i].data.u64 & ~(uint64_t)TAG_MASK);
			if (!events[i].data.u64) {
				uint64_t count;

				woken = true;
				if (REAL(read)(wake_fd, &count, sizeof count) < 0)
					continue;
			} else if (events[i].data.u64 == LINK_DATA) {
				link_dispatch();
			} else if (events[i].data.u64 == HOSTS_DATA) {
				hosts_dispatch();
			} else if (events[i].data.u64 < 4096) {
				answer_questions();
			} else if ((events[i].data.u64 & TAG_MASK) == TAG_LISTENER) {
				if (c->listener >= 0)
					accept_peer(c);
			} else if ((events[i].data.u64 & TAG_MASK) == TAG_RESEND) {
				on_resend(c);
			} else {
				on_control(c);
			}
		}
		for (;;) {
			dapl_mutex_lock(&sock_lock);
			c = queue;
			if (c)
				queue = c->next_queued;
			dapl_mutex_unlock(&sock_lock);
			if (!c)
				break;
			c->retries = 0;
			c->link = LINK_RETRY;
			start(c);
		}
		if (woken)
			reap();
	}
	return NULL;
}

static void wake_service(void)
{
	uint64_t one = 1;

	if (REAL(write)(wake_fd, &one, sizeof one) < 0)
		return;
}

void service_wake(void)
{
	int saved = errno;

	if (!is_service)
		wake_service();
	errno = saved;
}

bool service_is_forking(void)
{
	return __atomic_load_n(&forking, __ATOMIC_SEQ_CST);
}

void service_set_forking(bool yes)
{
	__atomic_store_n(&forking, yes, __ATOMIC_SEQ_CST);
}

/* sock_lock held. */
static bool start_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, old;
	int err;

	if (started || failed)
		return started;
	epoll = own_fd(REAL(epoll_create1)(EPOLL_CLOEXEC));
	wake_fd = own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	diag = own_fd(REAL(socket)(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
	if (epoll < 0 || wake_fd < 0 || diag < 0) {
		own_fd_close(epoll), own_fd_close(wake_fd), own_fd_close(diag);
		epoll = wake_fd = diag = -1;
		failed = true;
		return false;
	}
	watch(EPOLL_CTL_ADD, wake_fd, EPOLLIN, 0);
	answers_fd = answers_open();
	watch(EPOLL_CTL_ADD, answers_fd, EPOLLIN, ANSWERS_DATA);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 256 << 10);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	started = !err;
	failed = !!err;
	return started;
}

/* There are no descriptors or no thread for a move: the connection stays on TCP for now. */
static void lacks_means(struct conn *c)
{
	ask_later(c, DAT_SOCKET_WHY_MEMORY);
	move_log_stays(c);
}

void service_ask(struct conn *c)
{
	int saved = errno, efd;
	bool queued = false;

	if (c->asked || c->never || (!c->connector && !c->acceptor))
		return;
	if (!settings.enabled) {
		c->why = DAT_SOCKET_WHY_SETTING;
		c->ask_calls *= 2, c->ask_bytes *= 2;
		return;
	}
	if (!share_is_sole(c->share)) {
		ask_later(c, DAT_SOCKET_WHY_FORK);
		return;
	}
	/* The table has room for the descriptors of the thread before sock_lock is held. */
	efd = own_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (efd >= 0)
		conn_slot(efd + SERVICE_FDS);
	if (!conn_lock(c)) {
		own_fd_close(efd);
		errno = saved;
		return;
	}
	if (!c->asked && !c->closed && c->mode != CONN_ATTACHED && c->link == LINK_NONE) {
		int flags = REAL(fcntl)(c->fd, F_GETFL);

		c->nonblock = flags >= 0 && flags & O_NONBLOCK;
		if (c->efd < 0)
			c->efd = efd, efd = -1;
		c->asked = true;
		if (c->efd < 0) {
			lacks_means(c);
		} else {
			__atomic_store_n(&c->mode, CONN_WATCHED, __ATOMIC_SEQ_CST);
			c->link = LINK_QUEUED;
			queued = true; /* once, though several threads have seen the traffic */
		}
	}
	conn_unlock(c);
	own_fd_close(efd);
	if (queued) {
		dapl_mutex_lock(&sock_lock);
		if (start_thread()) {
			c->next_queued = queue, queue = c;
			wake_service();
		} else {
			c->link = LINK_NONE;
			lacks_means(c);
			__atomic_store_n(&c->mode, CONN_PLAIN, __ATOMIC_SEQ_CST);
		}
		dapl_mutex_unlock(&sock_lock);
	}
	errno = saved;
}

void service_watch_resend(struct conn *c)
{
	if (epoll < 0)
		return;
	c->resend_watched = true;
	watch(EPOLL_CTL_ADD, c->fd, EPOLLOUT, (uintptr_t)c | TAG_RESEND);
}

bool service_send_back(struct conn *c)
{
	struct message m = { .magic = MESSAGE_MAGIC, .type = BACK };

	return c->control >= 0 && send_message(c->control, &m, NULL, 0);
}

void service_closed(struct conn *c)
{
	service_counts.closed++;
	if (c->resend)
		service_watch_resend(c);
	if (!started && !is_used(c)) {
		conn_recycle(c);
		return;
	}
	dapl_mutex_lock(&sock_lock);
	c->next_closed = closed, closed = c;
	dapl_mutex_unlock(&sock_lock);
	if (started)
		wake_service();
}

bool service_before_fork(unsigned number)
{
	dapl_mutex_lock(&sock_lock);
	for (struct conn *c = conn_list; c; c = c->next)
		if (!c->closed && c->forked != number) {
			dapl_mutex_unlock(&sock_lock);
			return false;
		}
	return true;
}

void service_after_fork(bool in_child)
{
	service_set_forking(false);
	dapl_mutex_unlock(&sock_lock);
	if (!in_child)
		return;
	started = failed = false;
	queue = NULL;
	timers.count = 0, idle_timer.place = answers_timer.place = 0;
	epoll = wake_fd = diag = -1;
	is_service = link_watched = false;
	remote_after_fork();
	full_after_fork();
	hosts_after_fork();
	closer_after_fork();
	foreign_after_fork();
	conn_after_fork();
	while (closed) {
		struct conn *c = closed;

		closed = c->next_closed;
		conn_recycle(c);
	}
}
