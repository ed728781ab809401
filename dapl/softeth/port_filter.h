/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_filter.h - the filter of a port's packet socket, kept in line with the port's rules. */
#ifndef SOFTETH_PORT_FILTER_H
#define SOFTETH_PORT_FILTER_H
#include "dapl/softeth/port_types.h"

/* These return 0 or an errno. port_filter_none() sets a filter that accepts nothing; the others replace the filter by
 * one for the rules, and for the tables of their groups. If old tables are part of it, port_filter_renew() asks for a
 * purge; port_filter_renew_locked(), which needs port->lock, leaves that to its caller. */
int port_filter_none(int fd);
int port_filter_renew(struct eth_port *port);
int port_filter_renew_locked(struct eth_port *port);

#endif
