/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.c - raw Ethernet QPs for RDMA devices that have none: a library to be preloaded. It replaces operations of each
 * device that is opened (device.c), and the functions of libibverbs that do not go by these. Frames
 * are moved by packet sockets on the network device of the RDMA device. Every structure is checked as a driver and the
 * kernel would check it; a wrong one ends the process. This file has QPs and flows.
 *
 * It behaves as hardware does: a frame that is longer than its receive is an error that ends the QP, a frame without a
 * receive is gone, and the clock of time stamps has a frequency and a beginning of its own. FAKE_ETH is a list of
 * what the device lacks: "tags", "stamps", "extended" (ibv_create_cq_ex), "partial" (masks), "copy", "tunnels",
 * "offloads", "pace", "moderation", "fcs", "queues" (work queues), "joint" (one QP hashes IPv4 and IPv6, TCP and
 * UDP).
 *
 * An event on a completion channel is the kernel's business: a completion of ours wakes by one of the real device,
 * a send to a QP in ERR, whose flushed completion is hidden (cq.c). */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "eth.h"

enum {
	MAX_MODERATE = 4095,
	RATE_MIN = 100, RATE_MAX = 10000000,	/* kbit/s */
	MAX_TSO = 65535 + 14, MAX_FRAME = 70000,
};
struct flow {
	struct ibv_flow flow;
	struct fake_qp *qp;
	struct flow *next;
	uint64_t age;
	struct ibv_flow_attr *attr;
};

struct fake_qp {
	struct ibv_qp qp;
	struct ibv_qp_cap cap;
	uint16_t max_tso_header;
	int fd, wake[2];		/* what it sends by; with flows also receives */
	char netdev[IF_NAMESIZE];
	pthread_t thread;
	bool listens;			/* it has had a flow */
	struct receives receives;	/* its own; without a table */
	struct table *table;
	uint64_t fields;
	uint8_t key[HASH_KEY];
	struct flow *flows;
	struct queue *send;		/* NULL: over a table */
	struct fake_qp *next;
};

static struct fake_qp *fake_qps;
static uint64_t ages;

static int (*real_post_recv)(struct ibv_qp *, struct ibv_recv_wr *, struct ibv_recv_wr **);

void fake_wrong(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fprintf(stderr, "raw QPs in place of a device's: ");
	vfprintf(stderr, format, args);
	fprintf(stderr, "\n");
	va_end(args);
	abort();
}

bool fake_lacks(const char *what)
{
	const char *list = getenv("FAKE_ETH");

	return list && strstr(list, what);
}

/* --- sending --------------------------------------------------------------------------------------- */

static struct fake_qp *find_qp(const struct ibv_qp *qp)
{
	struct fake_qp *f;

	pthread_mutex_lock(&fake_lock);
	for (f = fake_qps; f && &f->qp != qp; f = f->next)
		;
	pthread_mutex_unlock(&fake_lock);
	return f;
}

static size_t gather(const struct ibv_send_wr *wr, uint8_t *to)
{
	size_t length = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		CHECK(wr->sg_list[i].lkey && length + wr->sg_list[i].length <= MAX_FRAME);
		memcpy(to + length, (const void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		length += wr->sg_list[i].length;
	}
	return length;
}

static void send_frame(struct fake_qp *f, const uint8_t *frame, size_t length)
{
	while (send(f->fd, frame, length, 0) != (ssize_t)length)
		if (errno != ENOBUFS && errno != EAGAIN && errno != ENETDOWN)
			fake_wrong("a frame of %zu bytes cannot be sent: %s", length, strerror(errno));
}

static void send_message(struct fake_qp *f, const struct ibv_send_wr *wr)
{
	static uint8_t message[MAX_FRAME], frame[MAX_FRAME];	/* lock held */
	size_t length = gather(wr, message), n;

	if (wr->opcode == IBV_WR_TSO) {
		CHECK(f->max_tso_header >= wr->tso.hdr_sz && wr->tso.hdr_sz >= 54 && wr->tso.mss && length);
		CHECK(length <= MAX_TSO);
		for (unsigned i = 0; (n = fake_segment(frame, wr->tso.hdr, wr->tso.hdr_sz, message, length, wr->tso.mss,
						       i)); i++)
			send_frame(f, frame, n);
		return;
	}
	CHECK(length >= 14);
	if (wr->send_flags & IBV_SEND_IP_CSUM)
		fake_fill_checksums(message, length);
	send_frame(f, message, length);
}

static int fake_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct fake_qp *f = find_qp(qp);

	if (!f)
		return fake_real_post_send(qp, wr, bad);
	pthread_mutex_lock(&fake_lock);
	for (; wr; wr = wr->next) {
		struct done done = { .wc = { .wr_id = wr->wr_id, .opcode = wr->opcode == IBV_WR_TSO ? IBV_WC_TSO :
			IBV_WC_SEND, .qp_num = qp->qp_num } };

		CHECK(wr->opcode == IBV_WR_SEND || wr->opcode == IBV_WR_TSO);
		CHECK(!(wr->send_flags & ~(unsigned)(IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM | IBV_SEND_FENCE)));
		CHECK(!(wr->send_flags & IBV_SEND_IP_CSUM) || !fake_lacks("offloads"));
		CHECK(wr->num_sge <= (int)f->cap.max_send_sge && f->send);
		if (f->qp.state == IBV_QPS_ERR)
			done.wc.status = IBV_WC_WR_FLUSH_ERR;
		else
			send_message(f, wr);
		if (done.wc.status || wr->send_flags & IBV_SEND_SIGNALED)
			fake_complete(f->send, &done);
	}
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

/* --- receiving ---------------------------------------------------------------------------------------- */

static int fake_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct fake_qp *f = find_qp(qp);
	int err;

	if (!f)
		return real_post_recv(qp, wr, bad);
	pthread_mutex_lock(&fake_lock);
	CHECK(f->cap.max_recv_wr);
	err = fake_receives_post(&f->receives, wr, bad);
	pthread_mutex_unlock(&fake_lock);
	return err;
}

