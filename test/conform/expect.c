/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* expect.c - expectations, skips, and the interface adapter that a test works on. */
#include "conform.h"
#include "run.h"
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* --- verdicts ------------------------------------------------------------------------ */

void reached(const char *file, int line, const char *what)
{
	report->file = file;
	report->line = line;
	report->what = what;
}

static _Noreturn void decide(enum verdict verdict, const char *format, va_list args)
{
	enum verdict undecided = UNDECIDED;

	/* Of two threads that fail at the same time, the first prints its reason. The other does not end the
	 * process before. */
	if (atomic_compare_exchange_strong(&report->verdict, &undecided, verdict)) {
		vsnprintf(report->text, sizeof(report->text), format, args);
		report->complete = true;
	}
	for (int i = 0; !report->complete && i < 1000; i++)
		usleep(1000);
	end_test(verdict);
}

void fail(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	decide(FAILED, format, args);
}

void skip(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	decide(SKIPPED, format, args);
}

void *lasting(size_t size)
{
	static _Atomic(void **) kept;	/* a list, so that a search for leaks finds it used */
	void **memory = calloc(1, sizeof(*memory) + 8 + size);

	if (!memory)
		fail("no memory for the test");
	*memory = atomic_exchange(&kept, memory);
	return memory + 2;
}

/* --- calls --------------------------------------------------------------------------- */

static bool is(DAT_RETURN found, DAT_RETURN expected)
{
	if (expected == DAT_SUCCESS)
		return found == DAT_SUCCESS;
	if (DAT_GET_TYPE(found) != DAT_GET_TYPE(expected))
		return false;
	if (options.types_only)
		return true;
	return (found & DAT_CLASS_ERROR) && (!DAT_GET_SUBTYPE(expected) ||
					     DAT_GET_SUBTYPE(found) == DAT_GET_SUBTYPE(expected));
}

void expect_return(DAT_RETURN found, int n, const DAT_RETURN *expected)
{
	char names[400] = "";

	for (int i = 0; i < n; i++)
		if (is(found, expected[i]))
			return;
	for (int i = 0; i < n; i++) {
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", i ? " or " : "",
			 expected[i] ? return_name(DAT_CLASS_ERROR | expected[i]) : "DAT_SUCCESS");
	}
	fail("expected %s, found %s", names, return_name(found));
}

void expect_supported(const char *call, DAT_RETURN found)
{
	DAT_RETURN type = DAT_GET_TYPE(found);

	if (!strncmp(call, "LATE(", 5))
		call += 5;
	if (found != DAT_SUCCESS && (type == DAT_NOT_IMPLEMENTED || type == DAT_MODEL_NOT_SUPPORTED))
		skip("%.*s answers %s", (int)strcspn(call, "()"), call, return_name(found));
	expect_return(found, 1, (const DAT_RETURN[]){ DAT_SUCCESS });
}

void expect_equal(const char *what, uint64_t found, uint64_t expected)
{
	if (found == expected)
		return;
	if (found < 1000000 && expected < 1000000)
		fail("expected %s %llu, found %llu", what, (unsigned long long)expected,
		     (unsigned long long)found);
	fail("expected %s 0x%llx, found 0x%llx", what, (unsigned long long)expected,
	     (unsigned long long)found);
}

void expect_true(const char *what, bool holds)
{
	if (!holds)
		fail("expected %s, found that it does not hold", what);
}

/* --- events ---------------------------------------------------------------------------- */

static bool try_event(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	DAT_RETURN ret = dat_evd_dequeue(evd, event);

	if (ret == DAT_SUCCESS)
		return true;
	if (DAT_GET_TYPE(ret) != DAT_QUEUE_EMPTY)
		fail("expected an event or DAT_QUEUE_EMPTY, found %s", return_name(ret));
	return false;
}

/* Tests wait by polling: whether dat_evd_wait works is a statement of its own. */
static DAT_EVENT await_event(DAT_EVD_HANDLE evd, const char *expected)
{
	struct patience patience_ = { 0 };
	DAT_EVENT event;

	memset(&event, 0, sizeof(event));
	while (!try_event(evd, &event))
		if (!waiting(&patience_))
			fail("expected %s, found no event in %.0f s", expected, patience());
	return event;
}

DAT_EVENT next_event(DAT_EVD_HANDLE evd)
{
	return await_event(evd, "an event");
}

DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event = await_event(evd, event_name(number));

	if (event.event_number == DAT_DTO_COMPLETION_EVENT && number != DAT_DTO_COMPLETION_EVENT)
		fail("expected %s, found a completion of cookie %llu with %s", event_name(number),
		     (unsigned long long)event.event_data.dto_completion_event_data.user_cookie.as_64,
		     dto_status_name(event.event_data.dto_completion_event_data.status));
	if (event.event_number != number)
		fail("expected %s, found %s", event_name(number), event_name(event.event_number));
	return event;
}

DAT_EVENT_NUMBER expect_end(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event = await_event(evd, "DAT_CONNECTION_EVENT_DISCONNECTED or _BROKEN");

	if (event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED &&
	    event.event_number != DAT_CONNECTION_EVENT_BROKEN)
		fail("expected DAT_CONNECTION_EVENT_DISCONNECTED or _BROKEN, found %s",
		     event_name(event.event_number));
	return event.event_number;
}

void expect_no_event(const char *evd_name, DAT_EVD_HANDLE evd)
{
	double end = now() + 0.02;
	DAT_EVENT event;

	do {
		if (try_event(evd, &event))
			fail("expected no event on %s, found %s", evd_name,
			     event_name(event.event_number));
		sched_yield();
	} while (now() < end);
}

DAT_DTO_COMPLETION_EVENT_DATA expect_completion(DAT_EVD_HANDLE evd, uint64_t cookie,
						DAT_DTO_COMPLETION_STATUS status)
{
	DAT_EVENT event = await_event(evd, "a completion");
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	if (event.event_number != DAT_DTO_COMPLETION_EVENT &&
	    event.event_number != (DAT_EVENT_NUMBER)DAT_IB_DTO_EVENT)
		fail("expected the completion of cookie %llu, found %s", (unsigned long long)cookie,
		     event_name(event.event_number));
	if (dto->user_cookie.as_64 != cookie || dto->status != status)
		fail("expected cookie %llu with %s, found cookie %llu with %s",
		     (unsigned long long)cookie, dto_status_name(status),
		     (unsigned long long)dto->user_cookie.as_64, dto_status_name(dto->status));
	return *dto;
}

DAT_EP_STATE state_of(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state;
	DAT_RETURN ret = dat_ep_get_status(ep, &state, NULL, NULL);

	if (ret != DAT_SUCCESS)
		fail("expected DAT_SUCCESS of dat_ep_get_status, found %s", return_name(ret));
	return state;
}

/* The event of a change may come before the change is complete, so wait for the change. */
void expect_state(DAT_EP_HANDLE ep, DAT_EP_STATE state)
{
	struct patience patience_ = { 0 };
	DAT_EP_STATE found = state_of(ep);

	while (found != state) {
		if (!waiting(&patience_))
			fail("expected %s, found %s", state_name(state), state_name(found));
		found = state_of(ep);
	}
}

/* --- the interface adapter --------------------------------------------------------------- */

static struct {
	DAT_IA_HANDLE handle;	/* what ia() gives, */
	DAT_IA_HANDLE opened;	/* and what it opened */
	DAT_EVD_HANDLE async;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR provider;
} adapter;

DAT_NAME_PTR ia_name(void)
{
	return options.ia;
}

DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async)
{
	DAT_IA_HANDLE handle = DAT_HANDLE_NULL;
	DAT_RETURN ret = dat_ia_open(options.ia, 16, async, &handle);

	if (ret != DAT_SUCCESS)
		fail("expected DAT_SUCCESS of dat_ia_open, found %s", return_name(ret));
	return handle;
}

DAT_IA_HANDLE ia(void)
{
	if (!adapter.handle) {
		adapter.async = DAT_HANDLE_NULL;
		adapter.handle = adapter.opened = open_ia(&adapter.async);
		DAT_RETURN ret = dat_ia_query(adapter.handle, NULL, DAT_IA_FIELD_ALL, &adapter.attr,
					      DAT_PROVIDER_FIELD_ALL, &adapter.provider);
		if (ret != DAT_SUCCESS)
			fail("expected DAT_SUCCESS of dat_ia_query, found %s", return_name(ret));
	}
	return adapter.handle;
}

DAT_IA_HANDLE work_on(DAT_IA_HANDLE instance)
{
	DAT_IA_HANDLE before = ia();

	adapter.handle = instance;
	return before;
}

