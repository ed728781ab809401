/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ips.h - IP addresses of tests, written as text. */
#ifndef TEST_NET_IPS_H
#define TEST_NET_IPS_H
#include <sys/socket.h>

/* An address of either family, with port and scope id 0. */
struct sockaddr_storage ip(const char *text);
/* Ports and scope ids are not compared. NULL: the family is 0. */
void assert_ip(const struct sockaddr_storage *found, const char *text);

#endif
