/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_probe PARAMS [PARAMS6]: drives dapl/verbs through its table of operations,
 * without core. Both ends are in this process. It needs an RDMA device, real or of the kernel,
 * so it runs in the test machine. Prints "ok NAME" or "FAIL NAME: what", and "N passed, N
 * failed" at the end. */
#include "dapl/core/device.h"
#include "dapl/core/base/service.h"
#include "dapl/core/base/settings.h"
#include "common/log.h"
#include "common/trace.h"
#include "test/unit/device_harness.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPS dapl_device_ops

static int passed, failed;
static const char *case_name;
static bool case_failed;

static void fail(const char *fmt, ...)
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

static void begin(const char *name)
{
	case_name = name;
	case_failed = false;
}

static void end(void)
{
	if (!case_failed) {
		passed++;
		printf("ok %s\n", case_name);
	}
	fflush(stdout);
}

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int async_events, last_async, released_total;

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

static void on_upcall(const struct upcall *up)
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

static bool wait_until(const int *count, int value, double seconds)
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

/* Waits until either count is reached. */
static bool either(const int *a, const int *b)
{
	int i;

	for (i = 0; i < 300 && !wait_until(a, 1, 0.05) && !wait_until(b, 1, 0.05); i++)
		;
	return i < 300;
}

#define COMES(count, value) do { \
		if (!wait_until(&(count), value, 30)) { \
			fail("%s did not become %d (line %d)", #count, value, __LINE__); \
			return; \
		} \
	} while (0)

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* --- common to all cases --- */

static struct dapl_device *dev;
static struct dapl_device_attr attr;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t memory[8192];

static bool open_device(const char *params)
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

static void close_device(void)
{
	int err = OPS.dereg_mr(mr);

	if (!err)
		err = OPS.dealloc_pd(pd);
	if (err)
		fail("freeing memory: %s", strerror(err));
	OPS.close(dev);
}

static bool side_start(struct side *s, bool ud)
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

static void side_stop(struct side *s)
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

static int listen_at(struct point *p, uint16_t port, bool ud)
{
	memset(p, 0, sizeof(*p));
	p->port = port;
	return OPS.listen(dev, NULL, &p->port, ud, 32, p, &p->listener);
}

static struct dapl_conn_tuning tuning;	/* of the next connections, both ends */

static struct dapl_conn_params params_of(struct side *s, const void *pdata, size_t len)
{
	return (struct dapl_conn_params){ .qp = s->qp, .owner = s, .pdata = pdata,
		.pdata_len = len, .reads_out = 4, .reads_in = 4, .ud = s->ud, .tuning = tuning };
}

static int connect_to(struct side *s, uint16_t port, const void *pdata, size_t len)
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

static int accept_on(struct point *p, struct side *s, const void *pdata, size_t len)
{
	struct dapl_conn_params params = params_of(s, pdata, len);

	s->conn = p->conn;
	return OPS.accept(p->conn, &params);
}

static void release(struct side *s)
{
	OPS.release(s->conn);
	s->conn = NULL;
}

/* Connects the two ends. */
static bool pair(struct point *p, struct side *a, struct side *b)
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

/* Disconnects as core does: moves the queue pair to ERR, tells the peer, releases. */
static void hang_up(struct side *s)
{
	OPS.error_qp(s->qp);
	OPS.disconnect(s->conn);
	release(s);
}

static void end_pair(struct side *a, struct side *b)
{
	hang_up(a);
	COMES(b->disconnected, 1);
	hang_up(b);
	COMES(a->released, 1);
	COMES(b->released, 1);
	side_stop(a);
	side_stop(b);
}

static int fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* --- cases --- */

