/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe_cases.h - the cases of device_probe, which device_probe.c runs. */
#ifndef TEST_VERBS_PROBE_CASES_H
#define TEST_VERBS_PROBE_CASES_H
#include "test/unit/verbs/probe.h"

/* probe_names.c */
void facts(void);
void limits_of_the_kernel(void);
void spellings(void);

/* probe_requests.c */
void private_data(struct point *p);
void rejections(struct point *p, bool ud, size_t limit);
void refusal(struct point *p, bool ud);
void nobody(bool ud);
void no_route(const char *address);

/* probe_data.c */
void data(struct point *p);
void limits_of_one_connection(struct point *p);

/* probe_life.c */
void disconnects(struct point *p);
void releases(struct point *p);
void ports(void);
void unlisten_during_requests(void);
void cycles(struct point *p, int n);
void four_threads(struct point *p);
void removal(struct point *p);

/* probe_foreign.c */
void foreign_peers(struct point *p);

/* probe_datagrams.c */
void datagrams(void);

#endif
