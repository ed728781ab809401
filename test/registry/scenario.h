/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenario.h - runs the body of a test in a process of its own, as the registry reads its files once in a
 * process. Collects what the body prints and what the mock providers note. Numbers in tests, as REG-9, are
 * statements of doc/spec/statements.md. */
#ifndef TEST_REGISTRY_SCENARIO_H
#define TEST_REGISTRY_SCENARIO_H
#include <dat/udat.h>
#include <dat/dat_registry.h>
#include <stdbool.h>

struct outcome {
	int status;		/* the exit status of the process, or -signal */
	char out[32768];	/* standard output */
	char err[32768];	/* standard error */
	char notes[262144];	/* notes of the mock providers, one in a line */
};

/* Runs body() in the directory of the modules, so that "./mock.so" is found. DAT_OVERRIDE names the file
 * `conf` of fixtures/, or any file if `conf` has a slash; with NULL it is not set. */
void scenario(struct outcome *outcome, const char *conf, void (*body)(void));

/* Runs a scenario that must exit with 0 and print nothing. */
void silent(const char *conf, void (*body)(void));

/* Runs a scenario that must exit with 0 and print nothing but `names` lines about unknown adapters. */
void silent_but_unknown(const char *conf, void (*body)(void), int names);

/* In a body: returns how often this note was made so far. */
int noted(const char *note);
/* In a test: returns how often this note was made in the scenario. */
int noted_in(const struct outcome *outcome, const char *note);

/* In a body: fails the test with file and line if the condition does not hold. */
#define CHECK(condition) \
	scenario_check(condition, __FILE__, __LINE__, #condition)
/* In a body: fails the test unless `call` returns exactly `expected`. */
#define RETURNS(call, expected) \
	scenario_returns(call, expected, __FILE__, __LINE__, #call)
#define OK(call) RETURNS(call, DAT_SUCCESS)
void scenario_check(bool good, const char *file, int line, const char *what);
void scenario_returns(DAT_RETURN got, DAT_RETURN expected, const char *file, int line,
		      const char *what);

#define FAILURE(type, subtype) ((DAT_RETURN)(DAT_CLASS_ERROR | (type) | (subtype)))
#define NOT_FOUND FAILURE(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED)
#define BAD_IA FAILURE(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA)

/* dat_ia_open() with the arguments that most programs use. */
DAT_RETURN open_ia(const char *name, DAT_IA_HANDLE *ia);
/* Returns the names that dat_registry_list_providers() lists, each followed by a blank. */
const char *listed(void);

#endif
