/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* option.c - makes the BPF programs of option.h.
 *
 * When a SYN-ACK is made, the connection has no socket yet: what it says is computed from the SYN and the keys. So that
 * the socket, and a SYN-ACK that is sent again, know the SYN's token, it is kept in the map of tuples from the first
 * SYN-ACK to the end of the handshake. A SYN without the option deletes the entry. A lost or wrong entry gives tokens
 * that the peer does not have: the connection stays on TCP.
 *
 * Other programs of the control group may use the callbacks for header options, too. The flag that asks for them is
 * added to the others, and taken away after the handshake only if it was not set before and is the only one. */
#include "tools/sock/option.h"
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

/* Registers. Those from CTX on are kept over calls. */
_Static_assert(sizeof(struct option_tuple) == 40, "the tuple has no gaps: it is a key of a map, and is hashed");
enum { R0, R1, R2, R3, R4, R5, CTX, STATE, KEYS, FLAGS, FP };

enum {
	/* the stack, from the frame pointer */
	OPTION = -20,			/* 12 bytes; the token lies at a multiple of 8 */
	TOKEN = OPTION + 4,
	ENTRY = -24,			/* 0, the entry of the array of keys */
	TUPLE = -64,			/* struct option_tuple */
	MESSAGE = TUPLE - 8,		/* the hash is over one word, the time or the SYN's token, and the tuple */
	MESSAGE_WORDS = 6,
	TCP_FIN_TO_ACK = 0x17, SYN = 2, SYN_ACK = 0x12,		/* flags of a segment */
	GET_OR_CREATE = BPF_SK_STORAGE_GET_F_CREATE,
};

#define CONTEXT(field) ((int)offsetof(struct bpf_sock_ops, field))
#define MEMBER(field) ((int)offsetof(struct option_socket, field))

static void load(struct bpf_code *c, int size, int dst, int src, int offset)
{
	bpf_emit(c, (uint8_t)(BPF_LDX | size | BPF_MEM), dst, src, offset, 0);
}

static void store(struct bpf_code *c, int size, int dst, int offset, int src)
{
	bpf_emit(c, (uint8_t)(BPF_STX | size | BPF_MEM), dst, src, offset, 0);
}

static void store_number(struct bpf_code *c, int size, int dst, int offset, int32_t number)
{
	bpf_emit(c, (uint8_t)(BPF_ST | size | BPF_MEM), dst, 0, offset, number);
}

static void alu(struct bpf_code *c, int op, int dst, int32_t number)
{
	bpf_emit(c, (uint8_t)(BPF_ALU64 | op | BPF_K), dst, 0, 0, number);
}

static void alu_register(struct bpf_code *c, int op, int dst, int src)
{
	bpf_emit(c, (uint8_t)(BPF_ALU64 | op | BPF_X), dst, src, 0, 0);
}

static void load_number(struct bpf_code *c, int dst, uint64_t number)
{
	bpf_emit(c, BPF_LD | BPF_DW | BPF_IMM, dst, 0, 0, (int32_t)(uint32_t)number);
	bpf_emit(c, 0, 0, 0, 0, (int32_t)(uint32_t)(number >> 32));
}

static void call(struct bpf_code *c, int function)
{
	bpf_emit(c, BPF_JMP | BPF_CALL, 0, 0, 0, function);
}

