/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth.c - raw Ethernet QPs: their life, their rules and groups, and loading of the library with the packet sockets.
 * Sending is in send.c, receiving in receive.c.
 *
 * A raw QP has an ibv_context of its own, whose operations post to it: other QPs do not see that there are raw
 * ones. */
#include <dlfcn.h>
#include <errno.h>
#include <net/if_arp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/clock.h"
#include "common/container_of.h"
#include "common/log.h"
#include "dapl/soft/eth/eth.h"
#include "dapl/soft/eth/raw.h"
#include "dapl/soft/eth/receive.h"
#include "dapl/soft/eth/send.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/tunables.h"
#include "dapl/soft/verbs/qp_life.h"
#include "dapl/softeth/port.h"

/* --- the library ------------------------------------------------------------------------ */

const struct eth_port_ops *soft_eth_ports;	/* NULL: could not be loaded */

static void load_ports(void)
{
	const struct eth_port_ops *found;
	const char *slash;
	char path[4096];
	void *library;
	Dl_info own;

	if (!dladdr((void *)load_ports, &own) || !(slash = strrchr(own.dli_fname, '/')))
		snprintf(path, sizeof path, "libdaplsoft-eth.so");
	else
		snprintf(path, sizeof path, "%.*slibdaplsoft-eth.so", (int)(slash + 1 - own.dli_fname),
			 own.dli_fname);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	found = library ? dlsym(library, "dapl_softeth_ops") : NULL;
	if (found && found->version == ETH_PORT_VERSION) {
		soft_eth_ports = found;
		return;
	}
	log_report(REPORT_LIBRARY_NOT_LOADED, NULL, "soft: no raw Ethernet endpoints: %s",
		   found ? "libdaplsoft-eth.so is of another version than libdaplsoft.so.2" : dlerror());
	if (library)
		dlclose(library);
}

static int need_ports(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_ports);
	return soft_eth_ports ? 0 : ENOENT;
}

/* ETH-41 */
static void report_link_type(const struct dapl_device *dev, uint16_t found)
{
	log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = EOPNOTSUPP), "soft: raw Ethernet endpoints on %s: found link "
		   "type %u, expected Ethernet (%u) or loopback (%u)", dev->netdev, found, ARPHRD_ETHER,
		   ARPHRD_LOOPBACK);
}

static int query(struct dapl_device *dev, struct dapl_eth_attr *attr)
{
	uint16_t link_type;
	int err = need_ports();

	if (err)
		return err;
	err = soft_eth_ports->query(dev->netdev_index, attr, &link_type);
	if (err == EOPNOTSUPP)
		report_link_type(dev, link_type);
	if (err)
		return err;
	attr->caps |= ETH_CAP_PACE | ETH_CAP_LAUNCH | ETH_CAP_MODERATE;
	attr->rate_min = ETH_RATE_MIN;
	attr->rate_max = ETH_RATE_MAX;
	return 0;
}

/* Time stamps are of CLOCK_REALTIME: there is no other clock. */
static int read_clock(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns)
{
	(void)dev;
	*device_ns = *system_ns = clock_read_ns(CLOCK_REALTIME);
	*error_ns = 0;
	return need_ports();
}

static struct soft_eth *eth_of(struct ibv_qp *ibqp)
{
	return soft_qp(ibqp)->eth;
}

/* --- frames of a ring ----------------------------------------------------------------------- */

static int poll_ring(struct ibv_qp *qp, struct dapl_eth_frame *frames, int max)
{
	return soft_eth_ports->poll(eth_of(qp)->port, frames, max);
}

static int release(struct ibv_qp *qp, uint32_t oldest)
{
	return soft_eth_ports->release(eth_of(qp)->port, oldest);
}

static void stats(struct ibv_qp *qp, struct dapl_eth_stats *now)
{
	soft_eth_ports->stats(eth_of(qp)->port, now);
	dapl_mutex_lock(&eth_of(qp)->qp->lock);
	now->late = eth_of(qp)->late;
	dapl_mutex_unlock(&eth_of(qp)->qp->lock);
}

