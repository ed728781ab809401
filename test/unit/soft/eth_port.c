/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_port.c - see eth_port.h. */
#include <dlfcn.h>
#include <sys/epoll.h>
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/srq.h"
#include "dapl/soft/verbs/post.h"
#include "dapl/soft/verbs/qp_life.h"
#include "test/unit/soft/eth_port.h"
#include "test/unit/unit.h"

static char port_memory, group_memory, library_memory, rule_memory;
struct eth_port *const the_port = (struct eth_port *)&port_memory;
struct eth_group *const the_group = (struct eth_group *)&group_memory;

struct eth_around around;
struct dapl_device eth_device = { .progress_lock = DAPL_MUTEX_INIT(RANK_SOFT_PROGRESS) };
struct ibv_qp *raw;
int eth_socket[2];
static struct dapl_eth_frame records[FRAMES];
static struct soft_pd pd;
static struct ibv_cq *receive_cq;
static struct ibv_srq *srq;

static void step(const char *name) { strcat(strcat(around.steps, name), " "); }

void assert_steps(const char *steps)
{
	assert_string_equal(around.steps, steps);
	around.steps[0] = 0;
}

static void assert_locked(const struct soft_qp *qp, bool locked) { assert_int_equal(qp->lock.state != 0, locked); }

/* --- the port -------------------------------------------------------------------------------------------------- */

static void (*want_purge)(void *context);
static void *purge_context;

static int port_query(int index, struct dapl_eth_attr *attr, uint16_t *link_type)
{
	assert_int_equal(index, INDEX);
	*link_type = around.link_type;
	around.queries++;
	*attr = (struct dapl_eth_attr){ .mtu = MTU, .caps = ETH_CAP_COPY };
	return around.query_error;
}

static int port_open(int index, const struct dapl_eth_config *config, bool bypass, void (*want)(void *context),
		     void *context, const char **tried, struct eth_port **port)
{
	assert_int_equal(index, INDEX);
	*tried = around.tried;
	around.opened = true;
	around.config = *config;
	around.bypass = bypass;
	want_purge = want;
	purge_context = context;
	if (!around.open_error)
		*port = the_port;
	return around.open_error;
}

static void port_close(struct eth_port *port)
{
	assert_ptr_equal(port, the_port);
	assert_false(around.timer_fd && !fcntl(around.timer_fd, F_GETFD));	/* sends have ended before */
	step("close");
}

static int port_descriptor(const struct eth_port *port)
{
	assert_ptr_equal(port, the_port);
	return eth_socket[0];
}

static int port_add_rule(struct eth_place at, const struct dapl_eth_rule *rule, void **added)
{
	around.at = at;
	*added = &rule_memory;
	return around.rule_error;
}

static void port_free_rule(struct eth_place at, void *rule)
{
	assert_ptr_equal(rule, &rule_memory);
	around.at = at;
}

static void port_free_all_rules(struct eth_port *port)
{
	assert_ptr_equal(port, the_port);
	step("rules");
}

static int port_move_rule(struct eth_place from, void *rule, struct eth_place to, void **moved)
{
	around.at = from;
	around.to = to;
	*moved = rule;
	return around.rule_error;
}

static bool port_purge(struct eth_port *port)
{
	assert_ptr_equal(port, the_port);
	return around.purge_again;
}

static void port_count_rule(struct eth_place at, const void *rule, uint64_t *frames, uint64_t *bytes)
{
	assert_ptr_equal(rule, &rule_memory);
	around.at = at;
	*frames = 3;
	*bytes = 180;
}

static int port_create_group(struct eth_port *const *ports, uint32_t n, const struct dapl_eth_rss *rss,
			     struct eth_group **group)
{
	for (uint32_t i = 0; i < n; i++)
		assert_ptr_equal(ports[i], the_port);
	around.ports = n;
	*group = the_group;
	assert_int_equal(rss->size, 1);
	return around.group_error;
}

static int port_set_group(struct eth_group *group, const uint16_t *table)
{
	assert_ptr_equal(group, the_group);
	assert_int_equal(table[0], 0);
	return around.group_error;
}

static void port_free_group(struct eth_group *group)
{
	assert_ptr_equal(group, the_group);
	step("group");
}

static bool port_has_frame(struct eth_port *port) { return around.frames > 0; }

/* Without pieces it only looks at what has come by rules that are gone. */
static int port_receive(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame)
{
	if (!n) {
		step("drain");
		return EAGAIN;
	}
	assert_int_equal(iov[0].iov_len, LENGTH);
	if (!around.frames)
		return EAGAIN;
	around.frames--;
	*frame = (struct dapl_eth_frame){ .length = LENGTH, .tag = (uint32_t)around.frames };
	return 0;
}

static int port_poll(struct eth_port *port, struct dapl_eth_frame *frames, int max)
{
	assert_ptr_equal(port, the_port);
	step("poll");
	frames[0].tag = 5;
	return max;
}

