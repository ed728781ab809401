/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace-levels.c - shows the trace levels of the registry and of an adapter's provider, and sets them: the two
 * functions that an IA offers as vendor attributes (<dat/dat_trace.h>).
 *
 *	trace-levels IA [DAT-LEVEL DAPL-LEVEL]
 *
 * The levels are those of this process. This example sets them just before it ends, which only shows how. A program
 * that calls the functions later, when a user requests it, is traced from then on.
 *	cc -D_GNU_SOURCE -o trace-levels trace-levels.c -ldat2 */
#include <dat/udat.h>
#include <dat/dat_trace.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct functions {
	DAT_TRCLVL_QUERY_FUNC query;
	DAT_TRCLVL_MODIFY_FUNC modify;
};

static void complain(const char *call, DAT_RETURN ret)
{
	const char *type = "?", *subtype = "";

	dat_strerror(ret, &type, &subtype);
	fprintf(stderr, "trace-levels: %s: %s %s\n", call, type, subtype);
}

static const char *attribute(const DAT_IA_ATTR *attr, const char *name)
{
	for (int i = 0; i < attr->num_vendor_attr; i++)
		if (!strcmp(attr->vendor_attr[i].name, name))
			return attr->vendor_attr[i].value;
	return NULL;
}

/* The values of debug_query and debug_modify are addresses. An IA that does not have
 * vendor_extension may use these names for something else. */
static int find_functions(DAT_IA_HANDLE ia, struct functions *f)
{
	DAT_IA_ATTR attr;
	DAT_RETURN ret = dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	const char *version;

	if (ret != DAT_SUCCESS) {
		complain("dat_ia_query", ret);
		return -1;
	}
	version = attribute(&attr, DAT_ATTR_VENDOR_EXTENSION);
	if (!version) {
		fprintf(stderr, "trace-levels: this IA has no attribute %s: no levels\n",
			DAT_ATTR_VENDOR_EXTENSION);
		return -1;
	}
	f->query = (DAT_TRCLVL_QUERY_FUNC)(uintptr_t)attribute(&attr, DAT_ATTR_DEBUG_QUERY);
	f->modify = (DAT_TRCLVL_MODIFY_FUNC)(uintptr_t)attribute(&attr, DAT_ATTR_DEBUG_MODIFY);
	if (!f->query || !f->modify) {
		fprintf(stderr, "trace-levels: %s is %s, but %s is missing\n",
			DAT_ATTR_VENDOR_EXTENSION, version,
			f->query ? DAT_ATTR_DEBUG_MODIFY : DAT_ATTR_DEBUG_QUERY);
		return -1;
	}
	printf("%s %s\n", DAT_ATTR_VENDOR_EXTENSION, version);
	return 0;
}

static int show(const struct functions *f, DAT_TRC_COMPONENT component, const char *name)
{
	DAT_UINT32 level;
	DAT_RETURN ret = f->query(component, &level);

	if (ret != DAT_SUCCESS) { /* an older registry has no levels */
		complain(name, ret);
		return -1;
	}
	printf("%-8s level %u\n", name, level);
	return 0;
}

static int show_both(const struct functions *f)
{
	return show(f, DAT_TRC_DAT, "registry") | show(f, DAT_TRC_DAPL, "provider");
}

static int read_level(const char *text, DAT_UINT32 *level)
{
	unsigned long n;
	char *end;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n > DAT_TRC_LVL_MAX) {
		fprintf(stderr, "trace-levels: \"%s\" is no level; expected 0 to %d\n", text,
			DAT_TRC_LVL_MAX);
		return -1;
	}
	*level = n;
	return 0;
}

static int set(const struct functions *f, DAT_TRC_COMPONENT component, const char *name,
	       DAT_UINT32 level)
{
	DAT_RETURN ret = f->modify(component, level);

	if (ret == DAT_SUCCESS)
		return 0;
	complain(name, ret);
	return -1;
}

static int set_both(const struct functions *f, const DAT_UINT32 level[2])
{
	if (set(f, DAT_TRC_DAT, "registry", level[0]) || set(f, DAT_TRC_DAPL, "provider", level[1]))
		return -1;
	puts("set; now:");
	return show_both(f);
}

int main(int argc, char **argv)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct functions f = { NULL, NULL };
	DAT_UINT32 level[2];
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
	int failed;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: trace-levels IA [DAT-LEVEL DAPL-LEVEL]\n");
		return 2;
	}
	if (argc == 4 && (read_level(argv[2], &level[0]) || read_level(argv[3], &level[1])))
		return 2;
	ret = dat_ia_open(argv[1], 8, &async, &ia);
	if (ret != DAT_SUCCESS) {
		complain(argv[1], ret);
		return 1;
	}
	failed = find_functions(ia, &f) || show_both(&f);
	if (!failed && argc == 4)
		failed = set_both(&f, level);
	ret = dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	if (ret != DAT_SUCCESS)
		complain("dat_ia_close", ret);
	return failed || ret != DAT_SUCCESS;
}
