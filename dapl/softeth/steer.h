/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer.h - an eBPF program for a set of rules, some of which take frames away from the kernel's stack: it runs on the
 * ingress of the network device, behind the packet sockets, or as an XDP program, before them. Unlike the filter of
 * filter.c it decides exactly as eth_match_rule() does. A frame that a group copies may still be taken by another
 * group: which of a group's ports gets it does not matter here. */
#ifndef SOFTETH_STEER_H
#define SOFTETH_STEER_H
#include "dapl/softeth/bpf.h"
#include "dapl/core/eth_device.h"

struct steer_rule {
	const struct dapl_eth_rule *rule;
	uint32_t number;		/* mode DROP: of its counters; mode TAKE with XDP: for the mark, not 0 */
	unsigned group;			/* 0: a rule of the port's own. The rules of a group follow each other */
};

/* What an XDP program needs to know beside rules. */
struct steer_xdp {
	int sockets;			/* the map of AF_XDP sockets, by receive queue */
	int index;			/* of the network device */
	uint8_t address[6];		/* other frames than those to it and to groups are for other stations */
};

/* What an XDP program writes in front of a frame that it takes. */
struct steer_mark {
	uint64_t time;			/* CLOCK_TAI, ns */
	uint32_t rule, reserved;	/* the rule's number; 0: nothing was written */
};

/* Makes the program for the rules, in this order. Returns 0 or a positive errno. */
int steer_make(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters);
/* The same for XDP. Rules of mode TAKE give frames to the AF_XDP sockets; there are none of mode COPY. */
int steer_make_xdp(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters,
		   const struct steer_xdp *xdp);

#endif
