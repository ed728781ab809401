/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.c - unreliable datagrams between devices of this implementation: one UDP socket a device, a
 * short header that names the queue pairs and the key. The addresses of the peers come from the
 * handshake (handshake.c).
 *
 * Header, 24 bytes big-endian: magic, destination QP, source QP, key, flags (1: immediate
 * follows, 2: solicited), immediate. */
#include "dapl/soft/rdmap/ud.h"
#include "common/address.h"
#include "common/container_of.h"
#include "common/lock.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/mem.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/rdmap/mcast.h"
#include "dapl/soft/wire/wire.h"
#include "dapl/soft/wire/message.h"
#include "dapl/soft/tunables.h"
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	UD_MAGIC = 0x44504c01, UD_HEADER = 24,
	UD_IMMEDIATE = 1, UD_SOLICITED = 2,
};

static void serve(struct soft_input *input, uint32_t events, bool polling)
{
	(void)events;
	(void)polling;
	soft_ud_receive(container_of(input, struct dapl_device, datagrams.input));
}

int soft_ud_open(struct dapl_device *dev)
{
	struct sockaddr_storage local = dev->address;
	socklen_t length = address_length((struct sockaddr *)&local);
	int err = 0;

	soft_progress_lock(dev);
	if (dev->datagrams.fd >= 0)
		goto out;
	dev->datagrams.input.serve = serve;
	address_set_port((struct sockaddr *)&local, 0);
	dev->datagrams.fd = socket(local.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (dev->datagrams.fd < 0) {
		err = errno;
		goto out;
	}
	if (bind(dev->datagrams.fd, (struct sockaddr *)&local, length) ||
	    getsockname(dev->datagrams.fd, (struct sockaddr *)&local, &length))
		err = errno;
	else
		err = soft_input_watch(dev, &dev->datagrams.input, dev->datagrams.fd);
	if (err) {
		close(dev->datagrams.fd);
		dev->datagrams.fd = -1;
		goto out;
	}
	dev->datagrams.port = address_port((struct sockaddr *)&local);
out:
	soft_progress_unlock(dev);
	return err;
}

void soft_ud_close(struct dapl_device *dev)
{
	if (dev->datagrams.fd >= 0)
		close(dev->datagrams.fd);
	dev->datagrams.fd = -1;
	soft_mcast_close(dev);
}

int soft_ud_ah_create(struct ibv_pd *pd, const struct sockaddr *address, uint16_t port,
		   struct ibv_ah **ah)
{
	struct soft_ah *new = calloc(1, sizeof *new);

	if (!new)
		return ENOMEM;
	new->ah.context = pd->context;
	new->ah.pd = pd;
	memcpy(&new->address, address, address_length(address));
	address_set_port((struct sockaddr *)&new->address, port);
	new->traffic_class = -1;
	__atomic_add_fetch(&((struct soft_pd *)pd)->refs, 1, __ATOMIC_RELAXED);
	*ah = &new->ah;
	return 0;
}

void soft_ud_ah_set_class(struct ibv_ah *ah, int traffic_class)
{
	((struct soft_ah *)ah)->traffic_class = traffic_class;
}

int soft_ud_ah_destroy(struct ibv_ah *ah)
{
	__atomic_sub_fetch(&((struct soft_pd *)ah->pd)->refs, 1, __ATOMIC_RELEASE);
	free(ah);
	return 0;
}

/* Describes the payload by iovecs. qp->lock held. */
static enum ibv_wc_status gather(const struct soft_qp *qp, const struct ibv_send_wr *wr,
				 struct iovec *iov, int *n, uint64_t *length)
{
	char *at;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (!sge->length)
			continue;
		if (soft_mem_local(qp->dev, qp->qp.pd, sge, 0, &at) != SOFT_FINE)
			return IBV_WC_LOC_PROT_ERR;
		iov[(*n)++] = (struct iovec){ at, sge->length };
		*length += sge->length;
	}
	return *length > SOFT_UD_MTU ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS;
}

