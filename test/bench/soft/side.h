/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.h - the DAT objects of one process, and its posts and completions. */
#ifndef BENCH_SOFT_SIDE_H
#define BENCH_SOFT_SIDE_H
#include <stdbool.h>
#include <dat/udat.h>

enum { DEPTH = 16 };	/* requests posted at a time */

extern DAT_IA_HANDLE ia;
extern DAT_EVD_HANDLE conn_evd, evd;
extern DAT_PZ_HANDLE pz;
extern DAT_EP_HANDLE ep;
extern DAT_LMR_CONTEXT lmr_context;	/* of out and in */
extern char *out, *in;		/* what is sent; where messages go */
extern char *target;		/* where the peer writes, in this process */
extern unsigned received, completed, posted;
extern bool waits;		/* in dat_evd_wait, and does not poll */
extern DAT_CNO_HANDLE cno;	/* NULL, or evd's: a thread waits for it after empty polls */

void good(DAT_RETURN rc, const char *what);
void open_ia(const char *name, int depth);
void register_memory(void);
/* Peers write to this memory from now on, and read it. `name` is the address of its first byte in requests. */
void set_target(char *at, DAT_VADDR name, DAT_RMR_CONTEXT context);
/* Peers write to a shared mapping from now on, such as peers map. */
void target_mapped(void);

/* The port goes to the peer. */
void listen_any(DAT_PSP_HANDLE *psp);
void connect_ep(DAT_EP_HANDLE from);
DAT_EVENT wait_for(DAT_EVENT_NUMBER number);

void post_receive(void);
/* A send, or a write to where the peer's target is. */
void post(size_t size, bool write);
/* Takes what is there, or waits for it. */
void poll_once(void);
/* Posts the receives again that have completed. */
void renew(void);

#endif
