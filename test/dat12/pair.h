/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h - what the programs in DAT 1.2 style share: a dat.conf with the software device, and two
 * connected endpoints of one IA. A failure prints its line and ends the process. C89, like old
 * programs. Compiled with the header of include/dat-1.2 and with the transcription. */
#ifndef DAT12_PAIR_H
#define DAT12_PAIR_H
#include <stdio.h>
#include <stdlib.h>
#include <dat/udat.h>

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, \
				#condition); \
			exit(1); \
		} \
	} while (0)
#define OK(call) check_ok((call), __FILE__, __LINE__, #call)
void check_ok(DAT_RETURN ret, const char *file, int line, const char *call);
/* The error has this type and subtype. */
#define FAILS(call, type, subtype) \
	check_fails((call), (type), (subtype), __FILE__, __LINE__, #call)
void check_fails(DAT_RETURN ret, unsigned type, unsigned subtype, const char *file, int line, const char *call);

/* Bounds every wait; on a busy machine nothing takes as long. */
#define WAIT_MAX ((DAT_TIMEOUT)60 * 1000 * 1000)	/* microseconds */

#define IA_NAME "dat12-soft"		/* has a u2.0 entry */
#define IA_NAME_1_2 "dat12-only"	/* has a u1.2 entry */
/* Both have both entries; the library of one of them does not exist. */
#define IA_NAME_GOOD_1_2 "dat12-good-1.2"
#define IA_NAME_GOOD_2_0 "dat12-good-2.0"
/* Makes the dat.conf, and removes it at exit. Called first. */
void use_soft_device(void);
void open_ia(const char *name, DAT_IA_HANDLE *ia, DAT_EVD_HANDLE *async);

#define MEMORY_BYTES 65536
struct pair {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr_evd, conn[2], recv[2], request[2];
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL qual;
	DAT_SOCK_ADDR *address;
	DAT_EP_HANDLE ep[2];		/* 0 connects, 1 accepts */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	char *memory;
};
/* Without endpoints. */
void pair_prepare(struct pair *p);
/* With connected endpoints; `attr` may be NULL. */
void pair_connect(struct pair *p, const DAT_EP_ATTR *attr);
void pair_close(struct pair *p);

void wait_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event);
/* A completion without error of `length` bytes. */
void wait_completion(DAT_EVD_HANDLE evd, DAT_UINT64 cookie, DAT_VLEN length);
void set_segment(const struct pair *p, DAT_LMR_TRIPLET *segment, size_t offset, DAT_VLEN length);
void set_target(const struct pair *p, DAT_RMR_TRIPLET *target, size_t offset, DAT_VLEN length);
DAT_DTO_COOKIE cookie_of(DAT_UINT64 value);

#endif
