/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.h - the interface of libdaplsoft-eth.so for libdaplsoft: a port sends frames to one network device,
 * and receives frames from it by rules, over a packet socket or AF_XDP sockets. Queue pairs, registered memory and
 * threads are in dapl/soft/eth. The library is loaded at the first raw endpoint, and has one symbol.
 *
 * Every function returns 0 or a positive errno unless it says otherwise, and may be called by any thread. None
 * blocks, except `open` with AF_XDP: up to a second, while the kernel ends the sockets of a port that was closed. */
#ifndef SOFTETH_PORT_H
#define SOFTETH_PORT_H
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include "dapl/core/eth_device.h"

struct eth_port;
struct eth_group;

/* Where a rule is: at a port or at a group. The other pointer is NULL. */
struct eth_place {
	struct eth_port *port;
	struct eth_group *group;
};

/* A frame of a batch: as the arguments of `send`. */
struct eth_out {
	const struct iovec *iov;
	int n;
	const struct dapl_eth_send *how;
};

struct eth_port_ops {
	uint32_t version;		/* ETH_PORT_VERSION: both libraries come from one build */
	/* Network devices are named by their index. EOPNOTSUPP: frames of the device do not begin with an Ethernet
	 * header; *link_type is its type, ARPHRD_*. */
	int (*query)(int index, struct dapl_eth_attr *attr, uint16_t *link_type);
	/* Calls want_purge, with locks held, when rules or tables are left for frames that are on their way: the
	 * caller then calls purge after a second, and as long as it returns true. `bypass`: frames do not go through
	 * the device's queueing discipline, until one is to be segmented. After an error of AF_XDP *tried tells which
	 * step failed, and what it needs; else it is NULL. */
	int (*open)(int index, const struct dapl_eth_config *config, bool bypass,
		    void (*want_purge)(void *context), void *context, const char **tried, struct eth_port **port);
	void (*close)(struct eth_port *port);
	/* Readable when there are frames to receive. */
	int (*descriptor)(const struct eth_port *port);
	int (*add_rule)(struct eth_place at, const struct dapl_eth_rule *rule, void **added);
	void (*free_rule)(struct eth_place at, void *rule);
	void (*free_all_rules)(struct eth_port *port);	/* and leaves all groups */
	/* To another place on the same network device. */
	int (*move_rule)(struct eth_place from, void *rule, struct eth_place to, void **moved);
	bool (*purge)(struct eth_port *port);
	void (*count_rule)(struct eth_place at, const void *rule, uint64_t *frames, uint64_t *bytes);
	/* EINVAL: the table names a port that has left. */
	int (*create_group)(struct eth_port *const *ports, uint32_t n, const struct dapl_eth_rss *rss,
			    struct eth_group **group);
	int (*set_group)(struct eth_group *group, const uint16_t *table);
	void (*free_group)(struct eth_group *group);	/* and its rules */
	/* A frame in pieces, with the offloads that `how` asks for, if not NULL. EAGAIN: the device's queue is full.
	 * EINVAL: it does not fit the frame; *wrong says why. */
	int (*send)(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how,
		    const char **wrong);
	/* Sends frames in this order, by one system call if possible; none asks for ETH_SEND_STAMP. *sent
	 * is how many have left. The result is that of `send` for the frame behind them; 0: it was not
	 * tried. One thread at a time. */
	int (*send_batch)(struct eth_port *port, const struct eth_out *frames, int n, int *sent, const char **wrong);
	/* The time at which the last frame with ETH_SEND_STAMP left, in ns. EAGAIN: not known yet. */
	int (*stamp)(struct eth_port *port, uint64_t *time);
	/* Checks a frame that is to be sent later. Returns what is wrong with it, or NULL. */
	const char *(*check)(struct eth_port *port, const struct iovec *iov, int n, const struct dapl_eth_send *how);
	/* True if there is a frame to receive. Drops frames before it that no rule matches. With AF_XDP also
	 * after an error of the socket. */
	bool (*has_frame)(struct eth_port *port);
	/* The next frame, into these pieces; its length is what fits. EAGAIN: none. */
	int (*receive)(struct eth_port *port, struct iovec *iov, int n, struct dapl_eth_frame *frame);
	int (*poll)(struct eth_port *port, struct dapl_eth_frame *frames, int max);	/* how many */
	int (*release)(struct eth_port *port, uint32_t oldest);
	void (*stats)(struct eth_port *port, struct dapl_eth_stats *stats);
};

enum { ETH_PORT_VERSION = 7 };
extern const struct eth_port_ops dapl_softeth_ops;

#endif
