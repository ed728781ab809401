/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_link.c - what links do when the device of their adapter fails or is removed, and when the peer is silent. The
 * test plays libdat2. */
#include "sock/link.h"
#include <dat/dat_messages.h>
#include <dat/udat.h>
#include <dlfcn.h>
#include <sys/eventfd.h>
#include "sock/service.h"
#include "test/unit/unit.h"

enum { OBJECTS = 64 }; /* of an opening; a link needs six */

/* --- libdat2 ----------------------------------------------------------------------------------------------------- */

/* One opening of a device. Its handles are addresses of its members. */
static struct ia {
	bool open, event_comes;
	DAT_EVENT_NUMBER event;
	int fd;
	char pz, cno, async, connects, requests, objects[OBJECTS];
	DAT_EVD_HANDLE connects_evd, received; /* of the last link */
	DAT_EP_HANDLE established; /* is reported next */
	bool message_comes;
	DAT_CNO_HANDLE waits;	 /* made by dat_cno_create() */
	DAT_CNO_HANDLE attached; /* of `received` */
	unsigned cnos;		 /* that exist, but for the one with a descriptor */
	unsigned made;
	unsigned lmrs, eps; /* that exist */
} ias[16];
static unsigned opened, closed;
static const char *missing; /* the call that fails */
static DAT_CLOSE_FLAGS how;
static struct sockaddr_in address = { .sin_family = AF_INET };
static unsigned char *receive; /* the buffer of the first receive */
static unsigned char sent[LINK_MESSAGE + LINK_INLINE]; /* the last message */
static unsigned sends, bytes; /* of the last message */
static unsigned wakes; /* service_wake() */

static bool fails(const char *call)
{
	return missing && !strcmp(missing, call);
}

static DAT_RETURN answer(const char *call)
{
	return fails(call) ? DAT_INSUFFICIENT_RESOURCES : DAT_SUCCESS;
}

/* The IA of a handle. A use of one that is closed ends the test. */
static struct ia *ia_of(const void *handle)
{
	struct ia *ia = &ias[((const char *)handle - (const char *)ias) / sizeof *ias];

	assert_true(ia < ias + opened);
	assert_true(ia->open);
	return ia;
}

static void *new_object(struct ia *ia)
{
	assert_true(ia->made < OBJECTS);
	return &ia->objects[ia->made++];
}

static DAT_RETURN fake_dat_ia_openv(const DAT_NAME_PTR name, DAT_COUNT length, DAT_EVD_HANDLE *async,
				    DAT_IA_HANDLE *handle, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe)
{
	struct ia *ia = &ias[opened];

	if (fails("dat_ia_openv"))
		return DAT_PROVIDER_NOT_FOUND;
	opened++;
	*ia = (struct ia){ .open = true, .fd = eventfd(0, EFD_NONBLOCK) };
	*handle = (DAT_IA_HANDLE)ia;
	*async = (DAT_EVD_HANDLE)&ia->async;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_ia_close(DAT_IA_HANDLE handle, DAT_CLOSE_FLAGS flags)
{
	struct ia *ia = ia_of(handle);

	close(ia->fd);
	ia->open = false;
	how = flags;
	closed++;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async, DAT_IA_ATTR_MASK mask, DAT_IA_ATTR *attr,
				    DAT_PROVIDER_ATTR_MASK provider, DAT_PROVIDER_ATTR *more)
{
	attr->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&address;
	return answer("dat_ia_query");
}

static DAT_RETURN fake_dat_pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz)
{
	*pz = (DAT_PZ_HANDLE)&ia_of(ia)->pz;
	return answer("dat_pz_create");
}

static DAT_RETURN fake_dat_cno_fd_create(DAT_IA_HANDLE ia, DAT_FD *fd, DAT_CNO_HANDLE *cno)
{
	*fd = ia_of(ia)->fd;
	*cno = (DAT_CNO_HANDLE)&ia_of(ia)->cno;
	return answer("dat_cno_fd_create");
}