static void facts(void)
{
	char text[64];

	getnameinfo((struct sockaddr *)&attr.address, sizeof(attr.address), text, sizeof(text),
		    NULL, 0, NI_NUMERICHOST);
	printf("# %s port %u on %s, %s; %s; mtu %u active %d\n", attr.device, attr.port,
	       attr.netdev, text, attr.vendor, attr.mtu, attr.port_active);
	printf("# iwarp %d atomics %d write_immediate %d send_invalidate %d ud %d windows %d %d "
	       "max_read_sge %u max_inline %u max_message %u\n", attr.iwarp, attr.atomics,
	       attr.write_immediate, attr.send_invalidate, attr.ud, attr.windows_1,
	       attr.windows_2, attr.max_read_sge, attr.max_inline, attr.max_message);
	printf("# private data %u %u %u; caps 0x%x atomic_cap %d; qp %d wr %d sge %d cq %d cqe %d "
	       "mr %d pd %d mw %d srq %d rd_atom %d init %d\n", attr.pdata_connect,
	       attr.pdata_accept, attr.pdata_reject, attr.limits.device_cap_flags,
	       attr.limits.atomic_cap, attr.limits.max_qp, attr.limits.max_qp_wr,
	       attr.limits.max_sge, attr.limits.max_cq, attr.limits.max_cqe, attr.limits.max_mr,
	       attr.limits.max_pd, attr.limits.max_mw, attr.limits.max_srq,
	       attr.limits.max_qp_rd_atom, attr.limits.max_qp_init_rd_atom);
}

static void spelling(const char *text, int expected)
{
	struct dapl_device *d = NULL;
	double t = now();
	int err = OPS.open(text, NULL, &d);

	t = now() - t;
	printf("# open \"%.40s\": %s, %.3f ms\n", text, strerror(err), t * 1000);
	if (err != expected)
		fail("open \"%.40s\": %s, expected %s", text, strerror(err), strerror(expected));
	if (!err)
		OPS.close(d);
}

static void spellings(void)
{
	char text[400], address[64];

	getnameinfo((struct sockaddr *)&attr.address, sizeof(attr.address), address,
		    sizeof(address), NULL, 0, NI_NUMERICHOST);
	begin("names of the device");
	spelling(attr.netdev, 0);
	snprintf(text, sizeof(text), "  %s \t 0 ", attr.netdev);
	spelling(text, 0);
	snprintf(text, sizeof(text), "%s %u", attr.device, attr.port);
	spelling(text, 0);
	spelling(attr.device, 0);
	snprintf(text, sizeof(text), "%s 0", address);
	spelling(text, 0);
	end();
	begin("names of absent devices");
	snprintf(text, sizeof(text), "%s 2", attr.device);
	spelling(text, ENODEV);
	spelling("eth7 0", ENODEV);
	spelling("mlx4_0 1", ENODEV);
	spelling("192.0.2.1 0", ENODEV);
	spelling("2001:db8::1 0", ENODEV);
	spelling("lo 0", ENODEV);
	spelling("127.0.0.1 0", ENODEV);
	end();
	begin("names that are no names");
	spelling("", EINVAL);
	spelling("   ", EINVAL);
	snprintf(text, sizeof(text), "%s -1", attr.netdev);
	spelling(text, EINVAL);
	snprintf(text, sizeof(text), "%s 99999999999999999999", attr.netdev);
	spelling(text, EINVAL);
	spelling("eth0 0 0", EINVAL);
	spelling("../../etc 1", EINVAL);
	spelling("\x01\xff\x7f 0", EINVAL);
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	spelling(text, EINVAL);
	end();
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = i * 7 + seed + 1;
}

static bool same(const uint8_t *found, size_t found_len, const uint8_t *sent, size_t len)
{
	if (found_len == len && memcmp(found, sent, len) == 0)
		return true;
	fail("private data: %zu bytes sent, %zu received%s", len, found_len,
	     found_len == len ? ", different" : "");
	return false;
}

/* Private data of every length arrives unchanged, in both directions. */
static void private_data(struct point *p)
{
	uint8_t out[256], back[256];

	for (size_t n = 0; n <= attr.pdata_accept; n++) {
		size_t m = n % (attr.pdata_connect + 1);
		struct side a, b;

		p->requests = 0;
		fill(out, m, n);
		fill(back, n, n + 3);
		if (!side_start(&a, false) || !side_start(&b, false))
			return;
		EXPECT(connect_to(&a, p->port, out, m), 0);
		COMES(p->requests, 1);
		if (!same(p->pdata, p->pdata_len, out, m))
			return;
		EXPECT(accept_on(p, &b, back, n), 0);
		COMES(a.established, 1);
		COMES(b.established, 1);
		if (!same(a.pdata, a.pdata_len, back, n))
			return;
		EXPECT(b.pdata_len, 0);
		p->requests = 0;
		end_pair(&a, &b);
		if (case_failed)
			return;
	}
	struct side a;

	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, p->port, out, attr.pdata_connect + 1), EMSGSIZE);
	side_stop(&a);
}

