/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* functional.c - see functional.h. */
#include "functional.h"
#include "../cli.h"
#include <stdio.h>
#include <string.h>

static const struct feature *const features[] = {
	&feature_hwconn, &feature_endpoint, &feature_pz, &feature_mem, &feature_connmgt, &feature_queryinfo,
};
enum { FEATURES = sizeof features / sizeof *features };

bool functional_expect(const char *call, DAT_RETURN found, DAT_RETURN expected)
{
	const char *major = "?", *minor = "", *wanted = "?", *none = "";
	const char *cause = messages_release(found != DAT_SUCCESS);

	if (DAT_GET_TYPE(found) == DAT_GET_TYPE(expected))
		return true;
	dat_strerror(found, &major, &minor);
	dat_strerror(expected, &wanted, &none);
	return complain("%s: %s %s found, %s expected%s%s", call, major, minor, wanted, cause ? ": " : "",
			cause ? cause : "");
}

static bool run_case(const struct feature *feature, int i, const struct options *o)
{
	static const char line[] = "**********************************************************************";
	struct functional f = { .o = o };
	bool good;

	printf("%s\nFunction feature: %s   case: %d\nDescription: %s\n", line, feature->title, i,
	       feature->cases[i].description);
	fflush(stdout);
	good = adapter_open(&f.adapter, o->device) && feature->cases[i].run(&f);
	adapter_close(&f.adapter);
	printf("Result: %s\n%s\n", good ? "PASS" : "FAIL", line);
	fflush(stdout);
	return good;
}

static const struct feature *find_feature(const char *name)
{
	if (!name)
		usage_error("-f, the feature, is missing: hwconn, endpoint, pz, mem, connmgt or queryinfo");
	for (int i = 0; i < FEATURES; i++)
		if (!strcmp(name, features[i]->name))
			return features[i];
	usage_error("-f: \"%s\" found, hwconn, endpoint, pz, mem, connmgt or queryinfo expected", name);
}

static int case_number(const struct feature *feature, const char *word)
{
	if (strncmp(word, "case", 4) || !word[4])
		usage_error("\"%s\" found, case0 to case%d expected", word, feature->count - 1);
	return (int)cli_number("case", word + 4, 0, (unsigned long)feature->count - 1);
}

int functional_run(const struct options *o)
{
	const struct feature *feature = find_feature(o->feature);
	bool good = true;

	for (int i = 0; i < o->word_count; i++)
		case_number(feature, o->words[i]);
	for (int i = 0; i < o->word_count; i++)
		good = run_case(feature, case_number(feature, o->words[i]), o) && good;
	for (int i = 0; i < feature->count && !o->word_count; i++)
		good = run_case(feature, i, o) && good;
	return good ? 0 : 1;
}
