/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xdp.c - ports that receive by AF_XDP: a socket for each receive queue of the network device. The XDP program
 * (steer.c) gives them the frames that rules take, with the rule and the time in front of each. Frames stay where the
 * NIC or the kernel stored them until the program releases them. ETH-40.
 *
 * The packet socket of the port stays: it sends, and has the memberships that rules need. It receives nothing. */
#include <errno.h>
#include <linux/virtio_net.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "common/clock.h"
#include "dapl/softeth/bpf.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/rule_find.h"
#include "dapl/softeth/steer.h"
#include "dapl/softeth/validate.h"
#include "dapl/softeth/xdp.h"
#include "dapl/softeth/xsk.h"

#define SECOND_NS 1000000000

/* A frame that the program has. */
struct out_frame {
	uint64_t address;
	uint32_t queue;
};

struct eth_xdp {
	int sockets, ready;		/* the map for the program; an epoll of all sockets */
	struct xsk *xsks;
	uint32_t queues, turn;		/* turn: the queue that the next poll begins with */
	struct out_frame *out;		/* a ring: [tail, head) are out, the oldest at tail */
	uint64_t head, tail, room;
};

/* --- whether there is AF_XDP ------------------------------------------------------------------- */

static bool there;

/* Without CAP_NET_RAW there is another error. */
static void look_for_xdp(void)
{
	int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	there = fd >= 0 || errno != EAFNOSUPPORT;
	if (fd >= 0)
		close(fd);
}

bool eth_xdp_is_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, look_for_xdp);
	return there;
}

/* --- opening and closing ------------------------------------------------------------------------ */

static int watch(const struct eth_xdp *xdp, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };

	return epoll_ctl(xdp->ready, EPOLL_CTL_ADD, fd, &event) ? errno : 0;
}

static int open_queue(struct eth_port *port, uint32_t queue, uint32_t frames, uint32_t max_frame, const char **tried)
{
	struct eth_xdp *xdp = port->xdp;
	struct xsk *x = &xdp->xsks[queue];
	int err = xsk_open(x, port->index, queue, frames, max_frame, tried);

	if (err)
		return err;
	xdp->room += x->size / x->chunk;
	*tried = "the socket of a receive queue";
	err = bpf_set_socket(xdp->sockets, queue, x->fd);
	return err ? err : watch(xdp, x->fd, EPOLLIN);
}

static int attach_program(struct eth_port *port, const char **tried)
{
	struct eth_xdp *xdp = port->xdp;
	int err;

	*tried = "BPF maps need CAP_BPF";
	if ((xdp->sockets = bpf_create_sockets(xdp->queues)) < 0)
		return -xdp->sockets;
	*tried = "an XDP program needs CAP_BPF, CAP_NET_ADMIN, Linux 6.1, and a device without another one";
	dapl_mutex_lock(&port->lock);
	err = eth_steer_renew(port);
	dapl_mutex_unlock(&port->lock);
	return err;
}

int eth_xdp_open(struct eth_port *port, uint32_t frames, uint32_t max_frame, const char **tried)
{
	struct eth_xdp *xdp = port->xdp = calloc(1, sizeof *xdp);
	const uint32_t queues = port->queues;
	int err;

	*tried = "memory";
	if (!xdp)
		return ENOMEM;
	xdp->sockets = xdp->ready = -1;
	if (!(xdp->xsks = calloc(queues, sizeof *xdp->xsks)))
		return ENOMEM;
	xdp->queues = queues;
	for (uint32_t i = 0; i < queues; i++)
		xdp->xsks[i].fd = -1;
	if ((xdp->ready = epoll_create1(EPOLL_CLOEXEC)) < 0 || watch(xdp, port->fd, 0))
		return errno;
	err = attach_program(port, tried);
	for (uint32_t i = 0; !err && i < queues; i++)
		err = open_queue(port, i, frames, max_frame, tried);
	if (!err && !(xdp->out = calloc(xdp->room, sizeof *xdp->out)))
		err = ENOMEM;
	return err;
}

/* The program first, so that it gives no frame to a socket that is being closed. */
void eth_xdp_close(struct eth_port *port)
{
	struct eth_xdp *xdp = port->xdp;

	if (!xdp)
		return;
	eth_steer_detach(port);
	for (uint32_t i = 0; i < xdp->queues; i++)
		xsk_close(&xdp->xsks[i]);
	if (xdp->sockets >= 0)
		close(xdp->sockets);
	if (xdp->ready >= 0)
		close(xdp->ready);
	free(xdp->xsks);
	free(xdp->out);
	free(xdp);
	port->xdp = NULL;
}

int eth_xdp_sockets(const struct eth_xdp *xdp)
{
	return xdp->sockets;
}

int eth_xdp_descriptor(const struct eth_xdp *xdp)
{
	return xdp->ready;
}

bool eth_xdp_is_zero_copy(const struct eth_xdp *xdp)
{
	for (uint32_t i = 0; i < xdp->queues; i++)
		if (!xdp->xsks[i].zero_copy)
			return false;
	return true;
}

/* --- receiving ------------------------------------------------------------------------------------ */

