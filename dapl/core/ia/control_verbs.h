/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_verbs.h - what the control socket (base/control.h) does for its clients: tells of IAs,
 * endpoints, counters, parameters and trace records, and changes parameters. doc/design/control.md
 * has the members of the answers. */
#ifndef DAPL_CONTROL_VERBS_H
#define DAPL_CONTROL_VERBS_H

/* At the start of the library. */
void dapl_control_verbs_init(void);

#endif