static void leave(struct bpf_code *c)
{
	alu(c, BPF_MOV, R0, 1);
	bpf_emit(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* --- SipHash-2-4: v0 to v3 are registers 1 to 4 ------------------------------------------------------------- */

static void rotate(struct bpf_code *c, int dst, int bits)
{
	alu_register(c, BPF_MOV, R5, dst);
	alu(c, BPF_LSH, dst, bits);
	alu(c, BPF_RSH, R5, 64 - bits);
	alu_register(c, BPF_OR, dst, R5);
}

/* a += b; b = rotated b ^ a */
static void mix(struct bpf_code *c, int a, int b, int bits)
{
	alu_register(c, BPF_ADD, a, b);
	rotate(c, b, bits);
	alu_register(c, BPF_XOR, b, a);
}

static void rounds(struct bpf_code *c, int count)
{
	for (int i = 0; i < count; i++) {
		mix(c, R1, R2, 13);
		rotate(c, R1, 32);
		mix(c, R3, R4, 16);
		mix(c, R1, R4, 21);
		mix(c, R3, R2, 17);
		rotate(c, R3, 32);
	}
}

void option_emit_hash(struct bpf_code *c, int offset, int words)
{
	static const uint64_t start[4] = { 0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
					   0x7465646279746573 };

	for (int i = 0; i < 4; i++) {
		load(c, BPF_DW, R1 + i, KEYS, i % 2 * 8);
		load_number(c, R5, start[i]);
		alu_register(c, BPF_XOR, R1 + i, R5);
	}
	for (int i = 0; i < words; i++) {
		load(c, BPF_DW, R5, FP, offset + 8 * i);
		alu_register(c, BPF_XOR, R4, R5);
		rounds(c, 2);
		load(c, BPF_DW, R5, FP, offset + 8 * i);
		alu_register(c, BPF_XOR, R1, R5);
	}
	load_number(c, R5, (uint64_t)words * 8 << 56);
	alu_register(c, BPF_XOR, R4, R5);
	rounds(c, 2);
	load_number(c, R5, (uint64_t)words * 8 << 56);
	alu_register(c, BPF_XOR, R1, R5);
	alu(c, BPF_XOR, R3, 0xff);
	rounds(c, 4);
	alu_register(c, BPF_MOV, R0, R1);
	for (int i = 1; i < 4; i++)
		alu_register(c, BPF_XOR, R0, R1 + i);
}

/* --- parts of the program of the handshake -------------------------------------------------------------------- */

/* KEYS: the pair at `offset` of struct option_keys. */
static void find_keys(struct bpf_code *c, const struct option_maps *maps, int offset, int end)
{
	store_number(c, BPF_W, FP, ENTRY, 0);
	bpf_load_map(c, R1, maps->keys);
	alu_register(c, BPF_MOV, R2, FP);
	alu(c, BPF_ADD, R2, ENTRY);
	call(c, BPF_FUNC_map_lookup_elem);
	bpf_jump_if_null(c, R0, end);
	alu_register(c, BPF_MOV, KEYS, R0);
	alu(c, BPF_ADD, KEYS, offset);
}

static void copy_ipv4(struct bpf_code *c, int to, int from)
{
	store_number(c, BPF_DW, FP, to, 0);
	store_number(c, BPF_W, FP, to + 8, (int32_t)htonl(0xffff));
	load(c, BPF_W, R1, CTX, from);
	store(c, BPF_W, FP, to + 12, R1);
}

static void copy_ipv6(struct bpf_code *c, int to, int from)
{
	for (int i = 0; i < 16; i += 4) {
		load(c, BPF_W, R1, CTX, from + i);
		store(c, BPF_W, FP, to + i, R1);
	}
}

/* A listener of IPv6 sees IPv4 in a SYN, and mapped addresses of IPv6 in its socket: the tuple has the latter. */
static void store_tuple(struct bpf_code *c)
{
	int ipv4 = bpf_label(c), ports = bpf_label(c);

	load(c, BPF_W, R1, CTX, CONTEXT(family));
	bpf_jump_if(c, BPF_JEQ, R1, AF_INET, ipv4);
	copy_ipv6(c, TUPLE, CONTEXT(local_ip6));
	copy_ipv6(c, TUPLE + 16, CONTEXT(remote_ip6));
	bpf_jump(c, ports);
	bpf_here(c, ipv4);
	copy_ipv4(c, TUPLE, CONTEXT(local_ip4));
	copy_ipv4(c, TUPLE + 16, CONTEXT(remote_ip4));
	bpf_here(c, ports);
	load(c, BPF_W, R1, CTX, CONTEXT(local_port));
	store(c, BPF_W, FP, TUPLE + 32, R1);
	load(c, BPF_W, R1, CTX, CONTEXT(remote_port));
	store(c, BPF_W, FP, TUPLE + 36, R1);
}

/* The state has the tuple from now on. */
static void keep_tuple(struct bpf_code *c)
{
	for (int i = 0; i < (int)sizeof(struct option_tuple); i += 8) {
		load(c, BPF_DW, R1, FP, TUPLE + i);
		store(c, BPF_DW, STATE, MEMBER(tuple) + i, R1);
	}
}

static void map_of_tuples(struct bpf_code *c, const struct option_maps *maps, int function)
{
	bpf_load_map(c, R1, maps->tuples);
	alu_register(c, BPF_MOV, R2, FP);
	alu(c, BPF_ADD, R2, TUPLE);
	call(c, function);
}

/* STATE: struct option_socket of the socket, if it is marked. */
static void find_state(struct bpf_code *c, const struct option_maps *maps, int end)
{
	load(c, BPF_DW, R2, CTX, CONTEXT(sk));
	bpf_jump_if_null(c, R2, end);
	bpf_load_map(c, R1, maps->sockets);
	alu(c, BPF_MOV, R3, 0);
	alu(c, BPF_MOV, R4, 0);
	call(c, BPF_FUNC_sk_storage_get);
	bpf_jump_if_null(c, R0, end);
	alu_register(c, BPF_MOV, STATE, R0);
	load(c, BPF_W, FLAGS, STATE, MEMBER(flags));
}

/* Calls for header options from now on. */
static void want_options(struct bpf_code *c)
{
	int had = bpf_label(c);

	load(c, BPF_W, R2, CTX, CONTEXT(bpf_sock_ops_cb_flags));
	alu_register(c, BPF_MOV, R1, R2);
	alu(c, BPF_AND, R1, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	bpf_jump_if(c, BPF_JNE, R1, 0, had);
	alu(c, BPF_OR, FLAGS, OPTION_OWN_FLAG);
	alu(c, BPF_OR, R2, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
	alu_register(c, BPF_MOV, R1, CTX);
	call(c, BPF_FUNC_sock_ops_cb_flags_set);
	bpf_here(c, had);
	store(c, BPF_W, STATE, MEMBER(flags), FLAGS);
}

/* The handshake is over. Another program that uses the callbacks may run after this one, when a connection begins: the
 * flag stays if others are set, too. */
static void want_no_options(struct bpf_code *c)
{
	int others = bpf_label(c);

	alu_register(c, BPF_MOV, R1, FLAGS);
	alu(c, BPF_AND, R1, OPTION_OWN_FLAG);
	bpf_jump_if(c, BPF_JEQ, R1, 0, others);
	load(c, BPF_W, R2, CTX, CONTEXT(bpf_sock_ops_cb_flags));
	bpf_jump_if(c, BPF_JNE, R2, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG, others);
	alu(c, BPF_MOV, R2, 0);
	alu_register(c, BPF_MOV, R1, CTX);
	call(c, BPF_FUNC_sock_ops_cb_flags_set);
	bpf_here(c, others);
}

/* The option without its token. */
static void begin_option(struct bpf_code *c, int length)
{
	store_number(c, BPF_B, FP, OPTION, OPTION_KIND);
	store_number(c, BPF_B, FP, OPTION + 1, length);
	store_number(c, BPF_H, FP, OPTION + 2, htons(SOCK_MARK_LEVEL));
}

/* R0: the length of the option, or a negative error. Its token is at TOKEN. */
static void load_option(struct bpf_code *c, int flags)
{
	begin_option(c, 4);	/* what is looked for */
	store_number(c, BPF_DW, FP, TOKEN, 0);
	alu_register(c, BPF_MOV, R1, CTX);
	alu_register(c, BPF_MOV, R2, FP);
	alu(c, BPF_ADD, R2, OPTION);
	alu(c, BPF_MOV, R3, OPTION_LENGTH);
	alu(c, BPF_MOV, R4, flags);
	call(c, BPF_FUNC_load_hdr_opt);
}

static void reserve_option(struct bpf_code *c)
{
	alu_register(c, BPF_MOV, R1, CTX);
	alu(c, BPF_MOV, R2, OPTION_LENGTH);
	alu(c, BPF_MOV, R3, 0);
	call(c, BPF_FUNC_reserve_hdr_opt);
}

static void write_option(struct bpf_code *c)
{
	begin_option(c, OPTION_LENGTH);
	alu_register(c, BPF_MOV, R1, CTX);
	alu_register(c, BPF_MOV, R2, FP);
	alu(c, BPF_ADD, R2, OPTION);
	alu(c, BPF_MOV, R3, OPTION_LENGTH);
	alu(c, BPF_MOV, R4, 0);
	call(c, BPF_FUNC_store_hdr_opt);
}

/* TOKEN: that of the SYN that is answered. */
static void find_syn_token(struct bpf_code *c, const struct option_maps *maps, int end)
{
	int found = bpf_label(c), lost = bpf_label(c);

	store_tuple(c);
	load_option(c, BPF_LOAD_HDR_OPT_TCP_SYN);
	bpf_jump_if(c, BPF_JEQ, R0, OPTION_LENGTH, found);
	bpf_jump_if(c, BPF_JEQ, R0, -ENOENT, lost);
	map_of_tuples(c, maps, BPF_FUNC_map_delete_elem);
	bpf_jump(c, end);
	/* The SYN-ACK is sent again, without the SYN. */
	bpf_here(c, lost);
	map_of_tuples(c, maps, BPF_FUNC_map_lookup_elem);
	bpf_jump_if_null(c, R0, end);
	load(c, BPF_DW, R1, R0, 0);
	store(c, BPF_DW, FP, TOKEN, R1);
	bpf_here(c, found);
}

/* R0: the listener's token, from the SYN's at TOKEN and the tuple. */
static void compute_listener_token(struct bpf_code *c, const struct option_maps *maps, int end)
{
	load(c, BPF_DW, R1, FP, TOKEN);
	store(c, BPF_DW, FP, MESSAGE, R1);
	find_keys(c, maps, offsetof(struct option_keys, listener), end);
	option_emit_hash(c, MESSAGE, MESSAGE_WORDS);
}

/* --- the callbacks --------------------------------------------------------------------------------------------- */

static void on_connect(struct bpf_code *c, const struct option_maps *maps, int end)
{
	find_state(c, maps, end);
	store_tuple(c);
	keep_tuple(c);
	call(c, BPF_FUNC_ktime_get_ns);
	store(c, BPF_DW, FP, MESSAGE, R0);
	find_keys(c, maps, offsetof(struct option_keys, connector), end);
	option_emit_hash(c, MESSAGE, MESSAGE_WORDS);
	store(c, BPF_DW, STATE, MEMBER(mine), R0);
	store_number(c, BPF_DW, STATE, MEMBER(theirs), 0);
	alu(c, BPF_MOV, FLAGS, OPTION_MARKED | OPTION_CONNECTOR);
	want_options(c);
	leave(c);
}

static void on_listen(struct bpf_code *c, const struct option_maps *maps, int end)
{
	find_state(c, maps, end);
	want_options(c);
	leave(c);
}

/* Room for the option, or the option itself. R2: the flags of the segment. */
static void on_segment(struct bpf_code *c, const struct option_maps *maps, bool write, int end)
{
	int syn_ack = bpf_label(c);

	load(c, BPF_W, R2, CTX, CONTEXT(skb_tcp_flags));
	alu(c, BPF_AND, R2, TCP_FIN_TO_ACK);
	bpf_jump_if(c, BPF_JEQ, R2, SYN_ACK, syn_ack);
	bpf_jump_if(c, BPF_JNE, R2, SYN, end);
	find_state(c, maps, end);
	alu(c, BPF_AND, FLAGS, OPTION_CONNECTOR);
	bpf_jump_if(c, BPF_JEQ, FLAGS, 0, end);
	if (write) {
		load(c, BPF_DW, R1, STATE, MEMBER(mine));
		store(c, BPF_DW, FP, TOKEN, R1);
		write_option(c);
	} else {
		reserve_option(c);
	}
	leave(c);

	bpf_here(c, syn_ack);
	/* With a socket it belongs to a simultaneous open; a SYN cookie has no room for what must be kept. */
	load(c, BPF_W, R1, CTX, CONTEXT(is_fullsock));
	bpf_jump_if(c, BPF_JNE, R1, 0, end);
	load(c, BPF_W, R1, CTX, CONTEXT(args));
	bpf_jump_if(c, BPF_JEQ, R1, BPF_WRITE_HDR_TCP_SYNACK_COOKIE, end);
	find_syn_token(c, maps, end);
	if (!write) {
		reserve_option(c);
		leave(c);
		return;
	}
	bpf_load_map(c, R1, maps->tuples);
	alu_register(c, BPF_MOV, R2, FP);
	alu(c, BPF_ADD, R2, TUPLE);
	alu_register(c, BPF_MOV, R3, FP);
	alu(c, BPF_ADD, R3, TOKEN);
	alu(c, BPF_MOV, R4, BPF_ANY);
	call(c, BPF_FUNC_map_update_elem);
	compute_listener_token(c, maps, end);
	store(c, BPF_DW, FP, TOKEN, R0);
	write_option(c);
	leave(c);
}

/* The SYN-ACK has come. A server or a box on the way that echoes unknown options is not aware. */
static void on_connected(struct bpf_code *c, const struct option_maps *maps, int end)
{
	int unaware = bpf_label(c);

	find_state(c, maps, end);
	load_option(c, 0);
	bpf_jump_if(c, BPF_JNE, R0, OPTION_LENGTH, unaware);
	load(c, BPF_DW, R1, FP, TOKEN);
	load(c, BPF_DW, R2, STATE, MEMBER(mine));
	alu_register(c, BPF_XOR, R2, R1);
	bpf_jump_if_null(c, R2, unaware);
	store(c, BPF_DW, STATE, MEMBER(theirs), R1);
	alu_register(c, BPF_MOV, R2, FLAGS);
	alu(c, BPF_OR, R2, OPTION_AWARE);
	store(c, BPF_W, STATE, MEMBER(flags), R2);
	bpf_here(c, unaware);
	want_no_options(c);
	leave(c);
}

/* The new socket has a copy of its listener's state. */
static void on_accepted(struct bpf_code *c, const struct option_maps *maps, int end)
{
	int unaware = bpf_label(c);

	find_state(c, maps, end);
	store_tuple(c);
	keep_tuple(c);
	map_of_tuples(c, maps, BPF_FUNC_map_lookup_elem);
	bpf_jump_if_null(c, R0, unaware);
	load(c, BPF_DW, R1, R0, 0);
	store(c, BPF_DW, FP, TOKEN, R1);
	store(c, BPF_DW, STATE, MEMBER(theirs), R1);
	map_of_tuples(c, maps, BPF_FUNC_map_delete_elem);
	compute_listener_token(c, maps, unaware);
	store(c, BPF_DW, STATE, MEMBER(mine), R0);
	alu_register(c, BPF_MOV, R2, FLAGS);
	alu(c, BPF_OR, R2, OPTION_AWARE);
	store(c, BPF_W, STATE, MEMBER(flags), R2);
	bpf_here(c, unaware);
	want_no_options(c);
	leave(c);
}

int option_make_handshake(struct bpf_code *c, const struct option_maps *maps)
{
	static const int callbacks[] = { BPF_SOCK_OPS_HDR_OPT_LEN_CB,	      BPF_SOCK_OPS_WRITE_HDR_OPT_CB,
					 BPF_SOCK_OPS_TCP_CONNECT_CB,	      BPF_SOCK_OPS_TCP_LISTEN_CB,
					 BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB };
	enum { CALLBACKS = sizeof callbacks / sizeof *callbacks };
	int begin[CALLBACKS], end = bpf_label(c);

	alu_register(c, BPF_MOV, CTX, R1);
	load(c, BPF_W, R2, CTX, CONTEXT(op));
	for (int i = 0; i < CALLBACKS; i++)
		bpf_jump_if(c, BPF_JEQ, R2, callbacks[i], begin[i] = bpf_label(c));
	bpf_here(c, end);
	leave(c);
	bpf_here(c, begin[0]);
	on_segment(c, maps, false, end);
	bpf_here(c, begin[1]);
	on_segment(c, maps, true, end);
	bpf_here(c, begin[2]);
	on_connect(c, maps, end);
	bpf_here(c, begin[3]);
	on_listen(c, maps, end);
	bpf_here(c, begin[4]);
	on_connected(c, maps, end);
	bpf_here(c, begin[5]);
	on_accepted(c, maps, end);
	return bpf_resolve(c);
}

/* --- the program that marks -------------------------------------------------------------------------------- */

#define SOCKOPT(field) ((int)offsetof(struct bpf_sockopt, field))

/* What the kernel does with other options: with a length above a page, it fails with EFAULT unless the program says by
 * a length of 0 that the kernel is to read the caller's memory itself. */
static void leave_to_kernel(struct bpf_code *c, uint32_t page)
{
	int small = bpf_label(c);

	load(c, BPF_W, R1, CTX, SOCKOPT(optlen));
	bpf_jump_if(c, BPF_JSLE, R1, (int32_t)page, small);
	alu(c, BPF_MOV, R1, 0);
	store(c, BPF_W, CTX, SOCKOPT(optlen), R1);
	bpf_here(c, small);
	leave(c);
}

int option_make_mark(struct bpf_code *c, const struct option_maps *maps, uint32_t page)
{
	int other = bpf_label(c), refused = bpf_label(c);

	alu_register(c, BPF_MOV, CTX, R1);
	load(c, BPF_W, R1, CTX, SOCKOPT(level));
	bpf_jump_if(c, BPF_JNE, R1, SOCK_MARK_LEVEL, other);
	load(c, BPF_W, R1, CTX, SOCKOPT(optname));
	bpf_jump_if(c, BPF_JNE, R1, SOCK_MARK_OPTION, other);
	load(c, BPF_DW, STATE, CTX, SOCKOPT(sk));
	load(c, BPF_W, R1, STATE, (int)offsetof(struct bpf_sock, protocol));
	bpf_jump_if(c, BPF_JNE, R1, IPPROTO_TCP, other);
	bpf_load_map(c, R1, maps->sockets);
	alu_register(c, BPF_MOV, R2, STATE);
	alu(c, BPF_MOV, R3, 0);
	alu(c, BPF_MOV, R4, GET_OR_CREATE);
	call(c, BPF_FUNC_sk_storage_get);
	bpf_jump_if_null(c, R0, refused);
	load(c, BPF_W, R1, R0, MEMBER(flags));
	alu(c, BPF_OR, R1, OPTION_MARKED);
	store(c, BPF_W, R0, MEMBER(flags), R1);
	alu(c, BPF_MOV, R1, -1);	/* the kernel is not asked */
	store(c, BPF_W, CTX, SOCKOPT(optlen), R1);
	bpf_here(c, refused);
	leave(c);
	bpf_here(c, other);
	leave_to_kernel(c, page);
	return bpf_resolve(c);
}
