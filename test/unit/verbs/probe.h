/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.h - what the cases of device_probe stand on: a device, connections between two ends in this
 * process, the upcalls counted. A case fails by fail(), and is named by begin() and end(). */
#ifndef TEST_VERBS_PROBE_H
#define TEST_VERBS_PROBE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "dapl/core/device.h"
#include "test/unit/device_harness.h"

#define OPS dapl_device_ops

/* --- verdicts --- */

struct point;
extern int passed, failed;	/* cases */
extern const char *case_name;	/* the present one */
extern bool case_failed;

void begin(const char *name);
void end(void);
void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Whether PROBE_ONLY names this case, or is not set. */
bool wanted(const char *name);
void one(const char *name, void (*run)(struct point *), struct point *p);

#define EXPECT(found, expected, ...) do { \
		long f_ = (long)(found), e_ = (long)(expected); \
		if (f_ != e_) { \
			fail("%s is %ld, expected %ld (line %d)", #found, f_, e_, __LINE__); \
			return __VA_ARGS__; \
		} \
	} while (0)

/* --- the owner of a connection --- */

struct side {
	struct dapl_conn *conn;
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	bool ud;
	int established, failures, disconnected, released;
	bool orderly;
	enum dapl_conn_failure why;
	uint8_t pdata[512];
	size_t pdata_len;
	struct dapl_ud_peer ud_peer;
	bool had_peer;
	struct sockaddr_storage local, remote;
};

/* A service point. */
struct point {
	struct dapl_listener *listener;
	uint16_t port;
	int requests;
	struct dapl_conn *conn;
	uint8_t pdata[512];
	size_t pdata_len;
	bool ud;
	bool refuse;		/* releases each request at once */
	struct sockaddr_storage remote;
};

extern int async_events, last_async, released_total;

void on_upcall(const struct upcall *up);
bool wait_until(const int *count, int value, double seconds);
/* Waits until either count is reached. */
bool either(const int *a, const int *b);

#define COMES(count, value) do { \
		if (!wait_until(&(count), value, 30)) { \
			fail("%s did not become %d (line %d)", #count, value, __LINE__); \
			return; \
		} \
	} while (0)

double now(void);	/* seconds, monotonic */

/* --- common to all cases --- */

enum { PROBE_MEMORY = 8192 };	/* bytes that are registered */

extern struct dapl_device *dev;
extern struct dapl_device_attr attr;
extern struct ibv_pd *pd;
extern struct ibv_mr *mr;
extern uint8_t memory[PROBE_MEMORY];
extern struct dapl_conn_tuning tuning;	/* of the next connections, both ends */

bool open_device(const char *params);
void close_device(void);
bool side_start(struct side *s, bool ud);
void side_stop(struct side *s);
int listen_at(struct point *p, uint16_t port, bool ud);
struct dapl_conn_params params_of(struct side *s, const void *pdata, size_t len);
int connect_to(struct side *s, uint16_t port, const void *pdata, size_t len);
int accept_on(struct point *p, struct side *s, const void *pdata, size_t len);
void release(struct side *s);
/* Connects the two ends. */
bool pair(struct point *p, struct side *a, struct side *b);
/* Disconnects as core does: moves the queue pair to ERR, tells the peer, releases. */
void hang_up(struct side *s);
void end_pair(struct side *a, struct side *b);
int fds(void);		/* descriptors that are open */

/* --- data --- */

void fill(uint8_t *p, size_t n, unsigned seed);
/* Whether private data arrived unchanged; if not, the case fails. */
bool same(const uint8_t *found, size_t found_len, const uint8_t *sent, size_t len);
int reap(struct ibv_cq *cq, struct ibv_wc *wc);		/* its status; -1: none came */
int post_recv(struct side *s, unsigned offset);
int post_send(struct side *s, unsigned offset, unsigned len);
/* The receive begins at 4096; `skip` bytes of it come before the data. */
void send_one(struct side *from, struct side *to, unsigned skip);

#endif
