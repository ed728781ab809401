/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_steps.c - see device_steps.h. */
#include <dlfcn.h>
#include <sys/eventfd.h>
#include "common/address.h"
#include "dapl/verbs/probe.h"
#include "test/unit/unit.h"
#include "test/unit/verbs/device_steps.h"

struct hw_places here;
struct ibv_device hardware[PLACES];
uint8_t ports[PLACES];
const char *text_of_places;
struct ia_params params_told;
struct rdma_event_channel channel;
struct ibv_context context;
int refusal;
bool has_filler, no_memory;
bool watches_cm, watches_async, keeps_librdmacm;
int asked;
const struct rdma_cm_id *notified;
void *ethernet;
int ia;
struct dapl_device *dev;
struct ibv_async_event events[EVENTS];
int coming, taken, end_of_events;
void (*ready)(struct dapl_watch *);
struct ibv_qp qp;
int reports, err_reported;
enum log_id id_reported;
char reported[512];

static struct ibv_context bound_to[PLACES];	/* librdmacm's */
static struct rdma_cm_id id;
static struct ibv_cq filler;
static int ids, channels, contexts, fillers;	/* alive */
static struct dapl_device *memory;	/* of the device; NULL: freed */

static int try(const char *word)
{
	asked++;
	if (!step_fails(word))
		return 0;
	errno = refusal;
	return -1;
}

/* --- in place of librdmacm and libibverbs ----------------------------------------------------------------- */

struct rdma_event_channel *rdma_create_event_channel(void)
{
	if (try("channel"))
		return NULL;
	channels++;
	return &channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *of)
{
	assert_ptr_equal(of, &channel);
	assert_int_equal(ids, 0);
	assert_false(watches_cm || watches_async);
	channels--;
}

int rdma_create_id(struct rdma_event_channel *on, struct rdma_cm_id **out, void *target, enum rdma_port_space space)
{
	assert_ptr_equal(on, &channel);
	assert_null(target);
	assert_int_equal(space, RDMA_PS_TCP);
	if (try("id"))
		return -1;
	id = (struct rdma_cm_id){ 0 };
	ids++;
	*out = &id;
	return 0;
}

int rdma_destroy_id(struct rdma_cm_id *of)
{
	assert_ptr_equal(of, &id);
	ids--;
	return 0;
}

int rdma_bind_addr(struct rdma_cm_id *of, struct sockaddr *addr)
{
	size_t i = 0;

	assert_ptr_equal(of, &id);
	while (!address_same_host(addr, (struct sockaddr *)&here.place[i].address))
		assert_true(++i < here.n);
	if (try("bind"))
		return -1;
	id.verbs = *hardware[i].name ? &bound_to[i] : NULL;
	id.port_num = ports[i];
	return 0;
}

struct ibv_context *ibv_open_device(struct ibv_device *of)
{
	assert_ptr_equal(of, id.verbs->device);
	if (try("verbs"))
		return NULL;
	context.device = of;
	contexts++;
	return &context;
}

int ibv_close_device(struct ibv_context *of)
{
	assert_ptr_equal(of, &context);
	assert_int_equal(fillers, 0);
	assert_false(watches_async);
	contexts--;
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *of)
{
	assert_ptr_equal(of, &filler);
	fillers--;
	return 0;
}

int ibv_get_async_event(struct ibv_context *of, struct ibv_async_event *event)
{
	assert_ptr_equal(of, &context);
	errno = end_of_events;
	if (taken == coming)
		return -1;
	*event = events[taken++];
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	assert_int_equal(event->event_type, events[taken - 1].event_type);
	step("ack");
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *of, uint8_t number, struct _compat_ibv_port_attr *out)
{
	struct ibv_port_attr *attr = (struct ibv_port_attr *)out;

	assert_ptr_equal(of, &context);
	attr->active_mtu = IBV_MTU_1024;
	return 0;
}

/* Of a connection, which COMM_EST is about. */
int rdma_notify(struct rdma_cm_id *of, enum ibv_event_type event)
{
	assert_int_equal(event, IBV_EVENT_COMM_EST);
	notified = of;
	return 0;
}

/* --- in place of other files ---------------------------------------------------------------------------------- */

REPLACE(hw_address_find_places, hw_probe, dapl_task_queue, dapl_watch_start, dapl_watch_stop, dapl_up_async, log_report)
EXTEND(dlopen, calloc, free)

