/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dat_net.h - libdatnet: routes, next hops, interfaces and their changes, for RDMA programs. Which
 * local addresses and interface adapters reach a destination, in which order, and why others do
 * not. Needs no open IA. Functions return 0 or a positive errno. The library follows the network
 * namespace of the calling thread. */
#ifndef _DAT_NET_H_
#define _DAT_NET_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DAT_NET_NETDEV_MAX 16	/* bytes of an interface's name, with the terminating zero */
#define DAT_NET_IA_MAX 256
#define DAT_NET_DEVICE_MAX 64
#define DAT_NET_LLADDR_MAX 20	/* bytes; IP over InfiniBand has the longest */

/* What carries the connection: `rdma`. */
#define DAT_NET_NONE 0
#define DAT_NET_SOFT 1		/* libdaplsoft */
#define DAT_NET_ROCE 2
#define DAT_NET_IWARP 3
#define DAT_NET_IB 4

/* Why a route cannot be used: `why`. */
#define DAT_NET_OK 0
#define DAT_NET_NO_ROUTE 1	/* the kernel has no route from this address */
#define DAT_NET_PROHIBITED 2	/* a route of type prohibit or blackhole */
#define DAT_NET_LINK_DOWN 3	/* the interface is down, or has no carrier */
#define DAT_NET_NO_ADDRESS 4	/* no usable address of the family on the interface */
#define DAT_NET_NO_DEVICE 5	/* no RDMA device, and no entry of the software device */
#define DAT_NET_NO_PROVIDER 6	/* no entry of dat.conf opens the device with this address */

struct dat_net_route {
	char ia[DAT_NET_IA_MAX];	/* entry of dat.conf that would be opened; "": none */
	char netdev[DAT_NET_NETDEV_MAX];	/* interface that packets leave by; without a route,
						 * the interface that has the address */
	struct sockaddr_storage local;	/* source address, port 0; family 0: there is none */
	struct sockaddr_storage via;	/* next hop; the destination itself if it is on the link.
					 * Family 0: no route */
	uint32_t mtu;			/* bytes; the route's if it has one, else the interface's */
	uint32_t metric;
	uint8_t rank;			/* place in the order; 0: what the kernel would take.
					 * 255: no route, or 255 others before */
	uint8_t rdma;			/* DAT_NET_NONE ... DAT_NET_IB */
	uint8_t why;			/* DAT_NET_OK, or why it cannot be used */
};

#define DAT_NET_ALL 0x1		/* also addresses and interfaces that cannot be used, with `why` */

/* Gives the local addresses and adapters from which `to` can be reached, the preferred first, as
 * one block for dat_net_free(). *list is NULL if there is none. Opens no IA and sends nothing.
 *
 * EINVAL		a pointer is NULL, a flag is unknown, a link-local `to` has no scope, or
 *			`to` is a multicast address
 * EAFNOSUPPORT		`to` is neither IPv4 nor IPv6
 * ENOMEM, EMFILE, ENFILE	no memory, or no descriptor */
extern int dat_net_routes(const struct sockaddr *to, unsigned flags, struct dat_net_route **list,
	size_t *count);

/* Frees what dat_net_routes() or dat_net_nics() gave. NULL is allowed. */
extern void dat_net_free(void *list);

/* Finds out whether `to` can be reached over RDMA, the software device included. 0: *best is the
 * first of the order. EHOSTUNREACH: *best is the nearest miss, with `why`. Other errors as
 * dat_net_routes(). */
extern int dat_net_reachable(const struct sockaddr *to, struct dat_net_route *best);

/* State of a neighbour. */
#define DAT_NET_NEIGHBOUR_NONE 0	/* the interface has no link-layer addresses: length 0 */
#define DAT_NET_NEIGHBOUR_REACHABLE 1	/* confirmed a short time ago */
#define DAT_NET_NEIGHBOUR_STALE 2	/* known, not confirmed recently */
#define DAT_NET_NEIGHBOUR_PERMANENT 3	/* set by the administrator, or of a multicast group */

struct dat_net_neighbour {
	struct sockaddr_storage address;
	uint8_t lladdr[DAT_NET_LLADDR_MAX];
	uint8_t length;			/* bytes of lladdr */
	uint8_t state;
	char netdev[DAT_NET_NETDEV_MAX];
};

#define DAT_NET_ASK 0x1		/* ask the network even if the kernel knows the neighbour */