/* A QP over a table has no states with mlx5. */
static bool is_steerable(const struct fake_qp *f)
{
	return f->qp.state == IBV_QPS_RTR || f->qp.state == IBV_QPS_RTS || (f->table && fake_lacks("joint"));
}

static bool is_promiscuous(const struct fake_qp *f)
{
	char command[200];

	snprintf(command, sizeof command, "ip -d link show dev %s | grep -q 'promiscuity [1-9]'", f->netdev);
	return !system(command);
}

/* The flow of lowest priority number, then the oldest, that takes the frame; NULL: none does. */
static const struct flow *steer(struct fake_qp *f, const uint8_t *frame, size_t length, int kind)
{
	const struct flow *best = NULL;

	for (const struct flow *flow = f->flows; flow; flow = flow->next) {
		if (kind == PACKET_OUTGOING && flow->attr->type != IBV_FLOW_ATTR_SNIFFER)
			continue;
		if (best && (best->attr->priority < flow->attr->priority ||
			     (best->attr->priority == flow->attr->priority && best->age < flow->age)))
			continue;
		if (!fake_flow_matches(flow->attr, frame, length))
			continue;
		if (kind == PACKET_OTHERHOST && !fake_flow_names_station(flow->attr) && !is_promiscuous(f))
			continue;
		best = flow;
	}
	return best && fake_flow_drops(best->attr) ? NULL : best;
}

/* To the QP's own receives, or to the work queue that its table has for the frame. */
static void deliver(struct fake_qp *f, const uint8_t *frame, size_t length, const struct flow *flow)
{
	struct receives *to = &f->receives;

	if (f->table)
		to = f->table->queues[fake_hash(frame, length, f->fields, f->key) & (f->table->size - 1)];
	fake_receives_fill(to, frame, length, fake_flow_tag(flow->attr));
	if (to == &f->receives && to->wq.state == IBV_WQS_ERR)
		f->qp.state = IBV_QPS_ERR;
}

/* fake_lock held, so that frames are steered in order with the changes of flows. False: none has come. */
static bool receive(struct fake_qp *f)
{
	static uint8_t frame[MAX_FRAME];
	union {
		struct cmsghdr align;
		char bytes[128];
	} control;
	struct sockaddr_ll from;
	struct iovec iov = { frame, sizeof frame - 4 - FCS };	/* room for a VLAN tag */
	struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof control };
	ssize_t n = recvmsg(f->fd, &message, MSG_DONTWAIT);
	const struct flow *flow;
	size_t length;

	if (n < ETH_HLEN)
		return n >= 0;
	length = fake_insert_tag(frame, (size_t)n, &message);
	flow = is_steerable(f) ? steer(f, frame, length, from.sll_pkttype) : NULL;
	fake_append_fcs(frame, length);
	if (flow)
		deliver(f, frame, length, flow);
	return true;
}

static void *run(void *arg)
{
	struct fake_qp *f = arg;
	struct pollfd fds[2] = { { .fd = f->fd, .events = POLLIN }, { .fd = f->wake[0], .events = POLLIN } };

	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			fake_wrong("poll: %s", strerror(errno));
		if (fds[1].revents)
			return NULL;
		pthread_mutex_lock(&fake_lock);
		receive(f);
		pthread_mutex_unlock(&fake_lock);
	}
}

