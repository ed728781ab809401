/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* conform.h - the words a conformance test is written in: TEST, what is expected of
 * calls and events, and skips. Endpoints and memory to test with are in pair.h, threads
 * and second processes in actors.h. How tests are chosen and run is main.c's business.
 *
 * The first expectation that is not met ends the test. Nothing here looks behind the
 * public API. */
#ifndef CONFORM_H
#define CONFORM_H
#include <netinet/in.h>
#include <infiniband/verbs.h>
#include <dat/udat.h>
#include <dat/dat_ib_extensions.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- tests ------------------------------------------------------------------------ */

struct test {
	const char *ids;	/* "EVD-7", or several separated by blanks */
	const char *name;	/* the statement in words */
	void (*run)(const void *arg);
	const void *arg;	/* a row of a table of tests, else NULL */
	const char *file;
	int line;
};
void test_register(struct test *test);

/* TEST("PZ-4", an_empty_pz_is_freed) { ... } */
#define TEST(ids, name) \
	static void name(const void *arg); \
	static struct test entry_##name = { ids, #name, name, NULL, __FILE__, __LINE__ }; \
	__attribute__((constructor)) static void register_##name(void) { test_register(&entry_##name); } \
	static void name(const void *arg __attribute__((unused)))

/* --- verdicts: each ends the process that calls it ----------------------------------- */

_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Zeroed memory that lasts as long as the test. */
void *lasting(size_t size);

/* --- what is expected of a call ------------------------------------------------------- */

/* Notes where the test is; printed if it crashes or hangs. */
void reached(const char *file, int line, const char *what);
#define AT(what) reached(__FILE__, __LINE__, what)

void expect_return(DAT_RETURN found, int n, const DAT_RETURN *expected);
void expect_equal(const char *what, uint64_t found, uint64_t expected);
void expect_true(const char *what, bool holds);

#define OK(call) FAILS_(#call, call, DAT_SUCCESS)
/* FAILS(dat_pz_free(pz), DAT_INVALID_STATE | DAT_INVALID_STATE_PZ_IN_USE): the call returns one of the codes
 * given. A type without a subtype stands for all its subtypes. */
#define FAILS(call, ...) FAILS_(#call, call, __VA_ARGS__)
#define FAILS_(text, call, ...) do { \
		AT(text); \
		DAT_RETURN found_ = (call); \
		AT(text); \
		expect_return(found_, sizeof((const DAT_RETURN[]){ __VA_ARGS__ }) / sizeof(DAT_RETURN), \
			      (const DAT_RETURN[]){ __VA_ARGS__ }); \
	} while (0)
