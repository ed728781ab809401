/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenario.h - one test body in a process of its own, because the registry reads its
 * files once in a process's life. Collects what the body prints and what the mock
 * providers note. The statements quoted in tests (REG-9...) are those of the
 * conformance list. */
#ifndef TEST_REGISTRY_SCENARIO_H
#define TEST_REGISTRY_SCENARIO_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>

struct outcome {
	int status;		/* of the process: 0, or what exit() got, or -signal */
	char out[32768];	/* standard output */
	char err[32768];	/* standard error */
	char notes[262144];	/* the providers' notes, one a line, of the whole process */
};

/* Runs body() with DAT_OVERRIDE naming `conf` below fixtures/ (NULL: not set; a path with
 * a slash: as it is), in the directory of the modules, so that "./mock.so" is found. */
void scenario(struct outcome *outcome, const char *conf, void (*body)(void));

/* scenario() that must succeed, and print nothing on either stream. */
void silent(const char *conf, void (*body)(void));

/* scenario() that must succeed, and print nothing but `names` lines about unknown adapters. */
void silent_but_unknown(const char *conf, void (*body)(void), int names);

/* In a body: how often a note was made until now. */
int noted(const char *note);
/* In a test: how often it was made in all. */
int noted_in(const struct outcome *outcome, const char *note);

/* In a body: fails the test, saying where. */
#define CHECK(condition) \
	scenario_check(condition, __FILE__, __LINE__, #condition)
/* In a body: `call` returns exactly `expected`; both are printed by name. */
#define RETURNS(call, expected) \
	scenario_returns(call, expected, __FILE__, __LINE__, #call)
#define OK(call) RETURNS(call, DAT_SUCCESS)
void scenario_check(bool good, const char *file, int line, const char *what);
void scenario_returns(DAT_RETURN got, DAT_RETURN expected, const char *file, int line,
		      const char *what);

#define FAILURE(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))
#define NOT_FOUND FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)
#define BAD_IA FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)

/* dat_ia_open() as programs call it; the plain one for most tests. */
DAT_RETURN open_ia(const char *name, DAT_IA_HANDLE *ia);
/* dat_registry_list_providers() as names, each followed by a blank. */
const char *listed(void);

#endif
