/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steer.h - an eBPF program for a set of rules, some of which take frames away from the kernel's stack: it runs on the
 * ingress of the network device, behind the packet sockets. Unlike the filter of filter.c it decides exactly as
 * eth_matches() does. A frame that a group copies may still be taken by another group: which of a group's ports gets it
 * does not matter here. */
#ifndef SOFTETH_STEER_H
#define SOFTETH_STEER_H
#include "dapl/softeth/bpf.h"
#include "dapl/core/eth_device.h"

/* A rule with the number of its counters: they count the frames of rules of mode DROP. */
struct steer_rule {
	const struct dapl_eth_rule *rule;
	uint32_t counter;
	unsigned group;			/* 0: a rule of the port's own. The rules of a group follow each other */
};

/* Makes the program for the rules, in this order. Returns 0 or a positive errno. */
int steer_make(struct bpf_code *code, const struct steer_rule *rules, unsigned n, int counters);

#endif