static void rejections(struct point *p, bool ud, size_t limit)
{
	uint8_t out[256];

	for (size_t n = 0; n <= limit; n++) {
		struct side a;

		p->requests = 0;
		fill(out, n, n);
		if (!side_start(&a, ud))
			return;
		EXPECT(connect_to(&a, p->port, NULL, 0), 0);
		COMES(p->requests, 1);
		EXPECT(p->pdata_len, 0);
		EXPECT(OPS.reject(p->conn, true, out, n), 0);
		COMES(a.failures, 1);
		EXPECT(a.why, DAPL_CONN_REJECTED);
		if (!same(a.pdata, a.pdata_len, out, n))
			return;
		release(&a);
		COMES(a.released, 1);
		side_stop(&a);
	}
	p->requests = 0;
}

static void refusal(struct point *p, bool ud)
{
	struct side a;

	if (!side_start(&a, ud))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	EXPECT(OPS.reject(p->conn, false, NULL, 0), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	p->requests = 0;
}

static void nobody(bool ud)
{
	struct side a;
	double t = now();

	if (!side_start(&a, ud))
		return;
	EXPECT(connect_to(&a, 19, "x", 1), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	printf("# %s after %.3f s\n", case_name, now() - t);
	release(&a);
	COMES(a.released, 1);
	EXPECT(a.failures, 1);
	EXPECT(a.established, 0);
	side_stop(&a);
}

static void no_route(const char *address)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(4000) };
	struct dapl_conn_params params;
	struct side a;
	double t = now();

	if (!side_start(&a, false))
		return;
	inet_pton(AF_INET, address, &to.sin_addr);
	params = params_of(&a, NULL, 0);
	params.remote = (struct sockaddr *)&to;
	EXPECT(OPS.connect(dev, &params, &a.conn), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_UNREACHABLE);
	printf("# %s after %.3f s\n", case_name, now() - t);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
}

static int reap(struct ibv_cq *cq, struct ibv_wc *wc)
{
	for (double t = now(); now() - t < 20; usleep(200))
		if (ibv_poll_cq(cq, 1, wc) == 1)
			return wc->status;
	return -1;
}

static int post_recv(struct side *s, unsigned offset)
{
	struct ibv_sge g = { (uintptr_t)memory + offset, 256, mr->lkey };
	struct ibv_recv_wr w = { .sg_list = &g, .num_sge = 1, .wr_id = 1 }, *bad;

	return abs(ibv_post_recv(s->qp, &w, &bad));
}

static int post_send(struct side *s, unsigned offset, unsigned len)
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

static void send_one(struct side *from, struct side *to, unsigned skip)
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

/* Receives posted in INIT, before there is a connection. */
static void data(struct point *p)
{
	struct side a, b;
	struct ibv_wc wc;

	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(post_recv(&a, 4096), 0);
	EXPECT(post_recv(&b, 4096), 0);
	EXPECT(connect_to(&a, p->port, NULL, 0), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	COMES(a.established, 1);
	COMES(b.established, 1);
	send_one(&a, &b, 0);
	send_one(&b, &a, 0);
	EXPECT(post_recv(&b, 4096), 0);
	struct ibv_sge g = { (uintptr_t)memory, 64, mr->lkey };
	struct ibv_send_wr w = { .sg_list = &g, .num_sge = 1, .opcode = IBV_WR_RDMA_READ,
		.wr.rdma = { (uintptr_t)memory + 2048, mr->rkey } }, *bad;

	fill(memory + 2048, 64, 9);
	EXPECT(abs(ibv_post_send(a.qp, &w, &bad)), 0);
	EXPECT(reap(a.cq, &wc), IBV_WC_SUCCESS);
	EXPECT(memcmp(memory, memory + 2048, 64), 0);
	EXPECT(OPS.error_qp(b.qp), 0);
	EXPECT(reap(b.cq, &wc), IBV_WC_WR_FLUSH_ERR);
	OPS.disconnect(b.conn);
	COMES(a.disconnected, 1);
	EXPECT(a.orderly, true);
	hang_up(&a);
	release(&b);
	COMES(a.released, 1);
	COMES(b.released, 1);
	EXPECT(OPS.reset_qp(dev, a.qp), EOPNOTSUPP);
	side_stop(&a);
	side_stop(&b);
}

static void expect_tuned(struct side *s)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr is = { 0 };

	EXPECT(ibv_query_qp(s->qp, &is, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_MIN_RNR_TIMER | IBV_QP_AV, &init), 0);
	EXPECT(is.timeout, 17);
	EXPECT(is.retry_cnt, 3);
	EXPECT(is.rnr_retry, 2);
	EXPECT(is.min_rnr_timer, 9);
	EXPECT(is.ah_attr.grh.traffic_class, 0x28);
}

