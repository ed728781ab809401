/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* file_tree.h - a directory of the test's own with files in it, as a root of /sys and /etc (file_tree.c). */
#ifndef TEST_UNIT_FILE_TREE_H
#define TEST_UNIT_FILE_TREE_H

#include "test/unit/unit.h"
extern char tree_root[];		/* without a slash at the end */

/* For cmocka, before and after a case: a new directory, which DAT_TEST_ROOT names too, and none. */
int tree_begin(void **state);
int tree_end(void **state);

/* The path of a name that begins with a slash; valid until the next call. */
const char *in_tree(const char *name);
/* These make the directories above, too. */
void tree_directory(const char *name);
__attribute__((format(printf, 2, 3)))
void tree_file(const char *text, const char *name, ...);

#endif