/* --- rules and groups ----------------------------------------------------------------------- */

struct soft_group {
	struct ibv_qp qp;
	struct dapl_device *dev;
	struct eth_group *group;
};

static struct soft_group *group_of(struct ibv_qp *qp)
{
	return (struct soft_group *)qp;
}

static struct eth_place place_of(struct ibv_qp *qp)
{
	return dapl_eth_is_group(qp) ? (struct eth_place){ .group = group_of(qp)->group } :
		(struct eth_place){ .port = eth_of(qp)->port };
}

static const struct dapl_device *device_of(struct ibv_qp *qp)
{
	return dapl_eth_is_group(qp) ? group_of(qp)->dev : eth_of(qp)->qp->dev;
}

/* ETH-28 */
static int add_rule(struct ibv_qp *qp, const struct dapl_eth_rule *rule, void **added)
{
	int err = soft_eth_ports->add_rule(place_of(qp), rule, added);

	if (err == EPERM && rule->mode != ETH_COPY)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.err = err), "soft: rule that takes frames of %s from the "
			   "kernel: the process lacks CAP_BPF or CAP_NET_ADMIN of the initial user namespace",
			   device_of(qp)->netdev);
	return err;
}

static void free_rule(struct ibv_qp *qp, void *rule)
{
	soft_eth_ports->free_rule(place_of(qp), rule);
}

static void purge(struct dapl_timer *timer)
{
	struct soft_eth *eth = container_of(timer, struct soft_eth, purge_timer);

	if (soft_eth_ports->purge(eth->port))
		dapl_timer_start(timer, ETH_PURGE_US, purge);
}

static void want_purge(void *eth)
{
	dapl_timer_start(&((struct soft_eth *)eth)->purge_timer, ETH_PURGE_US, purge);
}

static int move_rule(struct ibv_qp *from, void *rule, struct ibv_qp *to, void **moved)
{
	return soft_eth_ports->move_rule(place_of(from), rule, place_of(to), moved);
}

static void count_rule(struct ibv_qp *qp, void *rule, uint64_t *frames, uint64_t *bytes)
{
	soft_eth_ports->count_rule(place_of(qp), rule, frames, bytes);
}

static int create_group(struct dapl_device *dev, struct ibv_qp *const *qps, uint32_t n, const struct dapl_eth_rss *rss,
			struct ibv_qp **group)
{
	struct soft_group *new = calloc(1, sizeof *new);
	struct eth_port **ports = calloc(n, sizeof *ports);
	int err = new && ports ? 0 : ENOMEM;

	for (uint32_t i = 0; !err && i < n; i++)
		ports[i] = eth_of(qps[i])->port;
	if (!err)
		err = soft_eth_ports->create_group(ports, n, rss, &new->group);
	free(ports);
	if (err) {
		free(new);
		return err;
	}
	new->dev = dev;
	new->qp.qp_type = IBV_QPT_DRIVER;
	*group = &new->qp;
	return 0;
}

static int set_group(struct ibv_qp *group, const uint16_t *table)
{
	return soft_eth_ports->set_group(group_of(group)->group, table);
}

static void free_group(struct ibv_qp *group)
{
	soft_eth_ports->free_group(group_of(group)->group);
	free(group);
}

/* --- life --------------------------------------------------------------------------------- */

/* `tried`: the step of AF_XDP that failed, and what it needs. */
static void say_why(const struct dapl_device *dev, int err, const char *tried)
{
	if (tried)
		log_report(err == EPERM ? REPORT_NO_CAPABILITY : REPORT_OPEN_FAILED, LOG_FIELDS(.err = err),
			   "soft: raw Ethernet endpoint by AF_XDP on %s: %s: %s", dev->netdev, tried, strerror(err));
	else if (err == EPERM)
		log_report(REPORT_NO_CAPABILITY, LOG_FIELDS(.err = err), "soft: raw Ethernet endpoint on %s: the "
			   "process lacks the capability CAP_NET_RAW (setcap cap_net_raw+ep PROGRAM, or root)",
			   dev->netdev);
	else
		log_report(REPORT_OPEN_FAILED, LOG_FIELDS(.err = err), "soft: raw Ethernet endpoint on %s: %s",
			   dev->netdev, strerror(err));
}