static void limits_of_one_connection(struct point *p)
{
	struct side a, b;

	tuning = (struct dapl_conn_tuning){ .ack_timeout = 17 + 1, .ack_retry = 3 + 1,
		.rnr_timer = 9 + 1, .rnr_retry = 2 + 1, .traffic_class = 0x28 + 1 };
	if (pair(p, &a, &b)) {
		expect_tuned(&a);
		expect_tuned(&b);
		end_pair(&a, &b);
	}
	tuning = (struct dapl_conn_tuning){ 0 };
}

static void disconnects(struct point *p)
{
	struct side a, b;

	begin("disconnect by the active side");
	if (pair(p, &a, &b)) {
		EXPECT(a.disconnected + b.disconnected, 0);
		end_pair(&a, &b);
		EXPECT(b.orderly, true);
		EXPECT(b.disconnected, 1);
	}
	end();
	begin("disconnect by the passive side");
	if (pair(p, &a, &b)) {
		end_pair(&b, &a);
		EXPECT(a.orderly, true);
	}
	end();
	begin("disconnect by both at once");
	if (pair(p, &a, &b)) {
		OPS.error_qp(a.qp);
		OPS.error_qp(b.qp);
		OPS.disconnect(a.conn);
		OPS.disconnect(b.conn);
		release(&a);
		release(&b);
		COMES(a.released, 1);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	end();
}

static void releases(struct point *p)
{
	struct side a, b;

	begin("release right after connect");
	p->refuse = true;	/* siw does not destroy a queue pair during a handshake */
	for (int i = 0; i < 20; i++) {
		if (!side_start(&a, false))
			return;
		EXPECT(connect_to(&a, p->port, "x", 1), 0);
		usleep(i * 500);
		release(&a);
		side_stop(&a);	/* must be allowed at once */
		COMES(a.released, 1);
	}
	usleep(500000);
	p->refuse = false;
	p->requests = 0;
	end();

	begin("release by the active side of what the passive one then accepts");
	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(connect_to(&a, p->port, "late", 4), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	release(&a);
	COMES(a.released, 1);
	usleep(300000);
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	if (!either(&b.failures, &b.disconnected))
		fail("accept of a peer that is gone: nothing came");
	printf("# accept of a peer that is gone: established %d failures %d (%d) disconnected %d\n",
	       b.established, b.failures, b.why, b.disconnected);
	release(&b);
	COMES(b.released, 1);
	side_stop(&a);
	side_stop(&b);
	end();

	begin("release of a request unanswered refuses it");
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	OPS.release(p->conn);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	end();

	begin("release right after accept");
	if (!side_start(&a, false) || !side_start(&b, false))
		return;
	EXPECT(connect_to(&a, p->port, "x", 1), 0);
	COMES(p->requests, 1);
	p->requests = 0;
	EXPECT(accept_on(p, &b, NULL, 0), 0);
	release(&b);
	COMES(b.released, 1);
	if (!either(&a.failures, &a.disconnected))
		fail("its peer got no upcall");
	printf("# its peer: established %d failures %d (%d) disconnected %d\n", a.established,
	       a.failures, a.why, a.disconnected);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	side_stop(&b);
	end();

	begin("release without a disconnect tells the peer");
	if (pair(p, &a, &b)) {
		release(&a);
		COMES(b.disconnected, 1);
		COMES(a.released, 1);
		hang_up(&b);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	end();

	begin("a connection is released once, and nothing follows");
	EXPECT(a.released, 1);
	EXPECT(a.failures + a.disconnected, 0);
	EXPECT(b.disconnected, 1);
	end();
}

static void ports(void)
{
	struct point p, q;
	struct side a;
	uint16_t first;

	begin("a port in use");
	EXPECT(listen_at(&p, 7471, false), 0);
	EXPECT(p.port, 7471);
	EXPECT(listen_at(&q, 7471, false), EADDRINUSE);
	OPS.unlisten(p.listener);
	end();
	begin("unlisten frees the port, at once and often");
	for (int i = 0; i < 50; i++) {
		EXPECT(listen_at(&p, 7471, false), 0);
		OPS.unlisten(p.listener);
	}
	end();
	begin("any port");
	EXPECT(listen_at(&p, 0, false), 0);
	EXPECT(p.port >= 1024, true);
	EXPECT(listen_at(&q, 0, false), 0);
	EXPECT(p.port != q.port, true);
	OPS.unlisten(q.listener);
	end();
	begin("a request handed up outlives its listener");
	if (!side_start(&a, false))
		return;
	struct side b;
	if (!side_start(&b, false))
		return;
	first = p.port;
	EXPECT(connect_to(&a, first, "abc", 3), 0);
	COMES(p.requests, 1);
	OPS.unlisten(p.listener);
	EXPECT(accept_on(&p, &b, "d", 1), 0);
	COMES(a.established, 1);
	COMES(b.established, 1);
	end_pair(&a, &b);
	end();
	begin("no listener after unlisten");
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, first, "x", 1), 0);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
	end();
	begin("listening at an address of another device, and of none");
	struct sockaddr_in other = { .sin_family = AF_INET };
	uint16_t port = 0;
	inet_pton(AF_INET, attr.iwarp ? "10.99.0.1" : "10.98.0.1", &other.sin_addr);
	EXPECT(OPS.listen(dev, (struct sockaddr *)&other, &port, false, 8, &p, &p.listener),
	       EADDRNOTAVAIL);
	inet_pton(AF_INET, "192.0.2.7", &other.sin_addr);
	int err = OPS.listen(dev, (struct sockaddr *)&other, &port, false, 8, &p, &p.listener);
	if (!err)
		fail("listening at a foreign address");
	end();
}

/* Unlisten while requests arrive: none may come up afterwards. */
static void unlisten_during_requests(void)
{
	struct point p;
	struct side s[16];

	for (int round = 0; round < 10; round++) {
		int seen;

		EXPECT(listen_at(&p, 0, false), 0);
		p.refuse = true;
		for (int i = 0; i < 16; i++) {
			if (!side_start(&s[i], false))
				return;
			EXPECT(connect_to(&s[i], p.port, "x", 1), 0);
		}
		usleep(round * 2000);
		OPS.unlisten(p.listener);
		seen = p.requests;
		usleep(50000);
		EXPECT(p.requests, seen);
		for (int i = 0; i < 16; i++) {
			release(&s[i]);
			side_stop(&s[i]);
		}
		for (int i = 0; i < 16; i++)
			COMES(s[i].released, 1);
	}
}

static void cycles(struct point *p, int n)
{
	struct side a, b;
	int fd0 = 0;
	size_t memory0 = 0, memory1;
	double t = 0;

	for (int i = 0; i < n + 20; i++) {
		if (i == 20) {	/* all that is kept for reuse exists by now */
			fd0 = fds();
			memory0 = mallinfo2().uordblks;
			t = now();
		}
		if (!pair(p, &a, &b))
			return;
		end_pair(&a, &b);
		if (case_failed)
			return;
	}
	t = now() - t;
	usleep(2500000);	/* ids that waited for a peer's answer are destroyed */
	dapl_service_flush();
	memory1 = mallinfo2().uordblks;
	printf("# %d connections, %.1f ms each; heap %+ld bytes\n", n, t / n * 1000,
	       (long)(memory1 - memory0));
	EXPECT(fds(), fd0);
	if (memory1 > memory0 + 4096)
		fail("heap grew by %zu bytes", memory1 - memory0);
}

static void *one_of_four(void *arg)
{
	struct point p;
	struct side a, b;

	(void)arg;
	if (listen_at(&p, 0, false)) {
		fail("no listener");
		return NULL;
	}
	for (int i = 0; i < 40 && !case_failed; i++) {
		if (!pair(&p, &a, &b))
			return NULL;
		if (i % 4 == 3) {	/* both ends, without a wait */
			hang_up(&a);
			hang_up(&b);
			side_stop(&a);
			side_stop(&b);
			if (!wait_until(&a.released, 1, 30) || !wait_until(&b.released, 1, 30))
				fail("not released");
		} else if (i % 2) {
			end_pair(&a, &b);
		} else {
			end_pair(&b, &a);
		}
	}
	OPS.unlisten(p.listener);
	return NULL;
}

static void four_threads(struct point *p)
{
	pthread_t t[4];

	(void)p;
	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, one_of_four, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* --- a peer on librdmacm, without this provider's private data --- */

static void foreign_active(struct point *p, const uint8_t *bytes, size_t len, size_t seen)
{
	struct rdma_conn_param param = { .private_data = bytes, .private_data_len = len,
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7,
		.rnr_retry_count = 7 };
	struct sockaddr_storage to = attr.address;
	struct rdma_cm_id *id;
	struct side s;

	p->requests = 0;
	if (!side_start(&s, false))
		return;
	((struct sockaddr_in *)&to)->sin_port = htons(p->port);
	EXPECT(rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), 0);
	EXPECT(rdma_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000), 0);
	EXPECT(rdma_resolve_route(id, 2000), 0);
	param.qp_num = s.qp->qp_num;
	/* rdma_migrate_id() is synchronous and would wait for an answer: use a channel of its
	 * own. */
	struct rdma_event_channel *c = rdma_create_event_channel();

	EXPECT(rdma_migrate_id(id, c), 0);
	EXPECT(rdma_connect(id, &param), 0);
	COMES(p->requests, 1);
	EXPECT(p->pdata_len, seen);
	EXPECT(memcmp(p->pdata, bytes, len < seen ? len : seen), 0);
	EXPECT(OPS.reject(p->conn, true, "no", 2), 0);
	struct rdma_cm_event *e;

	EXPECT(rdma_get_cm_event(c, &e), 0);
	EXPECT(e->event, RDMA_CM_EVENT_REJECTED);
	EXPECT(e->status, attr.iwarp ? -ECONNRESET : 28);
	EXPECT(memcmp((const char *)e->param.conn.private_data + 4, "no", 2), 0);
	rdma_ack_cm_event(e);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(c);
	side_stop(&s);
	p->requests = 0;
}

