/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional.h - the functional tests: features with numbered cases, each of which checks the results and
 * the effects of calls. They need no server: both sides of a connection are in this process. */
#ifndef DAPLTEST_FUNCTIONAL_H
#define DAPLTEST_FUNCTIONAL_H
#include "../messages.h"
#include "channel.h"
#include "options.h"

/* Each case has an adapter of its own. Its close frees the objects that the case has left. */
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
/* Checks the type of the code that a call returns: DAT_SUCCESS, DAT_INVALID_HANDLE, ... Messages of the
 * libraries about an expected failure are not printed. */
#define EXPECT_TYPE(call, type) do { \
		messages_hold(); \
		if (!functional_expect(#call, (call), (type))) \
			return false; \
	} while (0)
bool functional_expect(const char *call, DAT_RETURN found, DAT_RETURN expected);

/* Runs the named cases ("caseN") of the feature of -f, or all of its cases. Returns the exit status. */
int functional_run(const struct options *o);

#endif