/* --- flows ------------------------------------------------------------------------------------------------ */

static bool is_refused(const struct ibv_flow_attr *attr)
{
	const struct ibv_flow_spec *spec = (const struct ibv_flow_spec *)(attr + 1);

	for (int i = 0; i < attr->num_of_specs; i++) {
		int type = (int)spec->hdr.type;

		if (fake_lacks("tunnels") &&
		    (type & IBV_FLOW_SPEC_INNER || (type >= IBV_FLOW_SPEC_VXLAN_TUNNEL && type <= IBV_FLOW_SPEC_MPLS)))
			return true;
		if (fake_lacks("tags") && type == IBV_FLOW_SPEC_ACTION_TAG)
			return true;
		spec = (const struct ibv_flow_spec *)((const uint8_t *)spec + spec->hdr.size);
	}
	return (fake_lacks("copy") && (attr->flags || attr->type == IBV_FLOW_ATTR_SNIFFER)) ||
	       (fake_lacks("partial") && fake_flow_is_partial(attr));
}

/* fake_lock held. Until a QP has a flow, frames are not its business. */
static void listen_to(struct fake_qp *f)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(f->netdev) };

	if (f->listens)
		return;
	f->listens = true;
	CHECK(!bind(f->fd, (struct sockaddr *)&at, sizeof at) && !pipe(f->wake));
	CHECK(!pthread_create(&f->thread, NULL, run, f));
}

static struct ibv_flow *create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr)
{
	struct fake_qp *f = find_qp(qp);
	struct flow *flow;

	CHECK(f && is_steerable(f) && (f->table || f->cap.max_recv_wr));
	fake_check_flow(attr);
	if (is_refused(attr)) {
		errno = EINVAL;
		return NULL;
	}
	flow = calloc(1, sizeof *flow);
	flow->flow.context = qp->context;
	flow->qp = f;
	flow->attr = malloc(attr->size);
	memcpy(flow->attr, attr, attr->size);
	pthread_mutex_lock(&fake_lock);
	listen_to(f);
	while (receive(f))	/* came before it */
		;
	flow->age = ages++;
	flow->next = f->flows;
	f->flows = flow;
	pthread_mutex_unlock(&fake_lock);
	return &flow->flow;
}

static int destroy_flow(struct ibv_flow *ibv)
{
	struct flow *flow = (struct flow *)ibv, **at;

	pthread_mutex_lock(&fake_lock);
	while (receive(flow->qp))
		;
	for (at = &flow->qp->flows; *at && *at != flow; at = &(*at)->next)
		;
	CHECK(*at);
	*at = flow->next;
	pthread_mutex_unlock(&fake_lock);
	free(flow->attr);
	free(flow);
	return 0;
}

/* --- QPs ------------------------------------------------------------------------------------------------------ */

static void name_netdev(const struct ibv_context *context, char name[IF_NAMESIZE])
{
	char path[600], format[16];
	FILE *file;

	snprintf(path, sizeof path, "%s/parent", context->device->ibdev_path);
	snprintf(format, sizeof format, "%%%ds", IF_NAMESIZE - 1);
	file = fopen(path, "re");
	CHECK(file && fscanf(file, format, name) == 1);
	fclose(file);
}

/* Returns an errno value. */
static int open_socket(struct fake_qp *f)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex(f->netdev) };
	int one = 1, size = 16 << 20;

	f->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (f->fd < 0)
		return errno;
	setsockopt(f->fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof one);
	setsockopt(f->fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
	return bind(f->fd, (struct sockaddr *)&at, sizeof at) ? errno : 0;
}

/* Returns NULL and sets errno if the process may not. */
static struct fake_qp *make_qp(struct ibv_context *context, struct ibv_pd *pd, void *qp_context)
{
	static uint32_t numbers = 0x800000;
	struct fake_qp *f = calloc(1, sizeof *f);
	int err;

	name_netdev(context, f->netdev);
	err = open_socket(f);
	if (err) {
		if (f->fd >= 0)
			close(f->fd);
		free(f);
		errno = err;
		return NULL;
	}
	pthread_mutex_lock(&fake_lock);
	f->qp = (struct ibv_qp){ .context = context, .qp_context = qp_context, .pd = pd, .qp_type = IBV_QPT_RAW_PACKET,
		.qp_num = numbers++, .state = IBV_QPS_RESET };
	f->next = fake_qps;
	fake_qps = f;
	pthread_mutex_unlock(&fake_lock);
	return f;
}