void ia_is_gone(void)
{
	adapter.handle = adapter.opened = DAT_HANDLE_NULL;
}

void close_ia(void)
{
	if (!adapter.opened)
		return;
	AT("dat_ia_close(ia(), DAT_CLOSE_ABRUPT_FLAG) by the runner");
	DAT_RETURN ret = dat_ia_close(adapter.opened, DAT_CLOSE_ABRUPT_FLAG);
	if (ret != DAT_SUCCESS)
		fail("expected DAT_SUCCESS of the closing dat_ia_close, found %s", return_name(ret));
}

DAT_EVD_HANDLE async_evd(void)
{
	ia();
	return adapter.async;
}

const DAT_IA_ATTR *ia_attr(void)
{
	ia();
	return &adapter.attr;
}

const DAT_PROVIDER_ATTR *provider_attr(void)
{
	ia();
	return &adapter.provider;
}

bool device_is(const char *driver)
{
	const char *device = named_attr("DAT_IB_DEVICE_NAME");

	return device && !strncmp(device, driver, strlen(driver));
}

const char *named_attr(const char *name)
{
	const DAT_PROVIDER_ATTR *attr = provider_attr();

	for (int i = 0; attr->provider_specific_attr && i < attr->num_provider_specific_attr; i++)
		if (!strcmp(attr->provider_specific_attr[i].name, name))
			return attr->provider_specific_attr[i].value;
	return NULL;
}

DAT_IA_ADDRESS_PTR address(void)
{
	static struct sockaddr_storage parsed;
	struct addrinfo hints = { .ai_flags = AI_NUMERICHOST }, *found;

	if (!options.address)
		return ia_attr()->ia_address_ptr;
	if (getaddrinfo(options.address, NULL, &hints, &found))
		fail("--addr %s is no address", options.address);
	memcpy(&parsed, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return (DAT_IA_ADDRESS_PTR)&parsed;
}

/* On some devices a qualifier is a TCP port of the host: use ports below the ephemeral ones, and other ones
 * than tests have used shortly before, in this run or another. */
DAT_CONN_QUAL new_qual(void)
{
	static _Atomic unsigned used;
	return 10000 + (options.seed % 19001 + report->index * 24 + used++) % 20000;
}

DAT_CONN_QUAL new_large_qual(void)
{
	static _Atomic unsigned used;
	unsigned port = 61000 + (options.seed % 4001 + report->index * 8 + used++) % 4500;
	return UINT64_C(0xfedcba987654) * 32001 + (port - 33534);
}

/* --- skips ---------------------------------------------------------------------------------- */

void needs_srq(void)
{
	if (!ia_attr()->max_srqs)
		skip("max_srqs is 0");
	if (!provider_attr()->srq_supported)
		skip("srq_supported is false");
}

void needs_rmr(void)
{
	if (!ia_attr()->max_rmrs)
		skip("max_rmrs is 0");
}

void needs_attr(const char *name)
{
	if (ia_attr()->extension_supported == DAT_EXTENSION_NONE)
		skip("extension_supported is DAT_EXTENSION_NONE");
	if (!named_attr(name))
		skip("there is no attribute %s", name);
}

void needs_completion_flag(DAT_COMPLETION_FLAGS flag)
{
	if (!(provider_attr()->completion_flags_supported & flag))
		skip("completion_flags_supported is 0x%x, without 0x%x",
		     provider_attr()->completion_flags_supported, flag);
}

void *find_call(const char *name)
{
	return dlsym(RTLD_DEFAULT, name);
}

void *late_call(const char *name)
{
	void *call = find_call(name);

	if (!call)
		skip("this libdat2 does not export %s", name);
	return call;
}

/* --- time and chance --------------------------------------------------------------------------- */

double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

double patience(void)
{
	return options.limit / 3;
}

bool waiting(struct patience *p)
{
	if (!p->looks)
		p->end = now() + patience();
	if (++p->looks < 200) {
		sched_yield();
		return true;
	}
	nanosleep(&(struct timespec){ .tv_nsec = p->looks < 1000 ? 50000 : 1000000 }, NULL);
	return now() < p->end && !wait_is_hopeless();
}

uint32_t chance(uint32_t below)
{
	static __thread uint64_t state;

	if (!report->by_chance || !state) {
		report->by_chance = true;
		state = ((uint64_t)options.seed << 16) + report->index + 1;
	}
	state ^= state << 13;	/* xorshift64 */
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % below;
}
