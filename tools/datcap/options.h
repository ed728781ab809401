/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* options.h - the options of datcap: one table says which commands take an option, what their help says of
 * it, and where its value goes. */
#ifndef DATCAP_OPTIONS_H
#define DATCAP_OPTIONS_H
#include "datcap.h"

enum command_id { CAPTURE, STAT, REPLAY, MAKE, RDMA, CAPS, DEVICES, COMMANDS };

/* Returns the help of a command: `head`, and a line for each option that it takes. The text is in a static
 * buffer, valid until the next call. */
const char *options_help(enum command_id command, const char *head);
/* Reads the options of the command line. Then argv[optind] is its first argument. Ends the program if an
 * option is unknown or has a wrong value. Call it once. */
struct options *options_read(int argc, char **argv);
/* Treats an option that the command does not take as a usage error, since it would have no effect. Call it
 * after options_read(). */
void options_check_command(enum command_id command, const char *name);

#endif
