/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* option.h - the BPF programs that tell the ends of a TCP connection of each other: a marked socket puts a TCP option
 * with a token into its SYN, a marked listener one with its own token into the SYN-ACK. Both kernels keep both tokens.
 * Not responsible for: loading and attaching the programs (attach.h). */
#ifndef SOCK_OPTION_H
#define SOCK_OPTION_H
#include <stdbool.h>
#include <stdint.h>
#include "common/bpf_code.h"
#include "common/sock_mark.h"

enum {
	OPTION_KIND = 254,		/* of RFC 6994: an experiment, which the next two bytes name */
	OPTION_LENGTH = 12,		/* bytes: kind, length, name, token */
	OPTION_TUPLES = 16384,		/* handshakes that listeners remember, of all network namespaces; 2 MB */
};

struct option_tuple {
	uint8_t local[16], remote[16];	/* addresses; IPv4 as a mapped address of IPv6 */
	uint32_t local_port;		/* host byte order */
	uint32_t remote_port;		/* network byte order, as the kernel has it in a word */
};

/* What the kernel keeps of a socket that was marked. */
struct option_socket {
	uint64_t mine, theirs;		/* tokens */
	uint32_t flags;			/* OPTION_* */
	uint32_t reserved;
	struct option_tuple tuple;	/* of the connection */
};
enum {
	OPTION_MARKED = 1,
	OPTION_CONNECTOR = 2,		/* connect() was called */
	OPTION_AWARE = 4,		/* the peer has sent its token */
	OPTION_OWN_FLAG = 8,		/* the callbacks for header options are on because of the mark alone */
};

/* Keys of SipHash: of tokens in SYNs, and of those in SYN-ACKs. */
struct option_keys {
	uint64_t connector[2], listener[2];
};

struct option_maps {
	int sockets;			/* BPF_MAP_TYPE_SK_STORAGE, of struct option_socket */
	int keys;			/* an array of one struct option_keys */
	int tuples;			/* BPF_MAP_TYPE_LRU_HASH: the token of a SYN by addresses and ports */
};

/* These make a program in `code`, which bpf_code_begin() has begun. They return 0, or E2BIG. */
/* BPF_PROG_TYPE_SOCK_OPS: writes and reads the option. */
int option_make_handshake(struct bpf_code *code, const struct option_maps *maps);
/* BPF_PROG_TYPE_CGROUP_SOCKOPT: marks sockets. page: bytes of a page of memory. */
int option_make_mark(struct bpf_code *code, const struct option_maps *maps, uint32_t page);
/* Emits SipHash-2-4 of `words` words of 8 bytes on the stack, from `offset` of the frame pointer on. Register 8 points
 * to the key. The result is in register 0; registers 1 to 5 change. */
void option_emit_hash(struct bpf_code *code, int offset, int words);

#endif