/* One with queues of its own. */
static struct ibv_qp *make_plain(struct ibv_context *context, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
				 uint16_t max_tso_header, bool fcs)
{
	struct fake_qp *f = make_qp(context, pd, attr->qp_context);

	if (!f)
		return NULL;
	CHECK(attr->cap.max_recv_sge <= MAX_SGE && attr->cap.max_send_sge <= MAX_SGE && !attr->cap.max_inline_data);
	CHECK(attr->cap.max_send_wr || attr->cap.max_recv_wr);
	f->cap = attr->cap;
	f->max_tso_header = max_tso_header;
	pthread_mutex_lock(&fake_lock);
	f->qp.send_cq = attr->send_cq;
	f->qp.recv_cq = attr->recv_cq;
	f->send = fake_queue(attr->send_cq);
	f->send->users++;
	fake_receives_open(&f->receives, f->cap.max_recv_wr, f->cap.max_recv_sge, attr->recv_cq);
	f->receives.fcs = fcs;
	f->receives.wq.wq_num = f->qp.qp_num;
	pthread_mutex_unlock(&fake_lock);
	return &f->qp;
}

static struct ibv_qp *make_over_table(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	struct table *table = (struct table *)attr->rwq_ind_tbl;
	struct fake_qp *f;

	CHECK(attr->comp_mask == (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH));
	CHECK(table && !attr->cap.max_send_wr && !attr->cap.max_recv_wr && !attr->srq);
	if (!fake_check_hash(&attr->rx_hash_conf, table->size)) {
		errno = EINVAL;
		return NULL;
	}
	f = make_qp(context, attr->pd, attr->qp_context);
	if (!f)
		return NULL;
	pthread_mutex_lock(&fake_lock);
	f->table = table;
	f->fields = attr->rx_hash_conf.rx_hash_fields_mask;
	memcpy(f->key, attr->rx_hash_conf.rx_hash_key, HASH_KEY);
	table->users++;
	pthread_mutex_unlock(&fake_lock);
	return &f->qp;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	if (attr->qp_type != IBV_QPT_RAW_PACKET)
		return REAL(ibv_create_qp)(pd, attr);
	return make_plain(pd->context, pd, attr, 0, false);
}

/* Only raw QPs are made by it here. */
static struct ibv_qp *create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	CHECK(attr->qp_type == IBV_QPT_RAW_PACKET && attr->pd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return make_over_table(context, attr);
	CHECK(attr->comp_mask == (IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER |
				  (attr->create_flags ? IBV_QP_INIT_ATTR_CREATE_FLAGS : 0u)));
	CHECK(!attr->create_flags || (attr->create_flags == IBV_QP_CREATE_SCATTER_FCS && !fake_lacks("fcs")));
	CHECK(attr->max_tso_header && attr->max_tso_header <= 128 && !fake_lacks("offloads"));
	return make_plain(context, attr->pd, (struct ibv_qp_init_attr *)attr, attr->max_tso_header,
			  attr->create_flags);
}

static void check_step(const struct fake_qp *f, const struct ibv_qp_attr *attr, int mask)
{
	if (attr->qp_state == IBV_QPS_INIT)
		CHECK(f->qp.state == IBV_QPS_RESET && mask == (IBV_QP_STATE | IBV_QP_PORT) && attr->port_num == 1);
	else
		CHECK(mask == IBV_QP_STATE);
	if (attr->qp_state == IBV_QPS_RTR || attr->qp_state == IBV_QPS_RTS)
		CHECK((int)f->qp.state == (int)attr->qp_state - 1);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *f = find_qp(qp);

	if (!f)
		return REAL(ibv_modify_qp)(qp, attr, mask);
	if (f->table && fake_lacks("joint"))	/* as mlx5 */
		return EOPNOTSUPP;
	check_step(f, attr, mask);
	pthread_mutex_lock(&fake_lock);
	f->qp.state = attr->qp_state;
	fake_receives_to_state(&f->receives, attr->qp_state == IBV_QPS_ERR ? IBV_WQS_ERR :
			       attr->qp_state == IBV_QPS_RESET ? IBV_WQS_RESET : IBV_WQS_RDY);
	CHECK(attr->qp_state != IBV_QPS_RESET || !f->flows);
	pthread_mutex_unlock(&fake_lock);
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct fake_qp *f = find_qp(qp), **at;

	if (!f)
		return REAL(ibv_destroy_qp)(qp);
	CHECK(!f->flows);
	if (f->listens) {
		CHECK(write(f->wake[1], "", 1) == 1);
		pthread_join(f->thread, NULL);
		close(f->wake[0]);
		close(f->wake[1]);
	}
	pthread_mutex_lock(&fake_lock);
	for (at = &fake_qps; *at != f; at = &(*at)->next)
		;
	*at = f->next;
	if (f->table) {
		f->table->users--;
	} else {
		f->send->users--;
		fake_receives_close(&f->receives);
	}
	pthread_mutex_unlock(&fake_lock);
	close(f->fd);
	free(f);
	return 0;
}

