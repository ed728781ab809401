/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pcapng_read.h - reads the packets of a pcapng file: sections of either byte order, interfaces that differ in link
 * type, snap length, clock and FCS. libpcap refuses such files. */
#ifndef DATCAP_PCAPNG_READ_H
#define DATCAP_PCAPNG_READ_H
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pcapng_reader;

struct pcapng_read {
	const uint8_t *data;		/* valid until the next call */
	uint32_t captured, length;	/* bytes at data; bytes of the packet */
	uint64_t time;			/* ns since 1970 */
	bool has_time;
	bool has_fcs;			/* the packet ends with its frame check sequence */
	unsigned interface;		/* in its section, from 0 on */
	uint16_t link_type;		/* LINKTYPE_ */
};

/* PCAPNG_CUT: the file ends within a block. PCAPNG_WRONG: *wrong says what was found and what was expected. */
enum pcapng_result { PCAPNG_PACKET, PCAPNG_END, PCAPNG_CUT, PCAPNG_WRONG };

/* Returns NULL if there is no memory. */
struct pcapng_reader *pcapng_reader_open(FILE *file);
enum pcapng_result pcapng_reader_next(struct pcapng_reader *r, struct pcapng_read *packet, const char **wrong);
/* Does not close the file. */
void pcapng_reader_close(struct pcapng_reader *r);

#endif