static DAT_RETURN fake_dat_cno_trigger(DAT_CNO_HANDLE cno, DAT_EVD_HANDLE *evd)
{
	ia_of(cno);
	*evd = DAT_HANDLE_NULL;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_evd_modify_cno(DAT_EVD_HANDLE evd, DAT_CNO_HANDLE cno)
{
	struct ia *ia = ia_of(cno);

	if (evd == ia->received)
		ia->attached = cno;
	else
		assert_ptr_equal(evd, &ia->async);
	return answer("dat_evd_modify_cno");
}

static DAT_RETURN fake_dat_cno_create(DAT_IA_HANDLE ia, DAT_OS_WAIT_PROXY_AGENT agent, DAT_CNO_HANDLE *cno)
{
	if (fails("dat_cno_create"))
		return answer("dat_cno_create");
	*cno = ia_of(ia)->waits = new_object(ia_of(ia));
	ia_of(ia)->cnos++;
	return DAT_SUCCESS;
}

static DAT_RETURN wait_result = DAT_QUEUE_EMPTY;
static unsigned waits;

static DAT_RETURN fake_dat_cno_wait(DAT_CNO_HANDLE cno, DAT_TIMEOUT timeout, DAT_EVD_HANDLE *evd)
{
	assert_ptr_equal(cno, ia_of(cno)->waits);
	assert_ptr_equal(cno, ia_of(cno)->attached);
	waits++;
	return wait_result;
}

static DAT_RETURN fake_dat_cno_free(DAT_CNO_HANDLE cno)
{
	ia_of(cno)->cnos--;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_evd_create(DAT_IA_HANDLE ia, DAT_COUNT length, DAT_CNO_HANDLE cno, DAT_EVD_FLAGS flags,
				      DAT_EVD_HANDLE *evd)
{
	*evd = new_object(ia_of(ia));
	if (flags == DAT_EVD_CONNECTION_FLAG)
		ia_of(ia)->connects_evd = *evd;
	if (flags == DAT_EVD_DTO_FLAG && cno)
		ia_of(ia)->received = *evd, ia_of(ia)->attached = cno;
	return answer("dat_evd_create");
}

static unsigned message_size = LINK_MESSAGE;

static DAT_RETURN fake_dat_evd_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	struct ia *ia = ia_of(evd);

	if (ia->established && evd == ia->connects_evd) {
		event->event_number = DAT_CONNECTION_EVENT_ESTABLISHED;
		event->event_data.connect_event_data.ep_handle = ia->established;
		ia->established = DAT_HANDLE_NULL;
		return DAT_SUCCESS;
	}
	if (ia->message_comes && evd == ia->received) {
		event->event_number = DAT_DTO_COMPLETION_EVENT;
		event->event_data.dto_completion_event_data = (DAT_DTO_COMPLETION_EVENT_DATA){
			.status = DAT_DTO_SUCCESS, .transfered_length = message_size
		};
		ia->message_comes = false;
		return DAT_SUCCESS;
	}
	if (evd != (DAT_EVD_HANDLE)&ia->async || !ia->event_comes)
		return DAT_QUEUE_EMPTY;
	ia->event_comes = false;
	*event = (DAT_EVENT){ .event_number = ia->event };
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_evd_free(DAT_EVD_HANDLE evd)
{
	ia_of(evd);
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_psp_create_any(DAT_IA_HANDLE ia, DAT_CONN_QUAL *qualifier, DAT_EVD_HANDLE evd,
					  DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *psp)
{
	*psp = new_object(ia_of(ia));
	*qualifier = opened;
	return answer("dat_psp_create_any");
}

static DAT_RETURN fake_dat_cr_query(DAT_CR_HANDLE cr, DAT_CR_PARAM_MASK mask, DAT_CR_PARAM *param)
{
	return answer("dat_cr_query");
}

static DAT_RETURN fake_dat_cr_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, DAT_COUNT size, const DAT_PVOID data)
{
	return answer("dat_cr_accept");
}

static DAT_RETURN fake_dat_cr_reject(DAT_CR_HANDLE cr, DAT_COUNT size, const DAT_PVOID data)
{
	return answer("dat_cr_reject");
}

static DAT_RETURN fake_dat_ep_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE in, DAT_EVD_HANDLE out,
				     DAT_EVD_HANDLE connects, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	if (fails("dat_ep_create"))
		return answer("dat_ep_create");
	*ep = new_object(ia_of(ia));
	ia_of(ia)->eps++;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_ep_free(DAT_EP_HANDLE ep)
{
	ia_of(ep)->eps--;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_ep_connect(DAT_EP_HANDLE ep, DAT_IA_ADDRESS_PTR peer, DAT_CONN_QUAL qualifier,
				      DAT_TIMEOUT timeout, DAT_COUNT size, const DAT_PVOID data, DAT_QOS qos,
				      DAT_CONNECT_FLAGS flags)
{
	ia_of(ep);
	return answer("dat_ep_connect");
}

static DAT_RETURN fake_dat_ep_disconnect(DAT_EP_HANDLE ep, DAT_CLOSE_FLAGS flags)
{
	ia_of(ep);
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_ep_post_send(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags)
{
	ia_of(ep);
	memcpy(sent, (void *)(uintptr_t)iov->virtual_address, iov->segment_length);
	bytes = iov->segment_length;
	sends++;
	return answer("dat_ep_post_send");
}

static DAT_RETURN fake_dat_ep_post_recv(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags)
{
	ia_of(ep);
	if (!cookie.as_64)
		receive = (void *)(uintptr_t)iov->virtual_address;
	return answer("dat_ep_post_recv");
}

static unsigned writes;

static DAT_RETURN fake_dat_ep_post_rdma_write(DAT_EP_HANDLE ep, DAT_COUNT count, DAT_LMR_TRIPLET *iov,
					      DAT_DTO_COOKIE cookie, const DAT_RMR_TRIPLET *to,
					      DAT_COMPLETION_FLAGS flags)
{
	ia_of(ep);
	writes++;
	return answer("dat_ep_post_rdma_write");
}

static void fake_dats_set_message_handler(DAT_MESSAGE_HANDLER handler) {}

static DAT_RETURN fake_dat_lmr_create(DAT_IA_HANDLE ia, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN size,
				      DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS privileges, DAT_VA_TYPE va,
				      DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *local, DAT_RMR_CONTEXT *remote,
				      DAT_VLEN *length, DAT_VADDR *start)
{
	*lmr = new_object(ia_of(ia));
	*local = *remote = 1;
	ia_of(ia)->lmrs++;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_lmr_free(DAT_LMR_HANDLE lmr)
{
	ia_of(lmr)->lmrs--;
	return DAT_SUCCESS;
}

static DAT_RETURN fake_dat_strerror(DAT_RETURN ret, const char **major, const char **minor)
{
	*major = ret == DAT_INSUFFICIENT_RESOURCES ? "NO_RESOURCE" : "OTHER", *minor = "MEMORY";
	return DAT_SUCCESS;
}

#define FAKE(name) { #name, (void *)fake_##name, sizeof(1 ? fake_##name : name) }
static const struct {
	const char *name;
	void *function;
	size_t checked; /* the compiler compares the types */
} functions[] = {
	FAKE(dat_ia_openv), FAKE(dat_ia_close), FAKE(dat_ia_query), FAKE(dat_pz_create), FAKE(dat_cno_fd_create),
	FAKE(dat_cno_trigger), FAKE(dat_evd_modify_cno), FAKE(dat_evd_create), FAKE(dat_evd_dequeue),
	FAKE(dat_evd_free), FAKE(dat_psp_create_any), FAKE(dat_cr_query), FAKE(dat_cr_accept), FAKE(dat_cr_reject),
	FAKE(dat_ep_create), FAKE(dat_ep_free), FAKE(dat_ep_connect), FAKE(dat_ep_disconnect), FAKE(dat_ep_post_send),
	FAKE(dat_ep_post_recv), FAKE(dat_ep_post_rdma_write), FAKE(dats_set_message_handler), FAKE(dat_lmr_create),
	FAKE(dat_lmr_free), FAKE(dat_strerror), FAKE(dat_cno_create), FAKE(dat_cno_wait), FAKE(dat_cno_free),
};

void *__wrap_dlopen(const char *name, int flags);
void *__real_dlsym(void *library, const char *name);
void *__wrap_dlsym(void *library, const char *name);

void *__wrap_dlopen(const char *name, int flags)
{
	assert_string_equal(name, "libdat2.so.2");
	return ias;
}

void *__wrap_dlsym(void *library, const char *name)
{
	if (library != ias)
		return __real_dlsym(library, name);
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(functions[i].name, name))
			return functions[i].function;
	return NULL;
}

/* --- the user of links ------------------------------------------------------------------------------------------- */

static unsigned downs, messages;
static struct link *down;
static bool device_is_lost;

static bool user_knows(const unsigned char token[LINK_KEY])
{
	return true;
}

/* The device cannot be opened while its links end. */
static void user_down(struct link *link)
{
	struct sockaddr_storage at;
	uint64_t qualifier;

	downs++, down = link;
	assert_int_equal(link_listen(link_ia(link), &at, &qualifier), device_is_lost ? EIO : 0);
}

static void user_up(struct link *link) {}
static void user_message(struct link *link, const struct link_message *m)
{
	messages++;
}

/* Messages of even types can be taken by any thread. */
static unsigned fasts;
static bool user_fast(struct link *link, const struct link_message *m)
{
	fasts += !(m->type % 2);
	return !(m->type % 2);
}

bool service_is_this_thread(void)
{
	return true;
}

void service_wake(void)
{
	wakes++;
}

static void ignore(void) {}

static int set_up(void **state)
{
	static const struct link_user user = { user_knows, user_up, user_down, user_message, user_up, user_fast };

	link_set_user(&user);
	link_set_process(ignore, ignore);
	opened = closed = downs = sends = messages = fasts = waits = writes = wakes = 0;
	wait_result = DAT_QUEUE_EMPTY, message_size = LINK_MESSAGE;
	missing = NULL;
	device_is_lost = false;
	return 0;
}

static void report(struct ia *ia, DAT_EVENT_NUMBER event)
{
	device_is_lost = true;
	ia->event = event;
	ia->event_comes = true;
	link_dispatch();
}

/* Links end with their adapter, which frees them. */
static int tear_down(void **state)
{
	missing = NULL;
	for (unsigned i = 0; i < opened; i++)
		if (ias[i].open)
			report(&ias[i], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	link_after_fork();
	return 0;
}

static struct link *connect_by(const char *ia)
{
	static const struct sockaddr_in peer = { .sin_family = AF_INET };
	static const unsigned char token[LINK_KEY];

	return link_connect(ia, (const struct sockaddr *)&peer, 1, token);
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void expect_end(DAT_EVENT_NUMBER event)
{
	struct link *l = connect_by("one");

	link_hold(l);
	report(&ias[0], event);
	assert_int_equal(downs, 1);
	assert_ptr_equal(down, l);
	assert_true(link_is_over(l));
	assert_int_equal(ias[0].eps, 0);
	assert_int_equal(closed, 1);
	assert_int_equal(how, DAT_CLOSE_ABRUPT_FLAG);
	link_dispatch();
	assert_int_equal(closed, 1);
	link_send(l, (struct link_message){ .type = 1 });
	link_release(l);
}

UNIT_CASE(removed_device_ends_links_and_is_closed)
{
	expect_end(DAT_ASYNC_ERROR_IA_CATASTROPHIC);
}

UNIT_CASE(device_without_completions_is_closed)
{
	expect_end(DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
}

UNIT_CASE(other_errors_end_no_link)
{
	struct link *l = connect_by("one");

	report(&ias[0], DAT_ASYNC_ERROR_EVD_OVERFLOW);
	assert_false(link_is_over(l));
	assert_int_equal(closed, 0);
}

UNIT_CASE(links_of_other_adapters_go_on)
{
	struct link *one = connect_by("one"), *two = connect_by("two");

	link_hold(one);
	report(&ias[0], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_true(link_is_over(one));
	assert_false(link_is_over(two));
	assert_true(ias[1].open);
	assert_ptr_equal(connect_by("two"), two);
	link_release(one);
}

UNIT_CASE(next_use_opens_the_adapter_again)
{
	struct sockaddr_storage at;
	uint64_t qualifier;
	struct link *l;

	assert_int_equal(link_listen("one", &at, &qualifier), 0);
	assert_int_equal(qualifier, 1);
	report(&ias[0], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	missing = "dat_ia_openv";
	assert_int_equal(link_listen("one", &at, &qualifier), EIO);
	assert_null(connect_by("one"));
	missing = NULL;
	assert_int_equal(link_listen("one", &at, &qualifier), 0);
	assert_int_equal(qualifier, 2);
	l = connect_by("one");
	assert_non_null(l);
	link_hold(l);
	report(&ias[1], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_true(link_is_over(l));
	assert_int_equal(closed, 2);
	link_release(l);
}

/* Streams unregister their memory later than their links end. */
UNIT_CASE(memory_is_freed_once)
{
	struct link_memory old, new;
	struct link *l = connect_by("one"), *l2;

	link_hold(l);
	assert_int_equal(link_register(l, ias, sizeof ias, true, &old), 0);
	report(&ias[0], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	l2 = connect_by("one");
	assert_int_equal(link_register(l2, ias, sizeof ias, true, &new), 0);
	assert_int_equal(ias[1].lmrs, 2); /* one of the link itself */
	link_unregister(&old);
	assert_int_equal(ias[1].lmrs, 2);
	link_unregister(&new);
	assert_int_equal(ias[1].lmrs, 1);
	assert_null(new.lmr);
	link_release(l);
}

static void expect_failure(const char *call)
{
	struct link_failure failure = link_failure();
	char text[128], wanted[128];

	link_failure_text(&failure, text, sizeof text);
	snprintf(wanted, sizeof wanted, "%s: NO_RESOURCE MEMORY", call);
	assert_string_equal(text, wanted);
}

UNIT_CASE(failed_call_of_a_link_is_named)
{
	static const char *const calls[] = { "dat_ep_create", "dat_ep_post_recv", "dat_ep_connect" };

	for (unsigned i = 0; i < 3; i++) {
		missing = calls[i];
		assert_null(connect_by("one"));
		assert_int_equal(errno, EIO);
		expect_failure(calls[i]);
	}
}

/* It takes none of the places of adapters, either. */
UNIT_CASE(adapter_that_opens_in_part_is_closed)
{
	static const char *const calls[] = { "dat_ia_query", "dat_pz_create", "dat_cno_fd_create",
					     "dat_evd_modify_cno", "dat_evd_create", "dat_psp_create_any" };
	char name[16];

	for (unsigned i = 0; i < 12; i++) {
		missing = calls[i % 6];
		snprintf(name, sizeof name, "adapter%u", i);
		assert_null(connect_by(name));
		assert_int_equal(errno, EIO);
		expect_failure(missing);
		assert_int_equal(opened, i + 1);
		assert_int_equal(closed, i + 1);
	}
	missing = NULL;
	assert_non_null(connect_by("one"));
}

/* --- silence ----------------------------------------------------------------------------------------------------- */

/* The types of the link's own messages: those of link.c. */
enum { CREDITS = 0, PING = 255 };
static const uint64_t second = 1000000000;
static uint64_t now; /* monotonic ns */

static struct link *connect_and_establish(void)
{
	struct link *l = connect_by("one");

	link_hold(l);
	ias[0].established = (DAT_EP_HANDLE)&ias[0].objects[ias[0].made - 1];
	link_dispatch();
	assert_true(link_is_up(l));
	now = second * 1000;
	return l;
}

static void take(struct link_message m)
{
	link_message_encode(&m, receive);
	ias[0].message_comes = true;
	link_dispatch();
}

/* Looks each second, as a stream that waits does. Returns whether the link is there after that. */
static bool look(struct link *l, unsigned seconds)
{
	while (seconds--)
		if (!link_watch(l, now += second))
			return false;
	return true;
}

UNIT_CASE(silent_peer_is_asked_and_then_given_up)
{
	struct link *l = connect_and_establish();

	assert_true(look(l, 1));
	assert_int_equal(sends, 0);
	assert_true(look(l, 3));
	assert_int_equal(sends, 3);
	assert_int_equal(sent[0], PING);
	assert_false(look(l, 1));
	assert_int_equal(downs, 1);
	assert_ptr_equal(down, l);
	assert_true(link_is_over(l));
	assert_true(look(l, 10));
	assert_int_equal(downs, 1);
	link_release(l);
}

UNIT_CASE(peer_that_answers_is_kept)
{
	struct link *l = connect_and_establish();

	for (int i = 0; i < 10; i++) {
		assert_true(look(l, 4));
		take((struct link_message){ .type = CREDITS, .credits = 3 });
	}
	assert_int_equal(downs, 0);
	assert_int_equal(messages, 0);
	link_release(l);
}

UNIT_CASE(many_streams_of_a_link_ask_once)
{
	struct link *l = connect_and_establish();

	assert_true(look(l, 2));
	assert_int_equal(sends, 1);
	assert_true(link_watch(l, now));
	assert_int_equal(sends, 1);
	link_release(l);
}

/* No stream has waited, or this process was stopped. */
UNIT_CASE(time_without_a_look_is_no_silence)
{
	struct link *l = connect_and_establish();

	for (int i = 0; i < 10; i++) {
		assert_true(look(l, 4));
		now += 100 * second;
	}
	assert_int_equal(downs, 0);
	link_release(l);
}

/* The DAT libraries end next. */
UNIT_CASE(nothing_is_done_at_the_end_of_the_process)
{
	static struct link *l; /* its memory stays */

	l = connect_and_establish();
	assert_true(look(l, 1));
	link_end();
	assert_true(look(l, 10));
	assert_int_equal(sends, 0);
	assert_int_equal(downs, 0);
}

UNIT_CASE(link_that_is_not_up_is_not_watched)
{
	struct link *l = connect_by("one");

	now = second * 1000;
	assert_true(look(l, 20));
	assert_int_equal(sends, 0);
}

UNIT_CASE(ping_is_answered_by_a_count)
{
	struct link *l = connect_and_establish();
	struct link_message m;

	take((struct link_message){ .type = 1 });
	assert_int_equal(sends, 0);
	take((struct link_message){ .type = PING });
	assert_int_equal(sends, 1);
	assert_true(link_message_decode(sent, bytes, &m));
	assert_int_equal(m.type, CREDITS);
	assert_int_equal(m.credits, 2);
	assert_int_equal(messages, 1);
	link_release(l);
}

/* --- bytes of a stream behind a message -------------------------------------------------------------------------- */

UNIT_CASE(short_pieces_come_with_the_message)
{
	struct link *l = connect_and_establish();
	char end[] = "the end", beginning[LINK_INLINE] = "and the beginning";
	struct link_piece pieces[] = { { 1, 1, (uintptr_t)end, 0, 7 }, { 1, 1, (uintptr_t)beginning, 0, 17 } };

	assert_true(link_write(l, pieces, 2, (struct link_message){ .type = 8 }));
	assert_int_equal(writes, 0);
	assert_int_equal(bytes, LINK_MESSAGE + 24);
	assert_memory_equal(sent + LINK_MESSAGE, "the endand the beginning", 24);
	pieces[1].length = LINK_INLINE - 7 + 1;
	assert_true(link_write(l, pieces, 2, (struct link_message){ .type = 8 }));
	assert_int_equal(writes, 2);
	assert_int_equal(bytes, LINK_MESSAGE);
	link_release(l);
}

/* --- lending ----------------------------------------------------------------------------------------------------- */

static struct link *connect_and_lend(void)
{
	struct link *l = connect_and_establish();

	link_borrow(l);
	assert_int_equal(link_take(l, 0), LINK_SERVED);
	link_ask(l);
	assert_int_equal(wakes, 1);
	assert_true(link_run() > 0);
	assert_ptr_equal(ias[0].attached, ias[0].waits);
	assert_int_equal(link_take(l, 0), LINK_NOTHING);
	return l;
}

static void arrive(struct link_message m)
{
	link_message_encode(&m, receive);
	ias[0].message_comes = true;
}

/* As link_run() finds it when it has seen no call for long. */
static void expect_taken_back(void)
{
	assert_int_equal(link_run(), -1);
	assert_ptr_equal(ias[0].attached, &ias[0].cno);
}

static void end_lending(struct link *l)
{
	link_give_back(l);
	link_release(l);
}

UNIT_CASE(thread_takes_messages_of_a_link_that_is_lent)
{
	struct link *l = connect_and_lend();

	arrive((struct link_message){ .type = 8 });
	link_dispatch();
	assert_int_equal(messages, 0);
	assert_int_equal(link_take(l, 100), LINK_TAKEN);
	assert_int_equal(fasts, 1);
	assert_int_equal(waits, 0);
	assert_int_equal(link_take(l, 100), LINK_NOTHING);
	assert_int_equal(waits, 1);
	wait_result = DAT_SUCCESS;
	assert_int_equal(link_take(l, 100), LINK_TAKEN);
	wait_result = DAT_INTERRUPTED_CALL;
	assert_int_equal(link_take(l, 100), LINK_INTERRUPTED);
	end_lending(l);
}

UNIT_CASE(other_messages_are_left_to_the_service_thread_in_order)
{
	struct link *l = connect_and_lend();

	arrive((struct link_message){ .type = 5 });
	assert_int_equal(link_take(l, 0), LINK_TAKEN);
	assert_int_equal(wakes, 2);
	arrive((struct link_message){ .type = 8 });
	assert_int_equal(link_take(l, 100), LINK_SERVED);
	assert_int_equal(waits + fasts + messages, 0);
	expect_taken_back();
	assert_int_equal(messages, 2);
	assert_int_equal(link_take(l, 0), LINK_SERVED);
	end_lending(l);
}

UNIT_CASE(error_of_the_peer_ends_a_link_that_is_lent)
{
	struct link *l = connect_and_lend();

	message_size = LINK_MESSAGE - 1;
	arrive((struct link_message){ .type = 8 });
	assert_int_equal(link_take(l, 0), LINK_TAKEN);
	assert_int_equal(downs, 0);
	link_run();
	assert_int_equal(downs, 1);
	assert_int_equal(link_take(l, 100), LINK_SERVED);
	end_lending(l);
}

UNIT_CASE(link_that_no_thread_uses_is_taken_back)
{
	struct link *l = connect_and_lend();

	link_run(); /* sees the call of connect_and_lend() */
	arrive((struct link_message){ .type = 8 });
	for (int i = 0; i < 10000 && ias[0].attached == ias[0].waits; i++) {
		usleep(1000);
		link_run();
	}
	expect_taken_back();
	assert_int_equal(messages, 1);
	end_lending(l);
}

UNIT_CASE(link_is_taken_back_when_a_thread_sleeps_elsewhere)
{
	struct link *l = connect_and_lend();

	link_return(l);
	assert_int_equal(wakes, 2);
	expect_taken_back();
	link_return(l);
	assert_int_equal(wakes, 2);
	link_ask(l);
	assert_int_equal(wakes, 3);
	assert_true(link_run() > 0);
	assert_int_equal(ias[0].cnos, 1);
	end_lending(l);
}

UNIT_CASE(link_with_several_streams_is_not_lent)
{
	struct link *l = connect_and_lend();

	link_hold(l);
	expect_taken_back();
	link_ask(l);
	assert_int_equal(link_run(), -1);
	assert_int_equal(wakes, 1);
	link_release(l);
	end_lending(l);
}

UNIT_CASE(link_is_not_lent_without_a_cno)
{
	struct link *l = connect_and_establish();

	missing = "dat_cno_create";
	link_ask(l);
	assert_int_equal(link_run(), -1);
	assert_ptr_equal(ias[0].attached, &ias[0].cno);
	assert_int_equal(link_take(l, 100), LINK_SERVED);
	link_release(l);
}

/* The device is closed when the thread has left. */
UNIT_CASE(objects_stay_while_a_thread_uses_them)
{
	struct link *l = connect_and_lend();

	report(&ias[0], DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	assert_int_equal(downs, 1);
	assert_int_equal(ias[0].eps, 1);
	assert_int_equal(closed, 0);
	assert_int_equal(link_take(l, 100), LINK_SERVED);
	assert_true(link_run() > 0);
	link_give_back(l);
	assert_int_equal(link_run(), -1);
	assert_int_equal(ias[0].eps, 0);
	assert_int_equal(ias[0].cnos, 0);
	assert_int_equal(closed, 1);
	link_release(l);
}

UNIT_MAIN(NULL, NULL)