/* The rate is not kept: frames leave at once. A line tells what was asked for, if FAKE_ETH_TELLS is set. */
static int rate_limit(struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)
{
	struct fake_qp *f = find_qp(qp);

	CHECK(f && f->qp.state == IBV_QPS_RTS && !attr->comp_mask);
	CHECK(!attr->rate_limit || (attr->rate_limit >= RATE_MIN && attr->rate_limit <= RATE_MAX));
	CHECK(attr->rate_limit || (!attr->max_burst_sz && !attr->typical_pkt_sz));
	if (getenv("FAKE_ETH_TELLS"))
		printf("rate %u burst %u frame %u\n", attr->rate_limit, attr->max_burst_sz, attr->typical_pkt_sz);
	return 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	CHECK(cq && attr->attr_mask == IBV_CQ_ATTR_MODERATE);
	CHECK(attr->moderate.cq_count <= MAX_MODERATE && attr->moderate.cq_period <= MAX_MODERATE);
	CHECK(attr->moderate.cq_count || !attr->moderate.cq_period);
	if (getenv("FAKE_ETH_TELLS"))
		printf("moderate %u %u\n", attr->moderate.cq_count, attr->moderate.cq_period);
	return 0;
}

/* --- the device --------------------------------------------------------------------------------------------------- */

void fake_describe(struct ibv_device_attr_ex *attr)
{
	if (!fake_lacks("offloads")) {
		attr->raw_packet_caps = IBV_RAW_PACKET_CAP_IP_CSUM;
		attr->raw_packet_caps |= fake_lacks("fcs") ? 0 : IBV_RAW_PACKET_CAP_SCATTER_FCS;
		attr->tso_caps = (struct ibv_tso_caps){ .max_tso = MAX_TSO,
			.supported_qpts = 1u << IBV_QPT_RAW_PACKET };
	}
	if (!fake_lacks("pace"))
		attr->packet_pacing_caps = (struct ibv_packet_pacing_caps){ .qp_rate_limit_min = RATE_MIN,
			.qp_rate_limit_max = RATE_MAX, .supported_qpts = 1u << IBV_QPT_RAW_PACKET };
	if (!fake_lacks("moderation"))
		attr->cq_mod_caps = (struct ibv_cq_moderation_caps){ MAX_MODERATE, MAX_MODERATE };
	if (!fake_lacks("stamps")) {
		attr->hca_core_clock = CLOCK_KHZ;
		attr->completion_timestamp_mask = (1ull << CLOCK_BITS) - 1;
	}
	if (!fake_lacks("queues"))
		attr->rss_caps = (struct ibv_rss_caps){ .supported_qpts = 1u << IBV_QPT_RAW_PACKET,
			.max_rwq_indirection_tables = 1000, .max_rwq_indirection_table_size = MAX_TABLE,
			.rx_hash_fields_mask = HASH_FIELDS, .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ };
}

void fake_replace(struct ibv_context *context, struct verbs_context *verbs)
{
	fake_real_poll = context->ops.poll_cq;
	fake_real_notify = context->ops.req_notify_cq;
	fake_real_post_send = context->ops.post_send;
	real_post_recv = context->ops.post_recv;
	context->ops.poll_cq = fake_poll;
	context->ops.req_notify_cq = fake_notify;
	context->ops.post_send = fake_post_send;
	context->ops.post_recv = fake_post_recv;
	verbs->create_cq_ex = fake_create_cq_ex;
	verbs->create_qp_ex = create_qp_ex;
	verbs->ibv_create_flow = create_flow;
	verbs->ibv_destroy_flow = destroy_flow;
	verbs->modify_qp_rate_limit = rate_limit;
	verbs->modify_cq = modify_cq;
	verbs->query_rt_values = fake_query_rt;
	verbs->create_wq = fake_create_wq;
	verbs->modify_wq = fake_modify_wq;
	verbs->destroy_wq = fake_destroy_wq;
	verbs->create_rwq_ind_table = fake_create_table;
	verbs->destroy_rwq_ind_table = fake_destroy_table;
}