/* Answers with `bytes`: accept if `accept`, else reject. */
static void foreign_passive(const uint8_t *bytes, size_t len, struct side *a)
{
	struct sockaddr_storage at = attr.address;
	struct rdma_event_channel *c = rdma_create_event_channel();
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	EXPECT(rdma_create_id(c, &id, NULL, RDMA_PS_TCP), 0);
	EXPECT(rdma_bind_addr(id, (struct sockaddr *)&at), 0);
	EXPECT(rdma_listen(id, 4), 0);
	if (!side_start(a, false))
		return;
	EXPECT(connect_to(a, ntohs(rdma_get_src_port(id)), "abc", 3), 0);
	EXPECT(rdma_get_cm_event(c, &e), 0);
	EXPECT(e->event, RDMA_CM_EVENT_CONNECT_REQUEST);
	printf("# a foreign listener sees %u bytes of private data of the provider: %.3s\n",
	       e->param.conn.private_data_len, (const char *)e->param.conn.private_data);
	struct rdma_cm_id *conn = e->id;

	EXPECT(rdma_reject(conn, bytes, len), 0);
	rdma_ack_cm_event(e);
	COMES(a->failures, 1);
	release(a);
	COMES(a->released, 1);
	rdma_destroy_id(conn);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(c);
	side_stop(a);
}

