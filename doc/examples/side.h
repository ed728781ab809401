/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.h - one side of a connection, for all examples: opens it, connects it and closes it. The examples
 * transfer data over it. A call that fails ends the program with one line and exit status 1.
 *
 * Every example is a server and a client:
 *
 *	EXAMPLE IA PORT			serves one client
 *	EXAMPLE IA PORT ADDRESS		connects to the server at ADDRESS */
#ifndef SIDE_H
#define SIDE_H
#include <stddef.h>
#include <stdint.h>
#include <dat/udat.h>

/* Ends the program if `ret` is not DAT_SUCCESS. */
#define CHECK(call) check(#call, (call))
void check(const char *call, DAT_RETURN ret);

struct side {
	const char *address;		/* of the server; NULL: this is the server */
	DAT_CONN_QUAL port;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE async, requests_of_peers, connection, receives, requests;
	DAT_EP_HANDLE ep;
};

/* Registered memory. */
struct memory {
	void *at;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;	/* names it in local segments */
	DAT_RMR_CONTEXT rmr_context;	/* names it in requests of the peer */
};

/* Opens the IA of the command line; makes a protection zone, the EVDs and an endpoint.
 * Wrong arguments end the program with a usage line and exit status 2. */
void side_open(struct side *side, int argc, char **argv);
/* Opens the IA as side_open() does, but makes no endpoint and no EVDs for it: some examples make their own. */
void side_open_ia(struct side *side, int argc, char **argv);

/* The server listens and accepts one client, the client connects. Post the receives for the peer's first
 * messages before. The `size` bytes at `mine` go to the peer as private data of the connection request or of
 * its answer; the peer's are stored at `theirs`. A peer that sends fewer ends the program. */
void side_connect(struct side *side, const void *mine, void *theirs, size_t size);
/* Parts of side_connect(), for examples with other endpoints or EVDs: connects `ep`; makes a service point. */
void side_dial(struct side *side, DAT_EP_HANDLE ep, const void *mine, size_t size);
DAT_PSP_HANDLE side_listen(struct side *side, DAT_EVD_HANDLE evd);

/* Disconnects, waits for the end of the connection, frees everything. */
void side_close(struct side *side);

/* Registers `size` bytes at `at` with all privileges, until the IA is closed. */
struct memory register_memory(const struct side *side, void *at, size_t size);
/* `length` bytes of registered memory from `offset`: as a local segment, and as the target of RDMA of the peer. */
DAT_LMR_TRIPLET segment(const struct memory *memory, size_t offset, size_t length);
DAT_RMR_TRIPLET remote_segment(const struct memory *memory, size_t offset, size_t length);

/* Returns the next event of the EVD, after at most ten seconds. An event of another kind ends the program. */
DAT_EVENT wait_for(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected);
/* Returns the completion that an event reports. A completion with an error ends the program. */
DAT_DTO_COMPLETION_EVENT_DATA check_completion(const DAT_EVENT *event);
/* Returns the next completion, after at most ten seconds. A completion with an error ends the program. */
DAT_DTO_COMPLETION_EVENT_DATA wait_for_completion(DAT_EVD_HANDLE evd);

#endif