static int port_release(struct eth_port *port, uint32_t oldest)
{
	assert_ptr_equal(port, the_port);
	return oldest == 2 ? 0 : EINVAL;
}

static int port_stamp(struct eth_port *port, uint64_t *stamp)
{
	assert_locked((struct soft_qp *)raw, true);
	around.stamps++;
	return EAGAIN;
}

static void port_stats(struct eth_port *port, struct dapl_eth_stats *stats)
{
	assert_ptr_equal(port, the_port);
	*stats = (struct dapl_eth_stats){ .received = 7 };
}

static struct eth_port_ops port_ops = { .query = port_query, .open = port_open, .close = port_close,
	.descriptor = port_descriptor, .add_rule = port_add_rule, .free_rule = port_free_rule,
	.free_all_rules = port_free_all_rules, .move_rule = port_move_rule, .purge = port_purge,
	.count_rule = port_count_rule, .create_group = port_create_group, .set_group = port_set_group,
	.free_group = port_free_group, .has_frame = port_has_frame, .receive = port_receive, .poll = port_poll,
	.release = port_release, .stamp = port_stamp, .stats = port_stats };

/* --- the library, and memory ---------------------------------------------------------------------------------- */

REPLACE(dlopen, dlclose)
EXTEND(dlsym, calloc)

void *__wrap_dlopen(const char *path, int flags)
{
	around.loads++;
	assert_int_equal(flags, RTLD_NOW | RTLD_LOCAL);
	snprintf(around.path, sizeof around.path, "%s", path);
	return around.no_library ? NULL : &library_memory;
}

void *__wrap_dlsym(void *library, const char *name)
{
	if (library != &library_memory)
		return __real_dlsym(library, name);
	assert_string_equal(name, "dapl_softeth_ops");
	port_ops.version = ETH_PORT_VERSION + around.other_version;
	return around.no_symbol ? NULL : &port_ops;
}

int __wrap_dlclose(void *library)
{
	assert_ptr_equal(library, &library_memory);
	around.unloads++;
	return 0;
}

void *__wrap_calloc(size_t n, size_t size)
{
	return around.fails_size && size == around.fails_size ? NULL : __real_calloc(n, size);
}

REPLACE(log_report)
void __wrap_log_report(enum log_id id, const struct log_fields *fields, const char *fmt, ...)
{
	va_list args;

	around.reports++;
	around.report = id;
	va_start(args, fmt);
	vsnprintf(around.report_text, sizeof around.report_text, fmt, args);
	va_end(args);
}

REPLACE(soft_mem_local)
enum soft_check __wrap_soft_mem_local(const struct dapl_device *dev, const struct ibv_pd *pd, const struct ibv_sge *sge,
				      int access, char **at)
{
	assert_ptr_equal(dev, &eth_device);
	*at = (char *)(uintptr_t)sge->addr;
	return around.unregistered || access != IBV_ACCESS_LOCAL_WRITE ? SOFT_BAD_STAG : SOFT_FINE;
}

/* --- the QP of obj/ --------------------------------------------------------------------------------------------- */

REPLACE(soft_qp_create)
int __wrap_soft_qp_create(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
			  struct ibv_qp **ibqp)
{
	struct soft_qp *qp;

	if (around.create_error)
		return around.create_error;
	qp = __real_calloc(1, sizeof *qp);
	dapl_mutex_init(&qp->lock, RANK_SOFT_QP);
	qp->dev = dev;
	qp->state = IBV_QPS_RTS;
	qp->srq = (struct soft_srq *)attr->srq;
	assert_int_equal(soft_rq_init(&qp->rq, RECEIVES, 1), 0);
	qp->taken = __real_calloc(1, sizeof *qp->taken + sizeof(struct ibv_sge));
	qp->qp = (struct ibv_qp){ .context = &dev->verbs, .pd = pd, .qp_num = 7, .qp_type = attr->qp_type,
		.recv_cq = receive_cq };
	*ibqp = &qp->qp;
	step("create");
	return 0;
}

REPLACE(soft_qp_reset)
int __wrap_soft_qp_reset(struct dapl_device *dev, struct ibv_qp *qp)
{
	assert_ptr_equal(dev, &eth_device);
	step("reset");
	return around.reset_error;
}

REPLACE(soft_qp_error)
int __wrap_soft_qp_error(struct ibv_qp *qp)
{
	((struct soft_qp *)qp)->state = IBV_QPS_ERR;
	step("error");
	return 0;
}

REPLACE(soft_qp_destroy)
int __wrap_soft_qp_destroy(struct ibv_qp *qp)
{
	step("destroy");
	free(((struct soft_qp *)qp)->taken);
	free(((struct soft_qp *)qp)->rq.ring);
	free(qp);
	return 0;
}

/* --- progress, and sends -------------------------------------------------------------------------------- */

