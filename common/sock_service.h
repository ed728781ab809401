/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sock_service.h - what libdatsock and datsockd(8) say to each other over a Unix socket (SOCK_SEQPACKET), and what two
 * datsockd say over a DAT connect, in private data, and in datagrams.
 *
 * A process passes the descriptor of a TCP socket to the service of its host, which reads from the socket itself what
 * was said in the handshake, and answers with the key of the connection: both tokens, that of the connector first. Only
 * processes that have one of the two sockets, and both services, know it.
 *
 *	acceptor: EXPECT and its socket -> key, IA      HERE: the qualifier where it listens on that IA
 *	connector: ASK and its socket -> key, IA, address and qualifier of the process that has the other socket
 *
 * The answer to EXPECT comes again, with another IA, when the connector's service has chosen that one. Each answer
 * wants a HERE.
 *
 * A HERE holds until FORGET, the end of the Unix connection, or for SOCK_SERVICE_HERE_MS. Messages are in host byte
 * order: both ends are on one host. Private data are in network byte order. */
#ifndef COMMON_SOCK_SERVICE_H
#define COMMON_SOCK_SERVICE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Behind test_root(). */
#define SOCK_SERVICE_DIRECTORY "/run/datsock"
#define SOCK_SERVICE_PATH SOCK_SERVICE_DIRECTORY "/datsockd"

enum {
	SOCK_SERVICE_MAGIC = 0x44535632,
	SOCK_SERVICE_VERSION = 1,
	SOCK_SERVICE_QUALIFIER = 4797,	/* of the service on each IA, unless an option has another one */
	SOCK_SERVICE_KEY = 16,		/* bytes */
	SOCK_SERVICE_PRIVATE = 32,	/* bytes of private data; InfiniBand has room for 56 in a connect */
	SOCK_SERVICE_ADAPTERS = 4,	/* that a reply lists */
	/* Bytes of a reply with a list; InfiniBand has room for 144. */
	SOCK_SERVICE_REPLY = SOCK_SERVICE_PRIVATE + 16 * SOCK_SERVICE_ADAPTERS,
	SOCK_SERVICE_HERE_MS = 10000,
	SOCK_SERVICE_IA = 256,		/* bytes of the name of an IA, with its end */
};

enum sock_service_type { SOCK_SERVICE_EXPECT = 1, SOCK_SERVICE_HERE, SOCK_SERVICE_ASK, SOCK_SERVICE_FORGET };

enum sock_service_result {
	SOCK_SERVICE_OK,
	SOCK_SERVICE_NO_SOCKET,		/* no descriptor of a TCP socket came with the request, or it was not marked */
	SOCK_SERVICE_NOT_AWARE,		/* the peer has no libdatsock, or something on the way removed the option */
	SOCK_SERVICE_NO_ADAPTER,	/* no IA of the service is on the interface of the local address */
	SOCK_SERVICE_BUSY,		/* too many requests of this user */
	SOCK_SERVICE_LATER,		/* the peer's process does not expect the connection yet */
	SOCK_SERVICE_NO_PEER,		/* the peer's service does not answer, or refuses */
	SOCK_SERVICE_RESULTS,
};

struct sock_service_request {
	uint32_t magic;
	uint16_t version, type;
	uint32_t id;			/* of the connection; the process chooses it */
	uint32_t reserved;
	uint64_t qualifier;		/* of HERE */
};

struct sock_service_answer {
	uint32_t magic;
	uint16_t version, type;		/* of the request */
	uint32_t id;
	uint32_t result;		/* enum sock_service_result; the rest holds if it is OK */
	uint8_t key[SOCK_SERVICE_KEY];
	uint8_t peer[16];		/* address of the peer's IA, IPv4 as a mapped address of IPv6 */
	uint64_t qualifier;		/* of ASK: where the peer's process listens */
	char ia[SOCK_SERVICE_IA];
};

/* Whether these bytes are a request, or an answer, of this version. */
bool sock_service_is_request(const struct sock_service_request *r, size_t size);
bool sock_service_is_answer(const struct sock_service_answer *a, size_t size);

/* Private data of a connect. */
void sock_service_encode_question(uint8_t data[SOCK_SERVICE_PRIVATE], const uint8_t key[SOCK_SERVICE_KEY]);
/* Returns false for what is none. Private data may have zeros behind them: some transports pad them. */
bool sock_service_decode_question(const void *data, size_t size, uint8_t key[SOCK_SERVICE_KEY]);
/* A question may ask for the list of adapters. A service that knows of no list refuses it, or replies without one. */
void sock_service_ask_for_adapters(uint8_t question[SOCK_SERVICE_PRIVATE]);
/* Of a question that was decoded. */
bool sock_service_asks_for_adapters(const void *question);

/* Private data of a connect to the process that a reply has named, which knows the key. */
void sock_service_encode_link(uint8_t data[SOCK_SERVICE_PRIVATE], const uint8_t key[SOCK_SERVICE_KEY]);
bool sock_service_decode_link(const void *data, size_t size, uint8_t key[SOCK_SERVICE_KEY]);

enum sock_service_code { SOCK_SERVICE_REDIRECT = 1, SOCK_SERVICE_WAIT, SOCK_SERVICE_REFUSE };

/* Private data of the reject that answers it. */
void sock_service_encode_reply(uint8_t data[SOCK_SERVICE_PRIVATE], enum sock_service_code code, uint16_t qualifier);
bool sock_service_decode_reply(const void *data, size_t size, enum sock_service_code *code, uint16_t *qualifier);
/* Adds the adapters of the host that replies behind the reply: addresses as in an answer. */
void sock_service_encode_adapters(uint8_t data[SOCK_SERVICE_REPLY], const uint8_t (*adapters)[16], unsigned count);
/* Returns their number: 0 for a reply without a list. Of a reply that was decoded. */
unsigned sock_service_decode_adapters(const void *data, size_t size, uint8_t adapters[SOCK_SERVICE_ADAPTERS][16]);

/* Datagrams by UDP, of SOCK_SERVICE_REPLY bytes, so that a forged sender gets no more than was sent. LOCATE asks which
 * adapters are on the interface of the address that it is sent to. LOCATED answers with the same nonce; the adapters
 * are added as to a reply. */
enum sock_service_datagram { SOCK_SERVICE_LOCATE = 4, SOCK_SERVICE_LOCATED };
void sock_service_encode_datagram(uint8_t data[SOCK_SERVICE_REPLY], enum sock_service_datagram kind,
				  const uint8_t nonce[SOCK_SERVICE_KEY]);
bool sock_service_decode_datagram(const void *data, size_t size, enum sock_service_datagram *kind,
				  uint8_t nonce[SOCK_SERVICE_KEY]);

#endif
