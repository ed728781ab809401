/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional.h - the functional tests: features with numbered cases, each of which asserts what calls return
 * and what they leave behind. They need no server: a case that connects connects to itself. */
#ifndef DAPLTEST_FUNCTIONAL_H
#define DAPLTEST_FUNCTIONAL_H
#include "../messages.h"
#include "channel.h"
#include "options.h"

/* A case has an adapter of its own; what it leaves is freed with that. */
struct functional {
	const struct options *o;
	struct adapter adapter;
};

struct functional_case {
	const char *description;
	bool (*run)(struct functional *f);
};

struct feature {
	const char *name, *title;
	const struct functional_case *cases;
	int count;
};

extern const struct feature feature_hwconn, feature_endpoint, feature_pz, feature_mem;	/* functional_object.c */
extern const struct feature feature_connmgt;						/* functional_connect.c */
extern const struct feature feature_queryinfo;						/* functional_query.c */

#define EXPECT(condition) do { \
		if (!(condition)) \
			return complain("%s: found false, expected true", #condition); \
	} while (0)
/* The type of the code that a call returns: DAT_SUCCESS, DAT_INVALID_HANDLE, ... What the libraries say of a failure
 * that is expected is not printed. */
#define EXPECT_TYPE(call, type) do { \
		messages_hold(); \
		if (!functional_expect(#call, (call), (type))) \
			return false; \
	} while (0)
bool functional_expect(const char *call, DAT_RETURN found, DAT_RETURN expected);

/* Runs the cases of -f that are named "caseN", or all of them. The exit status. */
int functional_run(const struct options *o);

#endif
