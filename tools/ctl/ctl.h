/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.h - the commands of datctl. Each function returns the exit status; datctl.c is the command line. */
#ifndef TOOLS_CTL_CTL_H
#define TOOLS_CTL_CTL_H
#include <stdbool.h>
#include <sys/types.h>

/* parameters.c: `pid` 0: all programs of the user. */
int ctl_list_parameters(pid_t pid, const char *name, bool json);	/* name NULL: all */
/* A usage error if there is no such parameter, or programs would refuse the value. */
void ctl_check_parameter(const char *name, const char *value);
int ctl_set_parameter(pid_t pid, const char *name, const char *value, bool json);
int ctl_reread(pid_t pid, bool json);

/* persist.c: changes, or (value "") removes, a line of dapl.conf. */
int ctl_persist(const char *name, const char *value);

/* links.c: kernel modules and software RDMA devices. */
int ctl_query(bool json);
int ctl_load(const char *what);		/* "soft", "rxe:eth0", "siw:eth0"; NULL: modules only */
int ctl_unload(const char *name);

#endif
