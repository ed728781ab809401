/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h - the link that soft-siw makes in the test machine: siw on vsiw0 here, the software
 * device on vsoft0 in the network namespace "soft". */
#ifndef TEST_NET_LINK_H
#define TEST_NET_LINK_H
#include "ends.h"

#define SIW "10.96.0.1"
#define SOFT "10.96.0.2"

void open_siw(struct end *e);
void open_soft(struct end *e);	/* moves this process into the namespace "soft" */

#endif
