/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* interfaces.h - the interfaces and addresses that the kernel lists over rtnetlink, as the test adds them. For programs
 * that are linked with $(interfaces_wrap); the name of the host is "thishost" there. */
#ifndef TEST_INTERFACES_H
#define TEST_INTERFACES_H
#include <net/if.h>

extern unsigned n_interfaces;
extern unsigned sockets_open;		/* for rtnetlink */
extern int list_error;			/* errno of socket() for rtnetlink; 0: it succeeds */

/* The next test begins without interfaces, and without an error. */
void clear_interfaces(void);
/* Removes all but the first n. */
void keep_interfaces(unsigned n);
/* Adds an address of an interface; NULL: the interface has none. */
void add_interface(const char *netdev, unsigned flags, const char *address);
/* Give the last one an alternative name of its interface, the label or the IFA_F_ flags of its address. */
void add_alternative_name(const char *name);
void set_label(const char *label);
void set_address_flags(unsigned flags);

#endif
