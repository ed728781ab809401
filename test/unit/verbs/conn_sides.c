/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conn_sides.c - see conn_sides.h. */
#include "common/address.h"
#include "dapl/verbs/conn.h"
#include "dapl/verbs/siw_queue.h"
#include "dapl/verbs/tap.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/conn_sides.h"

struct dapl_settings dapl_settings;		/* in place of the environment */
struct dapl_device dev;
struct rdma_cm_id id;
struct ibv_qp qp;
struct dapl_conn *conn;
int owner;
const char *failing_too;
int refusal;
bool peer_is_gone, no_memory, releases_in_connect;
int ids;
enum rdma_port_space asked_space;
struct sockaddr_storage asked_remote;
int asked_timeout, asked_tos, asked_ack_timeout;
struct rdma_conn_param asked;
uint8_t asked_data[256];
int asked_data_length;
uint64_t lingers_us;
enum dapl_conn_failure why_told;
struct dapl_ud_peer peer_told;
char data_told[256];

static struct rdma_event_channel channel;
static int query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr, size_t size);
static struct verbs_context verbs = {
	.context.abi_compat = __VERBS_ABI_IS_EXTENDED, .sz = sizeof verbs, .query_port = query_port
};
static struct siw_cq siw_cq;
struct siw_qp siw;
static struct ibv_pd pd;
static struct ibv_ah ah;
static struct sockaddr_storage remote;
static int handles;			/* alive, and not core's */
static struct dapl_task *task;
static void (*task_run)(struct dapl_task *);
static struct dapl_timer *timer;		/* that runs */
static void (*timer_fire)(struct dapl_timer *);

static int refuse(const char *word, int fails)
{
	if (!fails && (!failing_too || strcmp(word, failing_too)))
		return 0;
	errno = refusal;
	return -1;
}

/* For what makes or changes an object. */
static int try(const char *word) { return refuse(word, step_fails(word)); }

int try_on(const struct rdma_cm_id *of, const char *word)
{
	assert_ptr_equal(of, &id);
	assert_int_equal(ids, 1);
	return refuse(word, step(word));
}

/* What the peer may do once it has the answer. */
static int answer(const struct rdma_cm_id *of, const char *word)
{
	char with[32];

	snprintf(with, sizeof with, "%s%s%s", word, qp.state == IBV_QPS_RTS ? ":RTS" : "", handles ? ":handle" : "");
	try_on(of, with);
	return try(word);
}

void left_is_at(const char *expected, const char *file, int line)
{
	char objects[64];

	snprintf(objects, sizeof objects, "%s%s%s", ids ? "id " : "", handles ? "handle " : "", timer ? "timer" : "");
	words_are_at(objects, expected, file, line);
}

/* --- in place of librdmacm and libibverbs ------------------------------------------------------------- */

int rdma_create_id(struct rdma_event_channel *on, struct rdma_cm_id **out, void *target, enum rdma_port_space space)
{
	assert_ptr_equal(on, &channel);
	*out = &id;			/* its manual page does not say what a failure leaves there */
	if (try("id"))
		return -1;
	assert_int_equal(ids++, 0);
	id.context = target;
	asked_space = space;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *of)
{
	assert_ptr_equal(of, &id);
	assert_int_equal(ids--, 1);
	return 0;
}

int rdma_set_option(struct rdma_cm_id *of, int level, int name, void *value, size_t size)
{
	assert_ptr_equal(of, &id);
	assert_int_equal(level, RDMA_OPTION_ID);
	assert_int_equal(size, 1);
	*(name == RDMA_OPTION_ID_TOS ? &asked_tos : &asked_ack_timeout) = *(uint8_t *)value;
	errno = EINVAL;			/* as an old kernel does */
	return -1;
}

int rdma_resolve_addr(struct rdma_cm_id *of, struct sockaddr *from, struct sockaddr *to, int timeout)
{
	assert_ptr_equal(from, &dev.attr.address);
	address_copy(&asked_remote, to);
	asked_timeout = timeout;
	return try_on(of, "address");
}

int rdma_resolve_route(struct rdma_cm_id *of, int timeout)
{
	asked_timeout = timeout;
	return try_on(of, "route");
}

