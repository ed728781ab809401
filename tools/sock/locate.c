/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* locate.c - see locate.h. */
#include "tools/sock/locate.h"
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>
#include "common/sock_service.h"
#include "tools/sock/interfaces.h"
#include "tools/sock/loop.h"
#include "tools/sock/point.h"

enum {
	PLACES = 256,		/* addresses that are asked for; another one with the same hash takes the place */
	PAUSE_MS = 1000,	/* between two questions for an address at first, then twice as long each time */
	PAUSE_MOST_MS = 64000,
	BURST = 64,		/* datagrams before others have their turn */
};

struct place {
	uint8_t address[16];
	uint8_t nonce[SOCK_SERVICE_KEY];
	bool waits;		/* for the answer */
	uint64_t next;		/* ms; not asked again before */
	unsigned pause_ms;
};

static struct loop_watch watch = { .fd = -1 };
static uint16_t port;
static struct place places[PLACES];

static struct place *place_of(const uint8_t address[16])
{
	unsigned hash = 0;
	struct place *p;

	for (int i = 0; i < 16; i++)
		hash = hash * 31 + address[i];
	p = &places[hash % PLACES];
	if (memcmp(p->address, address, 16)) {
		*p = (struct place){ 0 };
		memcpy(p->address, address, 16);
	}
	return p;
}

/* Sends from that address of this host, which also selects the interface of a link-local one. */
static bool send_datagram(const uint8_t data[SOCK_SERVICE_REPLY], const struct sockaddr_in6 *to, const uint8_t from[16])
{
	struct in6_pktinfo info = { .ipi6_ifindex = to->sin6_scope_id };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof info)] = { 0 };
	struct iovec iov = { (void *)data, SOCK_SERVICE_REPLY };
	struct msghdr msg = { .msg_name = (void *)to, .msg_namelen = sizeof *to, .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

	memcpy(&info.ipi6_addr, from, 16);
	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof info), .cmsg_level = IPPROTO_IPV6,
				  .cmsg_type = IPV6_PKTINFO };
	memcpy(CMSG_DATA(head), &info, sizeof info);
	return sendmsg(watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == SOCK_SERVICE_REPLY;
}

bool locate_ask(const struct paths_of *of)
{
	struct place *p = place_of(of->remote);
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	uint8_t question[SOCK_SERVICE_REPLY];

	if (watch.fd < 0 || loop_now_ms() < p->next)
		return false;
	p->pause_ms = !p->pause_ms ? PAUSE_MS : 2 * p->pause_ms < PAUSE_MOST_MS ? 2 * p->pause_ms : PAUSE_MOST_MS;
	p->next = loop_now_ms() + p->pause_ms;
	if (getrandom(p->nonce, sizeof p->nonce, GRND_NONBLOCK) != sizeof p->nonce)
		return false;
	memcpy(&to.sin6_addr, of->remote, 16);
	if (IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr))
		to.sin6_scope_id = interfaces_index(of->local);
	sock_service_encode_datagram(question, SOCK_SERVICE_LOCATE, p->nonce);
	p->waits = send_datagram(question, &to, of->local);
	return p->waits;
}

static void answer(const uint8_t nonce[SOCK_SERVICE_KEY], const struct sockaddr_in6 *from, const uint8_t at[16])
{
	uint8_t reply[SOCK_SERVICE_REPLY], adapters[SOCK_SERVICE_ADAPTERS][16];
	unsigned count = point_list_beside(at, adapters);

	sock_service_encode_datagram(reply, SOCK_SERVICE_LOCATED, nonce);
	sock_service_encode_adapters(reply, (const uint8_t (*)[16])adapters, count);
	send_datagram(reply, from, at);
}

static void learn(const uint8_t nonce[SOCK_SERVICE_KEY], const uint8_t *data, const uint8_t from[16])
{
	struct place *p = place_of(from);
	uint8_t adapters[SOCK_SERVICE_ADAPTERS][16];
	unsigned count = sock_service_decode_adapters(data, SOCK_SERVICE_REPLY, adapters);

	if (!p->waits || memcmp(p->nonce, nonce, sizeof p->nonce))
		return;
	p->waits = false;
	if (count)
		p->pause_ms = 0;
	paths_locate(from, (const uint8_t (*)[16])adapters, count);
}

/* Returns whether there was a datagram. */
static bool receive(void)
{
	uint8_t data[SOCK_SERVICE_REPLY], nonce[SOCK_SERVICE_KEY];
	struct sockaddr_in6 from;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec iov = { data, sizeof data };
	struct msghdr msg = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1,
			      .msg_control = control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(watch.fd, &msg, MSG_DONTWAIT);
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	enum sock_service_datagram kind;
	struct in6_pktinfo info;

	if (n < 0)
		return errno != EAGAIN && errno != EINTR; /* of a datagram that found no host */
	if (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !head || head->cmsg_level != IPPROTO_IPV6 ||
	    head->cmsg_type != IPV6_PKTINFO || !sock_service_decode_datagram(data, (size_t)n, &kind, nonce))
		return true;
	memcpy(&info, CMSG_DATA(head), sizeof info);
	if (kind == SOCK_SERVICE_LOCATED)
		learn(nonce, data, from.sin6_addr.s6_addr);
	else if (!point_is_too_fast(from.sin6_addr.s6_addr))
		answer(nonce, &from, info.ipi6_addr.s6_addr);
	return true;
}

static void on_datagrams(struct loop_watch *w)
{
	(void)w;
	for (int i = 0; i < BURST && receive(); i++)
		continue;
}

int locate_open(uint16_t number)
{
	struct sockaddr_in6 sa = { .sin6_family = AF_INET6, .sin6_port = htons(number) };
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), zero = 0, one = 1, err;

	port = number;
	watch = (struct loop_watch){ fd, on_datagrams };
	if (fd >= 0 && !setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero) &&
	    !setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof one) && !bind(fd, (void *)&sa, sizeof sa) &&
	    loop_add(&watch))
		return 0;
	err = errno;
	locate_close();
	return err;
}

void locate_close(void)
{
	if (watch.fd >= 0)
		close(watch.fd);
	watch.fd = -1;
}
