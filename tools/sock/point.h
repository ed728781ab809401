/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* point.h - the service points of datsockd on RDMA adapters, where services of other hosts ask, and the questions of
 * this service to theirs. A question is a DAT connect, which is always rejected; its private data and those of the
 * reject are in common/sock_service.h. */
#ifndef SOCK_POINT_H
#define SOCK_POINT_H
#include <stdbool.h>
#include <stdint.h>
#include "tools/sock/clients.h"

/* How often another host may ask in a second; 1000 unless this was called. */
void point_set_rate(unsigned rate);
/* Counts a question of another host. Returns whether it has asked too often. */
bool point_is_too_fast(const uint8_t address[16]);
/* Opens an IA, and listens there. Returns false, with a line on stderr, if that fails; point_tick() tries it again. */
bool point_open(const char *ia, uint16_t qualifier);
/* IAs have the numbers from 0 to point_count() - 1. */
int point_count(void);
/* Which open IA has that address, -1: none. IPv4 as a mapped address of IPv6. */
int point_for(const uint8_t address[16]);
/* The same, or which is on the interface that has that address. */
int point_beside(const uint8_t address[16]);
/* Stores the addresses of all open IAs on the interface that has that address, and returns their number. */
unsigned point_list_beside(const uint8_t address[16], uint8_t adapters[SOCK_SERVICE_ADAPTERS][16]);
/* Any open IA, -1: none, if that address is of one that is not open now, or of its interface. */
int point_instead_of(const uint8_t address[16]);
/* Whether the IA is open, and the address is another one of its network. */
bool point_is_near(int ia, const uint8_t address[16]);
const char *point_name(int ia);
/* Asks the service at the other end of the path. Returns false if too many questions are under way. Else
 * clients_answered() will be called. */
bool point_ask(const struct clients_ask *ask);
/* Does what is due. Returns whether anything waits for a time. */
bool point_tick(void);
void point_close(void);

#endif
