/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_verbs.h - the verbs of the control socket (base/control.h): they list IAs, endpoints, counters,
 * parameters and trace records, and change parameters. doc/design/control.md has the members of the
 * answers. */
#ifndef DAPL_CONTROL_VERBS_H
#define DAPL_CONTROL_VERBS_H

/* Called when the library starts. */
void dapl_control_verbs_init(void);

#endif