/* CLOCK_TAI - CLOCK_REALTIME, which is whole seconds. */
static int64_t tai_offset(void)
{
	int64_t between = (int64_t)(clock_read_ns(CLOCK_TAI) - clock_read_ns(CLOCK_REALTIME));

	return (between + SECOND_NS / 2) / SECOND_NS * SECOND_NS;
}

/* Reads what the program wrote in front of the frame, and clears it: a driver without room for it leaves there what
 * the frame before had. */
static struct steer_mark take_mark(const struct xsk *x, const struct xdp_desc *frame)
{
	struct steer_mark mark = { .rule = 0 };
	uint8_t *at = x->memory + frame->addr - sizeof mark;

	if ((frame->addr & (x->chunk - 1)) < sizeof mark)
		return mark;
	memcpy(&mark, at, sizeof mark);
	memset(at, 0, sizeof mark);
	return mark;
}

/* Without a mark the time is that of the poll, and frames of other stations are not told apart. */
static struct eth_rule *find_rule(struct eth_port *port, const uint8_t *data, uint32_t length, struct steer_mark *mark)
{
	uint32_t hash = 0;

	if (mark->rule)
		return eth_rule_by_id(port, mark->rule);
	mark->time = clock_read_ns(CLOCK_TAI);
	return eth_rule_find(port, data, length, (struct eth_tag){ 0, 0 }, mark->time, false, false, &hash);
}

/* Returns the rule that took the frame, or NULL if it has ended. */
static struct eth_rule *describe(struct eth_port *port, const struct xsk *x, const struct xdp_desc *from, int64_t tai,
				 struct dapl_eth_frame *frame)
{
	static const struct virtio_net_hdr none;
	const uint8_t *data = x->memory + from->addr;
	struct steer_mark mark = take_mark(x, from);
	struct eth_rule *rule = find_rule(port, data, from->len, &mark);

	if (!rule)
		return NULL;
	*frame = (struct dapl_eth_frame){ .data = data, .wire_length = from->len, .tag = rule->rule.tag,
		.length = port->snap && port->snap < from->len ? port->snap : from->len };
	eth_validate(port, frame, &none, data, frame->length, &(struct iovec){ (void *)data, frame->length }, 1);
	eth_rule_account(port, frame, mark.time - (uint64_t)tai);
	return rule;
}

/* Frames that are lost while the kernel has no chunk show in its counter. With zero copy the NIC loses them. */
static void commit(struct eth_port *port, struct xsk *x)
{
	if (xsk_commit(x) && !x->zero_copy)
		port->lost_pending += eth_xdp_read_drops(port);
}

static int poll_queue(struct eth_port *port, uint32_t queue, int64_t tai, struct dapl_eth_frame *frames, int max,
		      struct rule_tally *tally)
{
	struct eth_xdp *xdp = port->xdp;
	struct xsk *x = &xdp->xsks[queue];
	struct xdp_desc from;
	int n = 0;

	while (n < max && xsk_take(x, &from)) {
		struct eth_rule *rule = describe(port, x, &from, tai, &frames[n]);

		if (!rule) {
			xsk_give(x, from.addr);
			continue;
		}
		eth_tally_frames(tally, rule, 1, frames[n++].wire_length);
		xdp->out[xdp->head++ % xdp->room] = (struct out_frame){ from.addr, queue };
	}
	commit(port, x);
	return n;
}

int eth_xdp_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max)
{
	struct eth_xdp *xdp = port->xdp;
	struct rule_tally tally = { .rule = NULL };
	uint32_t first = xdp->turn++;
	int64_t tai = tai_offset();
	int n = 0;

	for (uint32_t i = 0; i < xdp->queues && n < max; i++)
		n += poll_queue(port, (first + i) % xdp->queues, tai, frames + n, max - n, &tally);
	eth_tally_end(&tally);
	return n;
}

int eth_xdp_release(struct eth_port *port, uint32_t oldest)
{
	struct eth_xdp *xdp = port->xdp;

	if (oldest > xdp->head - xdp->tail)
		return EINVAL;
	for (; oldest; oldest--) {
		const struct out_frame *out = &xdp->out[xdp->tail++ % xdp->room];

		xsk_give(&xdp->xsks[out->queue], out->address);
	}
	for (uint32_t i = 0; i < xdp->queues; i++)
		commit(port, &xdp->xsks[i]);
	return 0;
}

/* Takes the error of a socket, which keeps it ready until then. Returns whether there was one, or it cannot be read. */
static bool take_error(int fd)
{
	socklen_t size = sizeof(int);
	int err = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size) || err;
}

/* True for an error of a socket, too, as when the device goes down: then a poll does not block. */
bool eth_xdp_has_frame(const struct eth_port *port)
{
	bool failed = false;

	for (uint32_t i = 0; i < port->xdp->queues; i++)
		if (xsk_has_frame(&port->xdp->xsks[i]))
			return true;
	for (uint32_t i = 0; i < port->xdp->queues; i++)
		failed |= take_error(port->xdp->xsks[i].fd);
	return take_error(port->fd) || failed;
}

uint32_t eth_xdp_read_drops(struct eth_port *port)
{
	uint64_t drops = 0;

	for (uint32_t i = 0; i < port->xdp->queues; i++)
		drops += xsk_read_drops(&port->xdp->xsks[i]);
	port->stats.lost += drops;
	return (uint32_t)drops;
}