#define EQUAL(found, expected) \
	(AT(#found), expect_equal(#found, (uint64_t)(uintptr_t)(found), (uint64_t)(uintptr_t)(expected)))
#define HOLDS(condition) (AT(#condition), expect_true(#condition, (condition)))
/* An optional call: DAT_NOT_IMPLEMENTED and DAT_MODEL_NOT_SUPPORTED skip the test. */
#define OPTIONAL(call) (AT(#call), expect_supported(#call, (call)))
void expect_supported(const char *call, DAT_RETURN found);

/* --- what is expected of event dispatchers --------------------------------------------- */

/* Waits for the next event on the EVD, which must have this number. */
DAT_EVENT expect_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number);
#define EVENT(evd, number) (AT("event on " #evd), expect_event(evd, (DAT_EVENT_NUMBER)(number)))
/* Waits for the next event on the EVD, of any number. */
DAT_EVENT next_event(DAT_EVD_HANDLE evd);
/* Fails if the EVD has an event, or gets one within a moment. */
void expect_no_event(const char *evd_name, DAT_EVD_HANDLE evd);
#define NO_EVENT(evd) (AT("no event on " #evd), expect_no_event(#evd, evd))
/* Waits for the next event, which must be a completion of a DTO with this cookie and status. */
DAT_DTO_COMPLETION_EVENT_DATA expect_completion(DAT_EVD_HANDLE evd, uint64_t cookie,
						DAT_DTO_COMPLETION_STATUS status);
#define COMPLETES(evd, cookie, status) \
	(AT("completion " #cookie " on " #evd), expect_completion(evd, cookie, status))
/* Waits for the next event, which must end a connection: DISCONNECTED or BROKEN. Returns its number. */
DAT_EVENT_NUMBER expect_end(DAT_EVD_HANDLE evd);
#define ENDS(evd) (AT("end of the connection on " #evd), expect_end(evd))

void expect_state(DAT_EP_HANDLE ep, DAT_EP_STATE state);
#define STATE(ep, state) (AT("state of " #ep), expect_state(ep, state))
DAT_EP_STATE state_of(DAT_EP_HANDLE ep);

/* --- the interface adapter under test ---------------------------------------------------- */

DAT_NAME_PTR ia_name(void);		/* --ia */
/* Returns the IA of this process. The first call opens it. The runner closes it (ABRUPT), and fails the test
 * if that fails. */
DAT_IA_HANDLE ia(void);
DAT_EVD_HANDLE async_evd(void);		/* the one made by that open */
const DAT_IA_ATTR *ia_attr(void);
const DAT_PROVIDER_ATTR *provider_attr(void);
/* Returns whether the IA's device has this driver ("rxe", "siw"). For what devices do differently: DOUBTS.md
 * lists each use. */
bool device_is(const char *driver);
/* The value of a provider-specific named attribute, or NULL. */
const char *named_attr(const char *name);
/* Opens another instance of the same IA. The runner does not close it. */
DAT_IA_HANDLE open_ia(DAT_EVD_HANDLE *async);
/* Makes ia() return this instance from now on. Returns the instance before. */
DAT_IA_HANDLE work_on(DAT_IA_HANDLE instance);
/* The test has closed the IA of ia(), or it has gone: the runner does not close it. */
void ia_is_gone(void);
/* Returns the address that peers connect to: --addr, or else ia_address_ptr. */
DAT_IA_ADDRESS_PTR address(void);
/* Returns a qualifier that no test has used yet. */
DAT_CONN_QUAL new_qual(void);
/* Returns a qualifier of more than 32 bits. Where a qualifier becomes a port, its port is above those that
 * Linux gives to outgoing connections by default. */
DAT_CONN_QUAL new_large_qual(void);

/* Skips the test unless the device has it. */
void needs_srq(void);
void needs_rmr(void);
void needs_attr(const char *name);
void needs_completion_flag(DAT_COMPLETION_FLAGS flag);

/* Looks up a call that some registries declare but do not export. Without it find_call() returns NULL, and
 * late_call() skips the test. */
void *find_call(const char *name);
void *late_call(const char *name);
#define FIND(function) ((__typeof__(&function))find_call(#function))
#define LATE(function) ((__typeof__(&function))late_call(#function))

/* --- names ---------------------------------------------------------------------------------- */

const char *return_name(DAT_RETURN ret);	/* "DAT_INVALID_STATE(DAT_INVALID_STATE_PZ_IN_USE)" */
const char *event_name(DAT_EVENT_NUMBER number);
const char *state_name(DAT_EP_STATE state);
const char *dto_status_name(DAT_DTO_COMPLETION_STATUS status);
const char *operation_name(DAT_DTOS operation);
const char *handle_type_name(DAT_HANDLE_TYPE type);

/* --- time and chance --------------------------------------------------------------------------- */

double now(void);		/* seconds, monotonic */
double patience(void);		/* seconds after which waiting for something is a failure */
/* Returns false once patience() is over. Yields the processor between two looks. */
struct patience {
	double end;
	unsigned looks;
};
bool waiting(struct patience *patience);
#define UNTIL(condition, what) do { \
		struct patience patience_ = { 0 }; \
		AT(what); \
		while (!(condition)) \
			if (!waiting(&patience_)) \
				fail("expected %s, waited %.0f s without it", what, patience()); \
	} while (0)
/* Returns a random number below `below`. A test that fails prints the seed; --seed repeats it. */
uint32_t chance(uint32_t below);

#endif