static void keep(const void *data, int length)
{
	asked_data_length = length;
	memset(asked_data, 0, sizeof asked_data);
	if (length)
		memcpy(asked_data, data, (size_t)length);
}

int rdma_connect(struct rdma_cm_id *of, struct rdma_conn_param *param)
{
	assert_int_equal(conn->lock.state, MUTEX_FREE);	/* siw waits in here */
	asked = *param;
	keep(param->private_data, param->private_data_len);
	if (releases_in_connect)
		hw_conn_release(conn);
	return try_on(of, "connect");
}

int rdma_accept(struct rdma_cm_id *of, struct rdma_conn_param *param)
{
	asked = *param;
	keep(param->private_data, param->private_data_len);
	return answer(of, "accept");
}

int rdma_establish(struct rdma_cm_id *of) { return answer(of, "establish"); }

int rdma_reject(struct rdma_cm_id *of, const void *data, uint8_t length)
{
	keep(data, length);
	return try_on(of, "reject");
}

int rdma_reject_ece(struct rdma_cm_id *of, const void *data, uint8_t length)
{
	keep(data, length);
	return try_on(of, "refuse");
}

int ibv_destroy_ah(struct ibv_ah *of)
{
	assert_ptr_equal(of, &ah);
	handles--;
	return 0;
}

/* The queue pair fails to move at the first of its two steps, which the connection manager proposes. */
int rdma_init_qp_attr(struct rdma_cm_id *of, struct ibv_qp_attr *attr, int *mask)
{
	assert_ptr_equal(of, &id);
	*mask = IBV_QP_STATE;
	return peer_is_gone ? try("rts") : 0;
}

int ibv_modify_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask)
{
	assert_ptr_equal(of, &qp);
	if (attr->qp_state == IBV_QPS_RTR && !peer_is_gone && try("rts"))
		return refusal;
	of->state = attr->qp_state;
	return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *in, struct ibv_ah_attr *attr)
{
	assert_ptr_equal(in, &pd);
	if (try("handle"))
		return NULL;
	handles++;
	return &ah;
}

static int query_port(struct ibv_context *of, uint8_t port, struct ibv_port_attr *attr, size_t size) { return 0; }

ssize_t _ibv_query_gid_table(struct ibv_context *of, struct ibv_gid_entry *table, size_t n, uint32_t flags, size_t size)
{
	assert_ptr_equal(of, &verbs.context);
	return 0;
}

/* The capture asks for the path of each connection that it learns. */
int ibv_query_qp(struct ibv_qp *of, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init)
{
	assert_ptr_equal(of, &qp);
	assert_int_not_equal(conn->lock.state, MUTEX_FREE);
	step("tap");
	attr->dest_qp_num = 99;
	attr->path_mtu = IBV_MTU_1024;
	return 0;
}

REPLACE(dapl_task_queue, dapl_timer_start, dapl_timer_stop)

void __wrap_dapl_task_queue(struct dapl_task *of, void (*run)(struct dapl_task *))
{
	assert_true(!task || task == of);
	task = of;
	task_run = run;
}

void __wrap_dapl_timer_start(struct dapl_timer *of, uint64_t delay_us, void (*fire)(struct dapl_timer *))
{
	assert_null(timer);
	timer = of;
	timer_fire = fire;
	lingers_us = delay_us;
}

bool __wrap_dapl_timer_stop(struct dapl_timer *of)
{
	if (timer != of)
		return false;
	timer = NULL;
	lingers_us = 0;
	return true;
}

UNIT_FAIL_CALLOC(no_memory)

static void upcall(const char *word, const void *to, const struct dapl_conn *of)
{
	assert_ptr_equal(to, &owner);
	assert_int_equal(of->lock.state, MUTEX_FREE);
	step(word);
}

static void keep_told(const void *data, size_t length)
{
	assert_true(length < sizeof data_told);
	memset(data_told, 0, sizeof data_told);
	if (length)
		memcpy(data_told, data, length);
}

