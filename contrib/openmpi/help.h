/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* help.h - messages for users. */
#ifndef BTL_UDAPL_HELP_H
#define BTL_UDAPL_HELP_H

#include "udapl.h"

/* Returns whether this process is the one on its node that reports problems of the node. */
static inline bool udapl_is_first_on_node(void)
{
	return opal_process_info.my_local_rank == 0;
}

/* Prints a topic of the help file to standard error of this process. opal_show_help() leaves
 * printing to mpirun, and mpirun of Open MPI 4.1 occasionally garbles or loses the text. */
void udapl_show_help(const char *topic, ...);

/* Makes Open MPI search the directory of the component for the help file. */
void udapl_add_help_dir(void);

/* Returns a text such as "DAT_INVALID_STATE DAT_INVALID_STATE_EP_CONNECTED"; valid until the thread's next
 * call. */
const char *udapl_error(DAT_RETURN rc);

#endif