union class_control {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* Has the kernel send with the traffic class of `ah`. One socket sends to all peers, so it has none of its own. */
static void set_class(struct msghdr *msg, union class_control *control, const struct soft_ah *ah)
{
	bool ip6 = ah->address.ss_family == AF_INET6;

	if (ah->traffic_class < 0)
		return;
	control->header = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(sizeof(int)),
		.cmsg_level = ip6 ? IPPROTO_IPV6 : IPPROTO_IP, .cmsg_type = ip6 ? IPV6_TCLASS : IP_TOS,
	};
	memcpy(CMSG_DATA(&control->header), &ah->traffic_class, sizeof(int));
	msg->msg_control = control;
	msg->msg_controllen = sizeof *control;
}

int soft_ud_send(struct soft_qp *qp, const struct ibv_send_wr *wr, enum ibv_wc_status *status)
{
	struct soft_ah *ah = (struct soft_ah *)wr->wr.ud.ah;
	uint8_t header[UD_HEADER];
	struct iovec iov[1 + SOFT_MAX_SGE];
	struct msghdr msg = { .msg_iov = iov };
	union class_control control;
	uint32_t flags = 0;
	uint64_t length = 0;
	ssize_t sent;
	int n = 1;

	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return EOPNOTSUPP;
	if (!ah || wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->max_send_sge)
		return EINVAL;
	*status = gather(qp, wr, iov, &n, &length);
	if (*status != IBV_WC_SUCCESS)
		return 0;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		flags |= UD_IMMEDIATE;
	if (wr->send_flags & IBV_SEND_SOLICITED)
		flags |= UD_SOLICITED;
	wire_put32(header, UD_MAGIC);
	wire_put32(header + 4, wr->wr.ud.remote_qpn);
	wire_put32(header + 8, qp->qp.qp_num);
	wire_put32(header + 12, wr->wr.ud.remote_qkey);
	wire_put32(header + 16, flags);
	wire_put32(header + 20, flags & UD_IMMEDIATE ? ntohl(wr->imm_data) : 0);
	iov[0] = (struct iovec){ header, sizeof header };
	msg.msg_name = &ah->address;
	msg.msg_namelen = address_length((struct sockaddr *)&ah->address);
	msg.msg_iovlen = n;
	set_class(&msg, &control, ah);
	do	/* unreliable: what the socket does not take is lost */
		sent = sendmsg(qp->dev->datagrams.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && (errno == EINTR || errno == ECONNREFUSED));
	return 0;
}

/* Makes a global route header of both addresses and the length. */
static void make_grh(uint8_t grh[SOFT_GRH], const struct sockaddr_storage *from,
		     const struct sockaddr_storage *to, uint16_t length)
{
	struct ibv_grh header = { 0 };
	union ibv_gid *gid[2] = { &header.sgid, &header.dgid };
	const struct sockaddr_storage *address[2] = { from, to };

	header.version_tclass_flow = htonl(6u << 28);
	header.paylen = htons(length);
	header.next_hdr = 17;
	header.hop_limit = 64;
	for (int i = 0; i < 2; i++) {
		if (address[i]->ss_family == AF_INET6) {
			memcpy(gid[i]->raw, &((struct sockaddr_in6 *)address[i])->sin6_addr, 16);
			continue;
		}
		gid[i]->raw[10] = gid[i]->raw[11] = 0xff;
		memcpy(gid[i]->raw + 12, &((struct sockaddr_in *)address[i])->sin_addr, 4);
	}
	memcpy(grh, &header, SOFT_GRH);
}

