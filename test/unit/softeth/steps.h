/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* steps.h - a record of the calls that a function makes, and one of them that fails. A test names the calls that it
 * replaces by words. */
#ifndef TEST_SOFTETH_STEPS_H
#define TEST_SOFTETH_STEPS_H

extern char steps[512];			/* a word for each call */
extern const char *failing;		/* the step that fails; NULL: none */

void forget_steps(void);		/* none fails */
int step(const char *word);		/* -1 and ENOBUFS in errno if it is the step that fails, else 0 */
void steps_are(const char *expected);	/* and forgets them */

/* Fails as step() does, but records nothing: for the life of an object, which a test counts. */
int step_fails(const char *word);

/* Compares words in any order: these objects, and the steps since the last comparison. */
#define words_are(objects, expected) words_are_at(objects, expected, __FILE__, __LINE__)
void words_are_at(const char *objects, const char *expected, const char *file, int line);

#endif