static int begin(struct ibv_qp *ibqp, const struct dapl_eth_config *config)
{
	struct soft_eth *eth = eth_of(ibqp);
	struct dapl_device *dev = eth->qp->dev;
	const char *tried = NULL;
	int err = need_ports();

	if (err)
		return err;
	eth->config = *config;
	err = soft_eth_ports->open(dev->netdev_index, config, dev->eth_bypass, want_purge, eth, &tried, &eth->port);
	if (err)
		say_why(dev, err, tried);
	return err ? err : soft_eth_receive_begin(eth);
}

int soft_eth_create_qp(struct dapl_device *dev, struct ibv_pd *pd, struct ibv_qp_init_attr *attr,
		       struct ibv_qp **ibqp)
{
	struct soft_eth *eth;
	int err;

	if (!(eth = calloc(1, sizeof *eth)))
		return ENOMEM;
	err = soft_qp_create(dev, pd, attr, ibqp);
	if (err) {
		free(eth);
		return err;
	}
	eth->qp = soft_qp(*ibqp);
	eth->qp->eth = eth;
	eth->timer = -1;
	eth->verbs = dev->verbs;
	eth->verbs.ops.post_send = soft_eth_post_send;
	soft_eth_receive_init(eth);
	(*ibqp)->context = &eth->verbs;
	return 0;
}

/* Frees the rules, and has the port discard the frames that came by them. */
static void empty_port(struct soft_eth *eth)
{
	struct dapl_eth_frame frame;
	struct iovec none;

	if (!eth->port)
		return;
	soft_eth_ports->free_all_rules(eth->port);
	if (eth->config.ring_frames)
		soft_eth_ports->poll(eth->port, &frame, 1);
	else
		soft_eth_ports->receive(eth->port, &none, 0, &frame);
}

int soft_eth_error_qp(struct ibv_qp *ibqp)
{
	int err;

	if (eth_of(ibqp)->port)
		soft_eth_ports->free_all_rules(eth_of(ibqp)->port);
	err = soft_qp_error(ibqp);
	dapl_mutex_lock(&eth_of(ibqp)->qp->lock);
	soft_eth_flush_sends(eth_of(ibqp));
	dapl_mutex_unlock(&eth_of(ibqp)->qp->lock);
	return err;
}

int soft_eth_reset_qp(struct dapl_device *dev, struct ibv_qp *ibqp)
{
	int err;

	soft_eth_drop_sends(eth_of(ibqp));
	soft_eth_receive_end(eth_of(ibqp));
	empty_port(eth_of(ibqp));
	err = soft_qp_reset(dev, ibqp);
	eth_of(ibqp)->received = 0;
	return err ? err : soft_eth_receive_begin(eth_of(ibqp));
}

int soft_eth_destroy_qp(struct ibv_qp *ibqp)
{
	struct soft_eth *eth = eth_of(ibqp);

	soft_eth_receive_end(eth);
	soft_eth_end_sends(eth);
	if (eth->port)
		soft_eth_ports->free_all_rules(eth->port);
	dapl_timer_drain(&eth->purge_timer);
	if (eth->port)
		soft_eth_ports->close(eth->port);
	soft_qp_destroy(ibqp);
	free(eth);
	return 0;
}

const struct dapl_eth_ops soft_eth_ops = {
	.carrier = "PACKET",
	.query = query, .begin = begin,
	.create_group = create_group, .set_group = set_group, .free_group = free_group,
	.add_rule = add_rule, .free_rule = free_rule, .move_rule = move_rule, .count_rule = count_rule,
	.poll = poll_ring, .release = release, .arm = soft_eth_arm, .stats = stats,
	.pace = soft_eth_pace, .clock = read_clock, .moderate = soft_cq_moderate,
};
