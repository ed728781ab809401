/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_tree.c - see file_tree.h. */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include "test/unit/file_tree.h"
#include "test/unit/unit.h"

char tree_root[] = "/tmp/file_tree.XXXXXX";
static char path[PATH_MAX];

static int remove_one(const char *name, const struct stat *status, int kind, struct FTW *where) { return remove(name); }

int tree_begin(void **state)
{
	strcpy(strrchr(tree_root, '.'), ".XXXXXX");
	return mkdtemp(tree_root) ? setenv("DAT_TEST_ROOT", tree_root, 1) : -1;
}

int tree_end(void **state) { return nftw(tree_root, remove_one, 8, FTW_DEPTH | FTW_PHYS); }

const char *in_tree(const char *name)
{
	assert_in_range(snprintf(path, sizeof path, "%s%s", tree_root, name), 1, sizeof path - 1);
	return path;
}

/* Makes the directories above the path. */
static void make_parents(void)
{
	for (char *at = path + strlen(tree_root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(!mkdir(path, 0700) || errno == EEXIST);
		*at = '/';
	}
}

void tree_directory(const char *name)
{
	in_tree(name);
	make_parents();
	assert_true(!mkdir(path, 0700) || errno == EEXIST);
}

void tree_file(const char *text, const char *fmt, ...)
{
	char name[PATH_MAX / 2];
	va_list args;
	FILE *file;

	va_start(args, fmt);
	assert_in_range(vsnprintf(name, sizeof name, fmt, args), 1, sizeof name - 1);
	va_end(args);
	in_tree(name);
	make_parents();
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}