void dapl_up_established(void *to, struct dapl_conn *of, const struct dapl_established *info)
{
	assert_int_equal(of->state, CONN_ESTABLISHED);
	keep_told(info->pdata, info->pdata_len);
	if (info->ud) {			/* the handle is core's now */
		peer_told = *info->ud;
		handles--;
	}
	upcall("up:established", to, of);
}

void dapl_up_failed(void *to, struct dapl_conn *of, enum dapl_conn_failure why, const void *data, size_t length)
{
	assert_int_equal(of->state, CONN_CLOSED);
	why_told = why;
	keep_told(data, length);
	upcall("up:failed", to, of);
}

void dapl_up_released(void *to)
{
	assert_ptr_equal(to, &owner);
	step("up:released");
}

bool dapl_up_has_requests(void *to, const struct dapl_conn *of) { return false; }
void dapl_up_disconnected(void *to, struct dapl_conn *of, bool orderly) { upcall("up:disconnected", to, of); }

/* --- fixture ------------------------------------------------------------------------------------------------- */

void set_address(struct sockaddr *to, const char *text, uint16_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	to->sa_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	assert_int_equal(inet_pton(to->sa_family, text, to->sa_family == AF_INET ? (void *)&in->sin_addr :
				   (void *)&in6->sin6_addr), 1);
	address_set_port(to, port);
}

static void set_device(void)
{
	dev = (struct dapl_device){ .verbs = &verbs.context, .channel = &channel,
		.attr = { .device = "dev0", .ud = true, .limits = { .max_qp_rd_atom = 16,
			.max_qp_init_rd_atom = 16 } } };
	dapl_mutex_init(&dev.lock, RANK_VERBS_DEVICE);
	set_address((struct sockaddr *)&dev.attr.address, "10.0.0.1", 0);
	memset(&id, 0, sizeof id);
	set_address(&id.route.addr.src_addr, "10.0.0.1", 1);
	set_address(&id.route.addr.dst_addr, "10.0.0.2", 2);
	qp = (struct ibv_qp){ .context = &verbs.context, .pd = &pd, .qp_num = QP_NUMBER };
	if (!siw.cq) {
		siw.cq = &siw_cq;
		dapl_mutex_init(&siw_cq.lock, RANK_SIW_CQ);
		object_table_add(&siw.entry, &qp);
	}
	hw_tap(&dev, true);
}

int sides_begin(void **state)
{
	memset(&dapl_settings, 0, sizeof dapl_settings);
	dapl_settings.tclass = dapl_settings.tos = dapl_settings.ack_timer = -1;
	dapl_settings.dscp_high_throughput = 10;
	dapl_settings.dscp_low_latency = 46;
	dapl_settings.dscp_economy = 8;
	dapl_settings.dscp_premium = 34;
	set_device();
	memset(&remote, 0, sizeof remote);
	set_address((struct sockaddr *)&remote, "10.0.0.2", 2);
	conn = NULL;
	refusal = ENOBUFS;
	peer_is_gone = no_memory = releases_in_connect = false;
	failing_too = NULL;
	ids = handles = 0;
	asked_tos = asked_ack_timeout = -1;
	asked_timeout = asked_data_length = 0;
	memset(&asked, 0, sizeof asked);
	siw.max_reads = MOST_READS;
	peer_told = (struct dapl_ud_peer){ 0 };
	memset(data_told, 0, sizeof data_told);
	task = NULL;
	timer = NULL;
	lingers_us = 0;
	forget_steps();
	return 0;
}

int sides_end(void **state)
{
	while (dev.conns)
		hw_conn_destroy(dev.conns);
	hw_tap_close(&dev);
	return ids || handles || timer ? -1 : 0;
}

struct dapl_conn_params own_params(void)
{
	return (struct dapl_conn_params){ .qp = &qp, .owner = &owner, .remote = (struct sockaddr *)&remote,
		.pdata = "hello", .pdata_len = 5, .reads_out = 4, .reads_in = 5 };
}

void run_task(void)
{
	struct dapl_task *now = task;

	assert_non_null(now);
	task = NULL;
	task_run(now);
}

bool task_is_queued(void) { return task; }

void end_linger(void)
{
	struct dapl_timer *now = timer;

	assert_non_null(now);
	__wrap_dapl_timer_stop(now);
	timer_fire(now);
}
