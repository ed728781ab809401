/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* libraries.h - provider libraries that are functions of the test, found by a dynamic linker of the test's, and a
 * record of what is done to them: for programs that are linked with $(dat_libraries_wraps) and that have the entries of
 * conf_text.h. */
#ifndef TEST_UNIT_DAT_LIBRARIES_H
#define TEST_UNIT_DAT_LIBRARIES_H
#include "dat/registry_state.h"
#include "test/unit/dat/conf_text.h"
#include "test/unit/unit.h"

#define A LINE("ia_a", "default", "liba.so", "eth0 0")
#define B LINE("ia_b", "default", "libb.so", "eth0 0")

extern bool lacks_calls;			/* why it cannot be loaded: it is no provider */
extern const char *missing;		/* the library that cannot be loaded; NULL: none, "*": each */
extern bool registers;			/* an init registers its adapter */
extern void (*during_load)(void);	/* called at each load */
extern void (*during_init)(void), (*during_fini)(void);	/* called once, at the end of it */

/* For cmocka: before and after a case. The files have A and B, and are read by the first call that needs them. */
int libraries_begin(void **state);
int libraries_end(void **state);

/* What was done since the last call: "open:LIBRARY ", "init:ADAPTER[PARAMS] ", "fini:ADAPTER ", "close ". */
void took(const char *expected);
/* Opens u2.0 nonthreadsafe. */
DAT_RETURN get_ia(const char *name, struct provider **found);
struct provider *opened(const char *name);
/* Registers an adapter, as a library or the program does. */
void register_ia(const char *name, DAT_UINT32 major, DAT_UINT32 minor, DAT_BOOLEAN safe);

#endif