int __wrap_hw_address_find_places(struct hw_places *places, const struct ia_params *params, const char *text)
{
	params_told = *params;
	text_of_places = text;
	if (try("places"))
		return refusal;
	*places = here;
	return 0;
}

int __wrap_hw_probe(struct dapl_device *of, struct rdma_cm_id *bound)
{
	assert_ptr_equal(bound, &id);
	assert_int_equal(ids, 1);
	assert_ptr_equal(of->verbs, &context);
	snprintf(of->attr.device, sizeof of->attr.device, "%s", context.device->name);
	if (has_filler) {
		of->siw_filler = &filler;
		fillers++;
	}
	return try("probe") ? refusal : 0;
}

/* The service thread runs it at once. */
void __wrap_dapl_task_queue(struct dapl_task *task, void (*run)(struct dapl_task *)) { run(task); }

int __wrap_dapl_watch_start(struct dapl_watch *watch, int fd, void (*run)(struct dapl_watch *))
{
	bool is_cm = watch == &memory->cm_watch;

	assert_ptr_equal(watch, is_cm ? &memory->cm_watch : &memory->async_watch);
	assert_int_equal(fd, is_cm ? channel.fd : context.async_fd);
	if (try(is_cm ? "cm" : "watch"))
		return refusal;
	*(is_cm ? &watches_cm : &watches_async) = true;
	if (!is_cm)
		ready = run;
	return 0;
}

/* Harmless if it is not started. */
void __wrap_dapl_watch_stop(struct dapl_watch *watch)
{
	bool is_cm = watch == &memory->cm_watch;

	assert_ptr_equal(watch, is_cm ? &memory->cm_watch : &memory->async_watch);
	*(is_cm ? &watches_cm : &watches_async) = false;
}

void __wrap_dapl_up_async(void *to, const struct ibv_async_event *event)
{
	assert_ptr_equal(to, &ia);
	assert_int_equal(event->event_type, events[taken - 1].event_type);
	step("up");
}

void __wrap_log_report(enum log_id of, const struct log_fields *fields, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(reported, sizeof reported, fmt, args);
	va_end(args);
	reports++;
	id_reported = of;
	err_reported = fields ? fields->err : 0;
}

/* That is how hw.c keeps a library. */
void *__wrap_dlopen(const char *name, int flags)
{
	keeps_librdmacm |= name && strstr(name, "librdmacm") && flags & RTLD_NODELETE;
	return __real_dlopen(name, flags);
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *made = no_memory ? NULL : __real_calloc(n, size);

	if (size == sizeof *memory)
		memory = made;
	return made;
}

void __wrap_free(void *of)
{
	if (of && of == memory)
		memory = NULL;
	if (of && of == ethernet)
		ethernet = NULL;
	__real_free(of);
}

/* --- fixture ---------------------------------------------------------------------------------------------------- */

static void close_descriptors(void)
{
	if (channel.fd > 0)
		close(channel.fd);
	if (context.async_fd > 0)
		close(context.async_fd);
	channel.fd = context.async_fd = -1;
}

int steps_begin(void **state)
{
	close_descriptors();
	channel.fd = eventfd(0, 0);
	context.async_fd = eventfd(0, 0);
	memset(&here, 0, sizeof here);
	here.n = 1;
	for (int i = 0; i < PLACES; i++) {
		struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001 + i) };

		memcpy(&here.place[i].address, &at, sizeof at);
		snprintf(here.place[i].netdev, sizeof here.place[i].netdev, "eth%d", i);
		memset(&hardware[i], 0, sizeof hardware[i]);
		bound_to[i] = (struct ibv_context){ .device = &hardware[i] };
		ports[i] = 1;
	}
	strcpy(hardware[0].name, "dev0");
	refusal = ENOBUFS;
	has_filler = no_memory = watches_cm = watches_async = keeps_librdmacm = false;
	asked = 0;
	notified = NULL;
	text_of_places = NULL;
	ethernet = NULL;
	ids = channels = contexts = fillers = 0;
	memory = NULL;
	coming = taken = 0;
	end_of_events = EAGAIN;
	dev = NULL;
	reports = err_reported = 0;
	*reported = '\0';
	forget_steps();
	return channel.fd < 0 || context.async_fd < 0;
}

bool nothing_is_left(void)
{
	return !memory && !ethernet && !(ids + channels + contexts + fillers) && !watches_cm && !watches_async;
}

int steps_end(void **state)
{
	close_descriptors();
	return nothing_is_left() ? 0 : -1;
}
