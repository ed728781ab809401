/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* side.h - what every example needs: one side of a connection, opened, connected and
 * closed. A call that fails ends the program with one line and exit status 1. What is
 * transferred is the matter of the examples.
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
/* The same without an endpoint and its EVDs, for examples that make their own. */
void side_open_ia(struct side *side, int argc, char **argv);

/* The server listens and accepts one client, the client connects. Receives that the first
 * message needs are posted before. The `size` bytes at `mine` are given to the peer with the
 * connection request or its answer, those of the peer stand at `theirs` afterwards. */
void side_connect(struct side *side, const void *mine, void *theirs, size_t size);
/* The parts of it, for examples that do something between. */
void side_dial(struct side *side, DAT_EP_HANDLE ep, const void *mine, size_t size);
DAT_PSP_HANDLE side_listen(struct side *side, DAT_EVD_HANDLE evd);

/* Disconnects, waits for the end of the connection, frees everything. */
void side_close(struct side *side);

/* Registers `size` bytes at `at` with all privileges, until the IA is closed. */
struct memory register_memory(const struct side *side, void *at, size_t size);
/* `length` bytes of it from `offset`, as a local segment, and as the peer's target. */
DAT_LMR_TRIPLET segment(const struct memory *memory, size_t offset, size_t length);
DAT_RMR_TRIPLET remote_segment(const struct memory *memory, size_t offset, size_t length);

/* The next event of the EVD, which has to be of this kind. Waits for it for ten seconds. */
DAT_EVENT wait_for(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER expected);
/* The next completion, which has to be a success. */
DAT_DTO_COMPLETION_EVENT_DATA wait_for_completion(DAT_EVD_HANDLE evd);

#endif
