/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datcap.h - the commands of datcap, and what they share. */
#ifndef DATCAP_H
#define DATCAP_H
#include <stdbool.h>
#include <stdint.h>
#include <dat/udat.h>
#include <dat/dat_eth_extensions.h>

/* STATUS_LOST is the exit status with --strict if frames were lost. */
enum { MAX_RULES = 16, MAX_VARIES = 4, MAX_DEVICES = 16, STATUS_LOST = 3 };

enum ways { BOTH_WAYS, INCOMING, OUTGOING };

struct options {
	const char *command;
	const char *interface, *file, *filter, *user;	/* interface: the first of `interfaces` */
	const char *interfaces[MAX_DEVICES];
	unsigned interface_count;
	bool list;			/* -D */
	enum ways direction;	/* of the frames to keep */
	double duration;		/* ns until the end; 0: no limit */
	uint64_t size;			/* bytes of the file; 0: no limit */
	const char *ia;			/* rdma */
	const char *wireshark;		/* rdma: the directory of a profile to write; NULL: none */
	int pid;			/* rdma; 0: all programs of this user */
	DAT_ETH_RULE rules[MAX_RULES];
	unsigned rule_count;
	uint64_t count;			/* frames, or lines of `stat`; 0: no limit */
	unsigned snap, frames;		/* bytes kept of a frame; frames of the ring (0: 64 MB, by AF_XDP 16 MiB) */
	unsigned ring_files;
	uint64_t ring_size;
	bool verbose;
	bool hardware_time, software_time;	/* neither: the best clock of the device */
	bool take;			/* frames that rules match do not reach the kernel */
	bool xdp;			/* they are received by AF_XDP */
	bool pcap, promiscuous, join, strict, stats, json, yes, cut;
	bool tso;			/* replay: the device cuts long TCP frames */
	bool exact;			/* replay: at the times of the file, without sleeping */
	double rate, bit_rate, speed;	/* frames/s; bits/s; times the file's speed; 0: not given */
	unsigned loops;			/* 0: until a signal */
	const char *frame, *varies[MAX_VARIES];		/* make */
	unsigned vary_count;
	uint64_t seed;			/* of random values; 0: another one each time */
	uint8_t dst[6], src[6];
	bool set_dst, set_src;
};

/* Each returns the exit status. */
int capture_run(const struct options *o);
int stat_run(const struct options *o);
int replay_run(const struct options *o);
int make_run(const struct options *o);
int rdma_run(const struct options *o);
int caps_run(const struct options *o);
int devices_run(const struct options *o);

#endif
