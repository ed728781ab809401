/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.c - see probe.h. */
#include <arpa/inet.h>
#include <dirent.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "test/unit/verbs/probe.h"

int passed, failed;
bool case_failed;
const char *case_name;

void fail(const char *fmt, ...)
{
	va_list ap;

	if (!case_failed)	/* the rest of the case may be skipped */
		failed++;
	case_failed = true;
	printf("FAIL %s: ", case_name);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
	fflush(stdout);
}

void begin(const char *name)
{
	case_name = name;
	case_failed = false;
}

void end(void)
{
	if (!case_failed) {
		passed++;
		printf("ok %s\n", case_name);
	}
	fflush(stdout);
}

/* --- the owner of a connection --- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
int async_events, last_async, released_total;

static void on_request(struct point *p, const struct upcall *up)
{
	p->requests++;
	p->conn = up->conn;
	p->pdata_len = up->length;
	memcpy(p->pdata, up->pdata, up->length);
	p->ud = up->ud;
	p->remote = up->remote;
}

static void on_established(struct side *s, const struct upcall *up)
{
	s->conn = up->conn;
	s->established++;
	s->pdata_len = up->length;
	memcpy(s->pdata, up->pdata, up->length);
	s->had_peer = up->ud;
	s->ud_peer = up->peer;
	s->local = up->local;
	s->remote = up->remote;
}

static void on_failed(struct side *s, const struct upcall *up)
{
	s->failures++;
	s->why = up->failure;
	s->pdata_len = up->length;
	memcpy(s->pdata, up->pdata, up->length);
}

static void on_end(struct side *s, const struct upcall *up)
{
	if (up->kind == RELEASED) {
		s->released++;
		released_total++;
	} else {
		s->disconnected++;
		s->orderly = up->kind == CLOSED;
	}
}

static void on_async(const struct upcall *up)
{
	async_events++;
	last_async = up->event;
}

void on_upcall(const struct upcall *up)
{
	pthread_mutex_lock(&lock);
	switch (up->kind) {
	case REQUEST:
		on_request(up->owner, up);
		break;
	case ESTABLISHED:
		on_established(up->owner, up);
		break;
	case FAILED:
		on_failed(up->owner, up);
		break;
	case CLOSED:
	case BROKEN:
	case RELEASED:
		on_end(up->owner, up);
		break;
	case ASYNC:
		on_async(up);
		break;
	case JOINED:	/* nothing joins a group here */
		break;
	}
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	if (up->kind == REQUEST && ((struct point *)up->owner)->refuse)
		OPS.release(up->conn);
}

bool wait_until(const int *count, int value, double seconds)
{
	struct timespec until;
	bool came;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (time_t)seconds;
	until.tv_nsec += (long)((seconds - (time_t)seconds) * 1e9);
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	pthread_mutex_lock(&lock);
	while (*count < value && pthread_cond_timedwait(&changed, &lock, &until) == 0)
		;
	came = *count >= value;
	pthread_mutex_unlock(&lock);
	return came;
}

bool either(const int *a, const int *b)
{
	int i;

	for (i = 0; i < 300 && !wait_until(a, 1, 0.05) && !wait_until(b, 1, 0.05); i++)
		;
	return i < 300;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- common to all cases --- */

struct dapl_device *dev;
struct dapl_device_attr attr;
struct ibv_pd *pd;
struct ibv_mr *mr;
uint8_t memory[PROBE_MEMORY];

bool open_device(const char *params)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	int err = OPS.open(params, memory, &dev);

	if (!err)
		err = OPS.query(dev, &attr);
	if (!err)
		err = OPS.alloc_pd(dev, &pd);
	if (!err)
		err = OPS.reg_mr(pd, memory, sizeof(memory), access, NULL, &mr);
	if (err)
		fail("open \"%s\": %s", params, strerror(err));
	return !err;
}

void close_device(void)
{
	int err = OPS.dereg_mr(mr);

	if (!err)
		err = OPS.dealloc_pd(pd);
	if (err)
		fail("freeing memory: %s", strerror(err));
	OPS.close(dev);
}

bool side_start(struct side *s, bool ud)
{
	struct ibv_qp_init_attr init = { .qp_type = ud ? IBV_QPT_UD : IBV_QPT_RC,
		.qp_context = s, .cap = { 8, 8, 1, 1, 16 }, .sq_sig_all = 1 };
	int err;

	memset(s, 0, sizeof(*s));
	s->ud = ud;
	err = OPS.create_cq(dev, 32, s, NULL, &s->cq);
	if (!err) {
		init.send_cq = init.recv_cq = s->cq;
		err = OPS.create_qp(dev, pd, &init, &s->qp);
	}
	if (err)
		fail("making a queue pair: %s", strerror(err));
	return !err;
}