static struct soft_input *watched;
static struct dapl_timer *purge_timer;
static void (*purge_fire)(struct dapl_timer *);

REPLACE(epoll_ctl, dapl_timer_start, dapl_timer_drain)

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
	assert_int_equal(epoll, eth_device.data_epoll);
	assert_int_not_equal(eth_device.progress_lock.state, 0);
	assert_int_equal(fd, eth_socket[0]);
	assert_int_equal(around.watching, op == EPOLL_CTL_DEL);
	if (op == EPOLL_CTL_DEL) {
		around.watching = false;
		step("stop");
		return 0;
	}
	around.watches++;
	watched = event->data.ptr;
	around.watching = !around.watch_error;
	errno = around.watch_error;
	return errno ? -1 : 0;
}

void progress_owner_with(uint32_t events)
{
	dapl_mutex_lock(&eth_device.progress_lock);
	watched->serve(watched, events, true);
	soft_progress_unlock(&eth_device);
	around.completions += soft_cq_take((struct soft_cq *)receive_cq, RECEIVES, around.wc + around.completions);
	if (around.completions)
		around.status = around.wc[around.completions - 1].status;
	assert_locked((struct soft_qp *)raw, false);
}

void progress_owner(void) { progress_owner_with(EPOLLIN); }

void __wrap_dapl_timer_start(struct dapl_timer *timer, uint64_t us, void (*fire)(struct dapl_timer *))
{
	around.timer_us = us;
	purge_timer = timer;
	purge_fire = fire;
}

void __wrap_dapl_timer_drain(struct dapl_timer *timer) { step("timer"); }

void purge_timer_fires(void)
{
	if (!around.timer_us)
		want_purge(purge_context);
	around.timer_us = 0;
	purge_fire(purge_timer);
}

/* --- a case ----------------------------------------------------------------------------------------------------- */

struct ibv_recv_wr receive_of(struct ibv_sge *sge)
{
	*sge = (struct ibv_sge){ .addr = (uintptr_t)&port_memory, .length = LENGTH };
	return (struct ibv_recv_wr){ .wr_id = 1, .sg_list = sge, .num_sge = 1 };
}

void post_shared(int n)
{
	struct ibv_sge sge;
	struct ibv_recv_wr wr = receive_of(&sge), *bad;

	while (n--)
		assert_int_equal(soft_srq_post(srq, &wr, &bad), 0);
}

struct soft_eth *eth_of(struct ibv_qp *qp) { return ((struct soft_qp *)qp)->eth; }

struct ibv_qp *raw_new(bool shared)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RAW_PACKET,
		.srq = shared ? srq : NULL };
	struct ibv_qp *qp;

	assert_int_equal(soft_eth_create_qp(&eth_device, NULL, &attr, &qp), 0);
	return qp;
}

int begin(struct ibv_qp *qp, uint32_t ring_frames)
{
	const struct dapl_eth_config config = { .ring_frames = ring_frames, .frames = records, .mask = FRAMES - 1 };

	return soft_eth_ops.begin(qp, &config);
}

int fail_qp(struct ibv_qp *qp)
{
	int err = soft_eth_error_qp(qp);

	assert_locked((struct soft_qp *)qp, false);
	return err;
}

static void renew(bool srq, uint32_t ring_frames)
{
	raw = raw_new(srq);
	assert_int_equal(begin(raw, ring_frames), 0);
	around.steps[0] = 0;
}

void raw_renew(bool srq, uint32_t ring_frames)
{
	soft_eth_destroy_qp(raw);
	renew(srq, ring_frames);
}

int eth_port_set_up(void **state)
{
	struct ibv_srq_init_attr shared = { .attr = { .max_wr = RECEIVES, .max_sge = 1 } };

	around = (struct eth_around){ .loads = 0 };
	pd.pd.context = &eth_device.verbs;
	dapl_mutex_init(&eth_device.async.lock, RANK_SOFT_EVENTS);
	TAILQ_INIT(&eth_device.async.list);
	assert_int_equal(soft_cq_create(&eth_device, 2 * RECEIVES, NULL, NULL, &receive_cq), 0);
	assert_int_equal(soft_srq_create(&pd.pd, &shared, &srq), 0);
	strcpy(eth_device.netdev, "eth9");
	eth_device.netdev_index = INDEX;
	memset(records, 0, sizeof records);
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, eth_socket), 0);
	renew(false, 0);
	return 0;
}

int eth_port_tear_down(void **state)
{
	around.steps[0] = 0;
	assert_int_equal(((struct soft_qp *)raw)->lock.state, 0);
	assert_int_equal(soft_eth_destroy_qp(raw), 0);
	assert_false(around.watching);
	assert_int_equal(soft_srq_destroy(srq), 0);
	assert_int_equal(soft_cq_destroy(receive_cq), 0);
	close(eth_socket[0]);
	close(eth_socket[1]);
	return 0;
}
