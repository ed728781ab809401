/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ends.h - two ends, each a device with one of everything, that a test of shared memory
 * connects: both in its process, or one in a child. Opens, connects, posts, waits. */
#ifndef TEST_SOFT_ENDS_H
#define TEST_SOFT_ENDS_H
#include <time.h>
#include <unistd.h>
#include "dapl/core/device.h"
#include "dapl/soft/obj/cq.h"
#include "dapl/soft/obj/rnic.h"
#include "dapl/soft/obj/qp.h"
#include "dapl/soft/obj/conn.h"
#include "dapl/soft/shm/process.h"
#include "dapl/soft/shm/shm_conn.h"
#include "test/unit/device_harness.h"
#include "test/unit/unit.h"

#define OK(call) assert_int_equal((call), 0)
/* In a child, whose parent sees the line. */
#define DIE_UNLESS(ok) do { if (!(ok)) _exit(__LINE__ % 250 + 1); } while (0)

enum { BUFFER = 3 << 20, HALF = BUFFER / 2, LIMIT_S = 20 };

struct end {
	struct dapl_device *dev;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct dapl_conn *conn;
	char *buf;
	struct dapl_conn_tuning tuning;	/* of its next connection */
	enum dapl_qos qos;		/* also */
};

struct other {			/* memory of the other process, sent over a pipe */
	uint64_t address;
	uint32_t rkey;
};

/* Opens ends[0] and connects it to `port` of another process, within a minute. Returns the memory of that process,
 * which it writes into the pipe `from` meanwhile. */
struct other ends_join(uint16_t port, int from);

/* A process that connects to ends[1], and runs `part` until it is killed. */
struct caller {
	pid_t pid;
	int down[2], up[2], go[2];
	struct dapl_listener *listener;
};

/* A process that ends[0] connects to, and that runs `part` until it is killed. */
struct target {
	pid_t pid;
	struct other memory;
};

extern const struct dapl_device_ops *ops;
extern struct end ends[2];		/* 0 connects, 1 listens */
extern const struct end *served;	/* next_status() polls its device too, if not NULL */

/* A setup of cmocka for a group: uses shared memory, whatever the environment has. */
int use_shared_memory(void **state);
time_t now(void);
/* For what another process or thread would do meanwhile: this one may hold locks. */
void call_in_thread(void (*call)(void));
/* Waits for an upcall of the device, and takes it from the record. */
struct upcall wait_up(const struct end *e, enum upcall_kind kind);

/* Opens a device, unless the end has one, and its objects. */
void open_end(struct end *e);
void release_end(struct end *e);
void close_objects(struct end *e);
void close_end(struct end *e);
void start_connect(struct end *e, uint16_t port);
/* Accepts a request, and does not wait for ESTABLISHED. */
void send_accept(struct end *e);
void accept_it(struct end *e);
/* `without`: bit i set: ends[i] uses TCP only. */
void open_two(int without);
void close_two(void);

struct caller fork_initiator(void (*part)(uint16_t port, int from, int to));
void kill_initiator(struct caller *o);
void end_initiator(struct caller *o);
/* `part` opens ends[1], and calls be_target. */
struct target fork_target(void (*part)(int to));
void be_target(int to, const void *memory, const struct ibv_mr *mr);
void tell(int fd, struct end *e);
void expect_byte(int fd, char c);

bool uses_rings(const struct end *e);
/* Orders the caller after all that threads did with the progress lock held, and before all that they will
 * do. A pipe orders it, too, but sanitizers do not see that. */
void settle(struct end *e);
uint32_t sleeps_of_peer(const struct end *e);
/* Waits until the other end sleeps and has nothing to do. */
uint32_t wait_asleep(const struct end *e);
/* Returns whether process_vm_writev() works: sanitizers and the system may forbid it. */
bool cma_works(void);

void post(struct end *e, enum ibv_wr_opcode opcode, uint32_t length, uint64_t remote, uint32_t rkey);
/* Posts to ends[0], for the buffer of ends[1]. */
void post_to_other(enum ibv_wr_opcode opcode, uint32_t length, uint32_t offset);
void post_receive(struct end *e);
enum ibv_wc_status next_status(struct end *e);
void done(struct end *e);

void pattern(char *at, size_t length, unsigned seed);
bool has_pattern(const char *at, size_t length, unsigned seed);

#endif