void side_stop(struct side *s)
{
	int err;

	if (s->had_peer && s->ud_peer.ah)
		OPS.destroy_ah(s->ud_peer.ah);
	err = OPS.destroy_qp(s->qp);
	if (!err)
		err = OPS.destroy_cq(s->cq);
	if (err)
		fail("destroying a queue pair: %s", strerror(err));
}

int listen_at(struct point *p, uint16_t port, bool ud)
{
	memset(p, 0, sizeof(*p));
	p->port = port;
	return OPS.listen(dev, NULL, &p->port, ud, 32, p, &p->listener);
}

struct dapl_conn_tuning tuning;

struct dapl_conn_params params_of(struct side *s, const void *pdata, size_t len)
{
	return (struct dapl_conn_params){ .qp = s->qp, .owner = s, .pdata = pdata,
		.pdata_len = len, .reads_out = 4, .reads_in = 4, .ud = s->ud, .tuning = tuning };
}

int connect_to(struct side *s, uint16_t port, const void *pdata, size_t len)
{
	struct dapl_conn_params params = params_of(s, pdata, len);
	struct sockaddr_storage remote = attr.address;

	if (remote.ss_family == AF_INET)
		((struct sockaddr_in *)&remote)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&remote)->sin6_port = htons(port);
	params.remote = (struct sockaddr *)&remote;
	return OPS.connect(dev, &params, &s->conn);
}

int accept_on(struct point *p, struct side *s, const void *pdata, size_t len)
{
	struct dapl_conn_params params = params_of(s, pdata, len);

	s->conn = p->conn;
	return OPS.accept(p->conn, &params);
}

void release(struct side *s)
{
	OPS.release(s->conn);
	s->conn = NULL;
}

bool pair(struct point *p, struct side *a, struct side *b)
{
	int err;

	if (!side_start(a, false) || !side_start(b, false))
		return false;
	err = connect_to(a, p->port, "hello", 5);
	if (!err && wait_until(&p->requests, 1, 30)) {
		p->requests = 0;
		err = accept_on(p, b, "welcome", 7);
		if (!err && wait_until(&a->established, 1, 30) &&
		    wait_until(&b->established, 1, 30))
			return true;
	}
	fail("no connection: %s, a %d established %d failures (%d), b %d %d", strerror(err),
	     a->established, a->failures, a->why, b->established, b->failures);
	return false;
}

void hang_up(struct side *s)
{
	OPS.error_qp(s->qp);
	OPS.disconnect(s->conn);
	release(s);
}

void end_pair(struct side *a, struct side *b)
{
	hang_up(a);
	COMES(b->disconnected, 1);
	hang_up(b);
	COMES(a->released, 1);
	COMES(b->released, 1);
	side_stop(a);
	side_stop(b);
}

int fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = i * 7 + seed + 1;
}

bool same(const uint8_t *found, size_t found_len, const uint8_t *sent, size_t len)
{
	if (found_len == len && memcmp(found, sent, len) == 0)
		return true;
	fail("private data: %zu bytes sent, %zu received%s", len, found_len,
	     found_len == len ? ", different" : "");
	return false;
}

int reap(struct ibv_cq *cq, struct ibv_wc *wc)
{
	for (double t = now(); now() - t < 20; usleep(200))
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return wc->status;
	return -1;
}

int post_recv(struct side *s, unsigned offset)
{
	struct ibv_sge g = { (uintptr_t)memory + offset, 256, mr->lkey };
	struct ibv_recv_wr w = { .sg_list = &g, .num_sge = 1, .wr_id = 1 }, *bad;

	return abs(ibv_post_recv(s->qp, &w, &bad));
}

int post_send(struct side *s, unsigned offset, unsigned len)
{
	struct ibv_sge g = { (uintptr_t)memory + offset, len, mr->lkey };
	struct ibv_send_wr w = { .sg_list = &g, .num_sge = 1, .wr_id = 2,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED }, *bad;

	if (s->ud) {
		w.wr.ud.ah = s->ud_peer.ah;
		w.wr.ud.remote_qpn = s->ud_peer.qpn;
		w.wr.ud.remote_qkey = s->ud_peer.qkey;
	}
	return abs(ibv_post_send(s->qp, &w, &bad));
}

void send_one(struct side *from, struct side *to, unsigned skip)
{
	struct ibv_wc wc;

	memset(memory, 0, sizeof(memory));
	fill(memory, 64, 5);
	EXPECT(post_send(from, 0, 64), 0);
	EXPECT(reap(from->cq, &wc), IBV_WC_SUCCESS);
	EXPECT(reap(to->cq, &wc), IBV_WC_SUCCESS);
	EXPECT(wc.byte_len, 64 + skip);
	EXPECT(memcmp(memory, memory + 4096 + skip, 64), 0);
}

bool wanted(const char *name)
{
	const char *only = getenv("PROBE_ONLY");

	return !only || strstr(name, only);
}

void one(const char *name, void (*run)(struct point *), struct point *p)
{
	if (!wanted(name))
		return;
	begin(name);
	run(p);
	end();
}