/* Gives the link-layer address of `hop`, an address on the link of the interface `netdev`. NULL:
 * the interface of the kernel's route. If the kernel does not know it, or with DAT_NET_ASK, the
 * network is asked; the call then blocks for `timeout_ms` at most. With a timeout of 0 nothing is
 * sent, and the kernel's table alone answers.
 *
 * EINVAL		a pointer is NULL, a flag is unknown, the timeout is negative, or a
 *			link-local address has neither scope nor netdev
 * EAFNOSUPPORT		`hop` is neither IPv4 nor IPv6
 * ENODEV		there is no interface `netdev`
 * ENETUNREACH		no route, or `hop` is behind a router
 * ENETDOWN		the interface is down
 * EHOSTUNREACH		no answer
 * ENOMEM, EMFILE, ENFILE	no memory, or no descriptor */
extern int dat_net_neighbour(const struct sockaddr *hop, const char *netdev, unsigned flags,
	int timeout_ms, struct dat_net_neighbour *out);

struct dat_net_nic {
	char netdev[DAT_NET_NETDEV_MAX];
	char device[DAT_NET_DEVICE_MAX];	/* RDMA device; "": none */
	uint32_t port;			/* of the RDMA device; 0: none */
	uint32_t mtu;			/* bytes */
	uint32_t speed_mbit;		/* 0: not known */
	uint8_t rdma;			/* DAT_NET_NONE, _ROCE, _IWARP, _IB */
	uint8_t up;			/* 1: up, and has a carrier */
	uint8_t length;			/* bytes of address */
	uint8_t address[DAT_NET_LLADDR_MAX];
};

/* Gives all interfaces of the namespace, RDMA or not, as one block for dat_net_free(). An interface
 * with several RDMA ports is there once for each.
 *
 * EINVAL		a pointer is NULL
 * ENOMEM, EMFILE, ENFILE	no memory, or no descriptor */
extern int dat_net_nics(struct dat_net_nic **list, size_t *count);

/* What changes: bits of `what`. */
#define DAT_NET_MTU 0x1
#define DAT_NET_LINK 0x2		/* up or down; carrier or none; an interface came or went */
#define DAT_NET_ADDRESS 0x4
#define DAT_NET_ROUTE 0x8
#define DAT_NET_NEIGHBOUR 0x10
#define DAT_NET_RDMA 0x20		/* an RDMA device came or went */
#define DAT_NET_CHANGES 0x3f		/* all of these */

struct dat_net_change {
	uint32_t what;			/* one bit */
	uint32_t before, now;		/* DAT_NET_MTU: bytes. DAT_NET_LINK: 1 up, 0 down. Others:
					 * 0 and 1 came, 1 and 1 changed, 1 and 0 went */
	char netdev[DAT_NET_NETDEV_MAX];	/* of DAT_NET_RDMA: "" */
	char device[DAT_NET_DEVICE_MAX];	/* of DAT_NET_RDMA */
	struct sockaddr_storage address;	/* local address, destination of the route,
						 * neighbour; family 0: none */
	struct sockaddr_storage via;	/* next hop of a route; family 0: none */
	uint8_t prefix;			/* bits of address */
	uint8_t length;			/* bytes of lladdr; of a neighbour */
	uint8_t lladdr[DAT_NET_LLADDR_MAX];
};

struct dat_net_monitor;

/* Begins to watch changes of the kinds in `what` in the network namespace of the calling thread.
 * The monitor stays in that namespace. One thread at a time uses it.
 *
 * EINVAL		`monitor` is NULL, or `what` is 0 or has unknown bits
 * ENOMEM, EMFILE, ENFILE	no memory, or no descriptor */
extern int dat_net_monitor_open(unsigned what, struct dat_net_monitor **monitor);

/* A descriptor for poll(): readable when dat_net_monitor_next() may have a change. */
extern int dat_net_monitor_fd(const struct dat_net_monitor *monitor);

/* Gives the next change. Does not block.
 *
 * EAGAIN		there is none now
 * ENOBUFS		changes were lost: what is known of the network must be read again. Later
 *			calls go on with changes after that
 * ENOMEM		no memory; changes may be lost */
extern int dat_net_monitor_next(struct dat_net_monitor *monitor, struct dat_net_change *change);

/* NULL is allowed. */
extern void dat_net_monitor_close(struct dat_net_monitor *monitor);

#ifdef __cplusplus
}
#endif

#endif
