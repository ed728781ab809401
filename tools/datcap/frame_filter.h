/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* frame_filter.h - selects frames by a filter of libpcap and by their direction. */
#ifndef DATCAP_FRAME_FILTER_H
#define DATCAP_FRAME_FILTER_H
#include <pcap/pcap.h>
#include <stdbool.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>
#include "datcap.h"

struct frame_filter {
	struct bpf_program program;
	bool has_program;
	enum ways direction;
};

/* `expression` may be "": all frames pass. Ends the program with a line if it is wrong. */
void frame_filter_open(struct frame_filter *filter, const char *expression, enum ways direction);
void frame_filter_close(struct frame_filter *filter);

/* Returns whether all frames pass. */
static inline bool frame_filter_is_open(const struct frame_filter *filter)
{
	return !filter->has_program && filter->direction == BOTH_WAYS;
}

/* Applies the expression to the frame as it is on the wire. One thread at a time may call it. */
bool frame_filter_passes(const struct frame_filter *filter, const DAT_ETH_FRAME *frame);

#endif