/* Receives the MPA Request from a socket: 20 bytes, of which the last two are the length of
 * the rest. */
static size_t take_request(int fd, uint8_t *frame, size_t room)
{
	size_t got = 0, whole = 20;

	while (got < whole && whole <= room) {
		ssize_t n = recv(fd, frame + got, whole - got, 0);

		if (n <= 0)
			return 0;
		got += n;
		if (got >= 20)
			whole = 20 + (frame[18] << 8 | frame[19]);
	}
	return got;
}

/* An iWARP peer that accepts and sends at once: siw takes what arrives with the Reply as a
 * part of it, and gives the handshake up. The peer exists and did not reject. */
static void peer_that_sends_at_once(void)
{
	struct sockaddr_storage here = attr.address;
	socklen_t size = sizeof(here);
	int server = socket(here.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	uint8_t frame[600];
	size_t n;
	struct side a;

	EXPECT(bind(server, (struct sockaddr *)&here, sizeof(struct sockaddr_in)), 0);
	EXPECT(listen(server, 1), 0);
	EXPECT(getsockname(server, (struct sockaddr *)&here, &size), 0);
	if (!side_start(&a, false))
		return;
	EXPECT(connect_to(&a, ntohs(((struct sockaddr_in *)&here)->sin_port), "x", 1), 0);
	fd = accept(server, NULL, NULL);
	n = take_request(fd, frame, sizeof(frame) - 4);
	EXPECT(n >= 20, true);
	memcpy(frame, "MPA ID Rep Frame", 16);
	memset(frame + n, 0, 4);
	EXPECT(send(fd, frame, n + 4, MSG_NOSIGNAL), (ssize_t)n + 4);
	COMES(a.failures, 1);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	EXPECT(a.established, 0);
	close(fd);
	close(server);
	release(&a);
	COMES(a.released, 1);
	side_stop(&a);
}

static void foreign_peers(struct point *p)
{
	uint8_t bytes[256];
	struct side a;
	size_t padded = attr.iwarp ? 20 : 56;

	begin("a foreign active peer");
	fill(bytes, sizeof(bytes), 1);
	foreign_active(p, bytes, 20, padded);
	end();
	if (!attr.iwarp) {
		begin("a hostile active peer");
		bytes[52] = 0xda, bytes[53] = 0x92, bytes[54] = 0, bytes[55] = 255;
		foreign_active(p, bytes, 56, 56);
		bytes[55] = 10;		/* but the padding is not zero */
		foreign_active(p, bytes, 56, 56);
		end();
	}
	if (attr.iwarp) {
		begin("a hasty passive peer is a refusal");
		peer_that_sends_at_once();
		end();
	}
	begin("a foreign passive peer rejects");
	fill(bytes, sizeof(bytes), 1);
	foreign_passive(bytes, 20, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 20 : 148);
	end();
	begin("a peer like OFA's provider rejects");
	memcpy(bytes, "\2\0\0\0data", 8);
	foreign_passive(bytes, 8, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 4 : 144);
	EXPECT(memcmp(a.pdata, "data", 4), 0);
	end();
	begin("a reject without anything is a refusal");
	foreign_passive(NULL, 0, &a);
	EXPECT(a.why, DAPL_CONN_REFUSED);
	end();
	begin("a hostile passive peer rejects");
	memcpy(bytes, "\xda\x92\0\xff", 4);
	foreign_passive(bytes, attr.iwarp ? 251 : 148, &a);
	EXPECT(a.why, DAPL_CONN_REJECTED);
	EXPECT(a.pdata_len, attr.iwarp ? 251 : 148);
	end();
}

static void datagrams(void)
{
	struct side a, b;
	struct point p;
	uint8_t out[256], back[256];

	begin("UD: private data, address handles, data both ways");
	EXPECT(listen_at(&p, 0, true), 0);
	for (size_t n = 0; n <= 132; n += 12) {
		if (!side_start(&a, true) || !side_start(&b, true))
			return;
		fill(out, n, n);
		fill(back, n, n + 1);
		EXPECT(post_recv(&a, 4096), 0);
		EXPECT(post_recv(&b, 4096), 0);
		EXPECT(connect_to(&a, p.port, out, n), 0);
		COMES(p.requests, 1);
		p.requests = 0;
		EXPECT(p.ud, true);
		if (!same(p.pdata, p.pdata_len, out, n))
			return;
		EXPECT(accept_on(&p, &b, back, n), 0);
		COMES(a.established, 1);
		COMES(b.established, 1);
		if (!same(a.pdata, a.pdata_len, back, n))
			return;
		EXPECT(a.had_peer && b.had_peer, true);
		EXPECT(a.ud_peer.qpn, b.qp->qp_num);
		EXPECT(b.ud_peer.qpn, a.qp->qp_num);
		send_one(&a, &b, 40);
		send_one(&b, &a, 40);
		if (case_failed)
			return;
		OPS.disconnect(a.conn);
		release(&a);
		release(&b);
		COMES(a.released, 1);
		COMES(b.released, 1);
		side_stop(&a);
		side_stop(&b);
	}
	if (!side_start(&a, true))
		return;
	EXPECT(connect_to(&a, p.port, out, 149), EMSGSIZE);
	side_stop(&a);
	end();
	begin("UD: reject");
	rejections(&p, true, 132);
	end();
	begin("UD: refusal by the provider");
	refusal(&p, true);
	end();
	begin("UD: no listener");
	nobody(true);
	end();
	OPS.unlisten(p.listener);
}

static void removal(struct point *p)
{
	char command[100];
	struct side a, b;

	if (!pair(p, &a, &b))
		return;
	async_events = 0;
	/* In the background: the command returns when the last process has closed the device. */
	snprintf(command, sizeof(command), "rdma link delete %s &", attr.device);
	EXPECT(system(command), 0);
	COMES(async_events, 1);
	printf("# asynchronous events %d, the last %d; a disconnected %d orderly %d\n",
	       async_events, last_async, a.disconnected, a.orderly);
	EXPECT(last_async, IBV_EVENT_DEVICE_FATAL);
	COMES(a.disconnected, 1);
	COMES(b.disconnected, 1);
	hang_up(&a);
	hang_up(&b);
	COMES(a.released, 1);
	COMES(b.released, 1);
	OPS.destroy_qp(a.qp);
	OPS.destroy_qp(b.qp);
	OPS.destroy_cq(a.cq);
	OPS.destroy_cq(b.cq);
}

/* Returns whether the command line names this case, or no case. */
static bool wanted(const char *name)
{
	const char *only = getenv("PROBE_ONLY");

	return !only || strstr(name, only);
}

static void one(const char *name, void (*run)(struct point *), struct point *p)
{
	if (!wanted(name))
		return;
	begin(name);
	run(p);
	end();
}

static void rejections_rc(struct point *p) { rejections(p, false, attr.pdata_reject); }
static void refusal_rc(struct point *p) { refusal(p, false); }
static void cycles_200(struct point *p) { cycles(p, 200); }

int main(int argc, char **argv)
{
	struct point p;
	bool remove_it = argc > 3 && strcmp(argv[3], "remove") == 0;

	upcall_observer = on_upcall;
	if (argc < 2)
		return fputs("usage: device_probe PARAMS [PARAMS6 [remove]]\n", stderr), 2;
	log_init("dapl", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST", 3);
	trace_init("DAPL_TRACE_LEVEL");
	dapl_settings_read();
	dapl_settings.arp_timeout_ms = 500;
	dapl_settings.arp_retries = 1;
	if (dapl_service_get())
		return 1;
	int fd0 = -1;

	for (int round = 0; round < 2; round++) {
		begin("open");
		if (!open_device(argv[1]))
			return 1;
		facts();
		end();
		if (round == 0)
			spellings();
		begin("listen");
		EXPECT(listen_at(&p, 0, false), 0, 1);
		end();
		if (round == 0) {
			one("private data of every length", private_data, &p);
			one("reject with private data of every length", rejections_rc, &p);
			one("refusal by the provider", refusal_rc, &p);
			begin("no listener");
			nobody(false);
			end();
			if (!attr.iwarp) {	/* a dummy device resolves every neighbour */
				begin("a neighbour that is not there");
				no_route("10.99.0.77");
				end();
			}
			begin("a network that is not there");
			no_route("192.0.2.1");
			end();
			one("data both ways, RDMA read, flush, reset", data, &p);
			if (!attr.iwarp)
				one("limits of one connection", limits_of_one_connection, &p);
			disconnects(&p);
			releases(&p);
			ports();
			begin("unlisten while requests pour in");
			unlisten_during_requests();
			end();
			foreign_peers(&p);
			if (attr.ud)
				datagrams();
			one("four threads at once", four_threads, &p);
			one("200 connections leave nothing behind", cycles_200, &p);
		}
		if (round == 1 && remove_it)
			one("the device is removed", removal, &p);
		begin("close with connections that linger");
		struct side a, b;
		if (!(round == 1 && remove_it) && pair(&p, &a, &b)) {
			OPS.error_qp(a.qp);
			OPS.disconnect(a.conn);
			release(&a);
			OPS.error_qp(b.qp);
			OPS.disconnect(b.conn);
			release(&b);
			side_stop(&a);
			side_stop(&b);
		}
		OPS.unlisten(p.listener);
		close_device();
		end();
		begin("close leaves no descriptor");
		if (round == 0)
			fd0 = fds();
		else
			EXPECT(fds(), fd0, 1);
		end();
	}
	if (argc > 2 && argv[2][0] && !remove_it) {
		begin("IPv6");
		if (open_device(argv[2])) {
			struct side a, b;

			facts();
			EXPECT(listen_at(&p, 0, false), 0, 1);
			if (pair(&p, &a, &b))
				end_pair(&a, &b);
			begin("IPv6: no listener");
			nobody(false);
			end();
			if (attr.ud)
				datagrams();
			OPS.unlisten(p.listener);
			close_device();
		}
		end();
	}
	dapl_service_put();
	trace_fini();
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