bool soft_ud_parse(struct soft_datagram *datagram, const uint8_t *p, size_t length)
{
	if (length < UD_HEADER || length > UD_HEADER + SOFT_UD_MTU || wire_get32(p) != UD_MAGIC)
		return false;
	*datagram = (struct soft_datagram){
		.to_qp = wire_get32(p + 4), .from_qp = wire_get32(p + 8), .qkey = wire_get32(p + 12),
		.flags = wire_get32(p + 16), .immediate = wire_get32(p + 20),
		.data = p + UD_HEADER, .length = length - UD_HEADER,
	};
	return true;
}

/* Places header and payload in the next receive. Without one the datagram is lost. qp->lock
 * held. */
static void deliver(struct soft_qp *qp, const struct soft_datagram *datagram, const uint8_t *grh)
{
	uint32_t length = datagram->length, part;
	struct ibv_wc wc = {
		.opcode = IBV_WC_RECV, .byte_len = SOFT_GRH + length,	/* EXT-15 */
		.src_qp = datagram->from_qp, .wc_flags = IBV_WC_GRH,
	};
	const struct ibv_pd *pd = soft_receive_pd(qp);
	struct iovec iov[SOFT_MAX_SGE];
	int n;

	if (qp->state != IBV_QPS_RTS || !soft_qp_take_receive(qp))
		return;
	if (datagram->flags & UD_IMMEDIATE) {
		wc.wc_flags |= IBV_WC_WITH_IMM;
		wc.imm_data = htonl(datagram->immediate);
	}
	if (SOFT_GRH + length > qp->taken->length) {
		soft_qp_received(qp, IBV_WC_LOC_LEN_ERR, &wc, false);
		return;
	}
	for (int half = 0; half < 2; half++) {
		part = half ? length : SOFT_GRH;
		n = soft_mem_slice(qp->dev, pd, qp->taken->sge, qp->taken->sges,
				   half ? SOFT_GRH : 0, part, IBV_ACCESS_LOCAL_WRITE, iov,
				   SOFT_MAX_SGE);
		if (n < 0) {
			soft_qp_received(qp, IBV_WC_LOC_PROT_ERR, &wc, false);
			return;
		}
		copy_scatter(iov, n, half ? datagram->data : grh);
	}
	soft_qp_received(qp, IBV_WC_SUCCESS, &wc, datagram->flags & UD_SOLICITED);
}

void soft_ud_deliver(struct soft_qp *qp, const struct soft_datagram *datagram,
		     const struct sockaddr_storage *from, const struct sockaddr_storage *to)
{
	uint8_t grh[SOFT_GRH];

	make_grh(grh, from, to, datagram->length);
	dapl_mutex_lock(&qp->lock);
	deliver(qp, datagram, grh);
	dapl_mutex_unlock(&qp->lock);
}

static void receive_one(struct dapl_device *dev, const struct sockaddr_storage *from,
			const uint8_t *p, size_t length)
{
	struct soft_datagram datagram;
	struct soft_qp *qp;

	if (!soft_ud_parse(&datagram, p, length))
		return;
	dapl_mutex_lock(&dev->qps_lock);
	qp = soft_qp_by_number(dev, datagram.to_qp);
	dapl_mutex_unlock(&dev->qps_lock);	/* the progress lock keeps the QP alive */
	if (qp && qp->qp.qp_type == IBV_QPT_UD && datagram.qkey == qp->qkey)
		soft_ud_deliver(qp, &datagram, from, &dev->address);
}

static void receive_own(struct dapl_device *dev)
{
	struct sockaddr_storage from;
	socklen_t from_length;
	ssize_t n;

	for (int i = 0; i < UD_BATCH; i++) {
		from_length = sizeof from;
		n = recvfrom(dev->datagrams.fd, dev->progress.scratch, SOFT_SCRATCH, MSG_DONTWAIT,
			     (struct sockaddr *)&from, &from_length);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n >= 0)
			receive_one(dev, &from, dev->progress.scratch, n);
	}
}

void soft_ud_receive(struct dapl_device *dev)
{
	assert_held(&dev->progress_lock);
	receive_own(dev);
	soft_mcast_receive(dev);
}
