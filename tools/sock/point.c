/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* point.c - see point.h. */
#include "tools/sock/point.h"
#include <dat/udat.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include "common/address.h"
#include "common/device_lost.h"
#include "tools/cli.h"
#include "tools/sock/interfaces.h"
#include "tools/sock/locate.h"
#include "tools/sock/loop.h"
#include "tools/sock/paths.h"

enum {
	IAS = 16,
	ASKS = 256,		/* questions under way, of all users */
	EVENTS = 512,		/* connects that wait for an answer; more are refused by the provider */
	CONNECT_US = 2000000,	/* a service that does not answer is none */
	REOPEN_MS = 5000,	/* an adapter that is not there is looked for so often */
	PEERS = 256,		/* of which the rate is counted */
	BURST = 64,		/* events before others have their turn */
};

struct ia {
	struct loop_watch watch;
	char name[DAT_NAME_MAX_LENGTH];
	uint16_t qualifier;
	bool open;
	bool more;		/* events were left for the next turn */
	DAT_IA_HANDLE handle;
	DAT_PZ_HANDLE pz;
	DAT_CNO_HANDLE cno;
	DAT_EVD_HANDLE async, requests, connects, transfers;
	uint8_t address[16];	/* as it was when the IA was opened last */
	uint8_t mask[16];	/* of its network */
	uint64_t reopen_at;	/* ms */
};

struct ask {
	bool used;
	struct clients_ask what;
	DAT_EP_HANDLE ep;
};

/* Of an address; another one with the same hash takes its place. */
struct peer {
	uint8_t address[16];
	uint64_t window;	/* ms; when the current second has begun */
	unsigned questions;
};

static struct ia ias[IAS];
static int ia_count;
static struct ask asks[ASKS];
static unsigned asks_used;
static struct peer peers[PEERS];
static unsigned rate = 1000;	/* questions of a host a second */

/* --- questions of peers ------------------------------------------------------------------------------------------ */

void point_set_rate(unsigned r)
{
	rate = r;
}

bool point_is_too_fast(const uint8_t address[16])
{
	unsigned hash = 0;
	struct peer *p;

	for (int i = 0; i < 16; i++)
		hash = hash * 31 + address[i];
	p = &peers[hash % PEERS];
	if (memcmp(p->address, address, 16) || loop_now_ms() - p->window >= 1000) {
		memcpy(p->address, address, 16);
		p->window = loop_now_ms();
		p->questions = 0;
	}
	return p->questions++ >= rate;
}

/* Returns the length of the reply with the list. */
static int add_adapters(uint8_t reply[SOCK_SERVICE_REPLY])
{
	uint8_t adapters[IAS][16];
	unsigned count = 0;

	for (int i = 0; i < ia_count; i++)
		if (ias[i].open)
			memcpy(adapters[count++], ias[i].address, 16);
	sock_service_encode_adapters(reply, adapters, count);
	return SOCK_SERVICE_REPLY;
}

static void answer_question(const struct ia *ia, DAT_CR_HANDLE request)
{
	uint8_t key[SOCK_SERVICE_KEY], reply[SOCK_SERVICE_REPLY], from[16];
	DAT_CR_PARAM cr;
	uint16_t qualifier = 0;
	enum sock_service_code code = SOCK_SERVICE_REFUSE;
	int size = SOCK_SERVICE_PRIVATE;

	if (dat_cr_query(request, DAT_CR_FIELD_ALL, &cr)) {
		dat_cr_reject(request, 0, NULL);
		return;
	}
	address_gid((const struct sockaddr *)cr.remote_ia_address_ptr, from);
	if (point_is_too_fast(from)) {
		dat_cr_reject(request, 0, NULL);	/* it learns nothing, not even that a key is wrong */
		return;
	}
	if (cr.private_data_size > 0 &&
	    sock_service_decode_question(cr.private_data, (size_t)cr.private_data_size, key))
		code = clients_find(key, (int)(ia - ias), &qualifier);
	sock_service_encode_reply(reply, code, qualifier);
	if (code != SOCK_SERVICE_REFUSE && sock_service_asks_for_adapters(cr.private_data))
		size = add_adapters(reply);
	dat_cr_reject(request, size, reply);
}

/* --- own questions ----------------------------------------------------------------------------------------------- */

/* locating: the adapters of the peer's host are being looked for. */
static void end_ask(struct ask *a, enum sock_service_result result, uint16_t qualifier, bool locating)
{
	struct clients_ask what = a->what;

	dat_ep_free(a->ep);
	a->used = false;
	asks_used--;
	/* The next question takes the other path. */
	if (result == SOCK_SERVICE_NO_PEER && (paths_has_other(&what.of, &what.path) || locating))
		result = SOCK_SERVICE_LATER;
	clients_answered(&what, result, qualifier);
}

bool point_ask(const struct clients_ask *what)
{
	struct ia *ia = &ias[what->path.ia];
	struct ask *a = asks;
	uint8_t question[SOCK_SERVICE_PRIVATE];
	struct sockaddr_storage sa;

	if (asks_used == ASKS || !ia->open)
		return false;
	while (a->used)
		a++;
	if (dat_ep_create(ia->handle, ia->pz, ia->transfers, ia->transfers, ia->connects, NULL, &a->ep))
		return false;
	address_of_gid(&sa, what->path.peer);
	sock_service_encode_question(question, what->of.key);
	if (paths_want_list(what->of.remote))
		sock_service_ask_for_adapters(question);
	if (dat_ep_connect(a->ep, (DAT_IA_ADDRESS_PTR)&sa, ia->qualifier, CONNECT_US, sizeof question, question,
			   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG)) {
		dat_ep_free(a->ep);
		return false;
	}
	a->used = true;
	a->what = *what;
	asks_used++;
	return true;
}

static void take_answer(const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;
	enum sock_service_code code = SOCK_SERVICE_REFUSE;
	struct ask *a = asks;
	uint16_t qualifier = 0;
	uint8_t adapters[SOCK_SERVICE_ADAPTERS][16];
	size_t size = data->private_data_size > 0 ? (size_t)data->private_data_size : 0;
	bool reached, locating;

	while (a < asks + ASKS && !(a->used && a->ep == data->ep_handle))
		a++;
	if (a == asks + ASKS)
		return;
	reached = event->event_number == DAT_CONNECTION_EVENT_PEER_REJECTED;
	paths_tried(&a->what.path, reached);
	/* The connection's address at the peer's host may not be that of an adapter. */
	locating = !reached && event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED && locate_ask(&a->what.of);
	/* A connection that is established leads to no service of this kind: the end of the endpoint resets it. */
	if (reached &&
	    sock_service_decode_reply(data->private_data, size, &code, &qualifier)) {
		if (code != SOCK_SERVICE_REFUSE) {
			paths_learn(a->what.of.remote, (const uint8_t (*)[16])adapters,
				    sock_service_decode_adapters(data->private_data, size, adapters));
		} else if (paths_want_list(a->what.of.remote)) {
			/* A service that knows of no list refuses to be asked for it. */
			paths_refuse_list(a->what.of.remote);
			code = SOCK_SERVICE_WAIT;
		}
	}
	/* The first connections to a host do not all take the path that was known first. */
	if (code == SOCK_SERVICE_REDIRECT && paths_outgrown(&a->what.of))
		code = SOCK_SERVICE_WAIT;
	end_ask(a, code == SOCK_SERVICE_REDIRECT ? SOCK_SERVICE_OK :
		   code == SOCK_SERVICE_WAIT     ? SOCK_SERVICE_LATER :
						   SOCK_SERVICE_NO_PEER, qualifier, locating);
}

/* --- adapters ---------------------------------------------------------------------------------------------------- */

/* Its questions are answered before: no peer was found on this path. */
static void close_ia(struct ia *ia)
{
	ia->open = false;
	for (struct ask *a = asks; a < asks + ASKS; a++)
		if (a->used && &ias[a->what.path.ia] == ia)
			end_ask(a, SOCK_SERVICE_NO_PEER, 0, false);
	if (ia->watch.fd >= 0)
		loop_remove(&ia->watch);
	if (ia->handle)
		dat_ia_close(ia->handle, DAT_CLOSE_ABRUPT_FLAG);
	ia->handle = DAT_HANDLE_NULL;
	ia->watch.fd = -1;
	ia->reopen_at = loop_now_ms() + REOPEN_MS;
}

static bool take_event(struct ia *ia)
{
	const DAT_EVD_HANDLE evds[] = { ia->requests, ia->connects, ia->transfers, ia->async };
	DAT_EVENT event;

	for (int i = 0; i < 4; i++) {
		if (dat_evd_dequeue(evds[i], &event))
			continue;
		if (i == 0)
			answer_question(ia, event.event_data.cr_arrival_event_data.cr_handle);
		else if (i == 1)
			take_answer(&event);
		else if (i == 3 && device_is_lost(event.event_number))
			ia->reopen_at = loop_now_ms();
		return true;
	}
	return false;
}

static void on_events(struct loop_watch *watch)
{
	struct ia *ia = (struct ia *)watch;
	DAT_EVD_HANDLE triggered;

	/* Resets the descriptor; the EVDs are read after it. */
	while (dat_cno_trigger(ia->cno, &triggered) == DAT_SUCCESS && triggered)
		continue;
	ia->more = false;
	for (int i = 0; !ia->more && take_event(ia); i++)
		ia->more = i == BURST;
	/* The descriptor tells of new events only. */
	if (ia->more)
		loop_soon();
	if (ia->reopen_at)
		close_ia(ia);
}

/* An address without an interface has a network of its own. */
static void find_network(struct ia *ia)
{
	struct ifaddrs *list = NULL;
	uint8_t gid[16];

	memset(ia->mask, 0xff, sizeof ia->mask);
	if (getifaddrs(&list))
		return;
	for (const struct ifaddrs *a = list; a; a = a->ifa_next) {
		if (!a->ifa_addr || !a->ifa_netmask)
			continue;
		address_gid(a->ifa_addr, gid);
		if (memcmp(gid, ia->address, sizeof gid))
			continue;
		address_gid(a->ifa_netmask, ia->mask);
		if (a->ifa_addr->sa_family == AF_INET)
			memset(ia->mask, 0xff, 12);	/* of a mapped address */
		break;
	}
	freeifaddrs(list);
}

static const char *open_parts(struct ia *ia)
{
	static char text[256];
	DAT_PSP_HANDLE psp;
	DAT_IA_ATTR attr;
	DAT_FD fd = -1;
	const char *call = "dat_ia_open";
	DAT_RETURN rc = dat_ia_open(ia->name, 8, &ia->async, &ia->handle);

	if (!rc)
		rc = dat_ia_query(ia->handle, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL), call = "dat_ia_query";
	if (!rc)
		rc = dat_pz_create(ia->handle, &ia->pz), call = "dat_pz_create";
	if (!rc)
		rc = dat_cno_fd_create(ia->handle, &fd, &ia->cno), call = "dat_cno_fd_create";
	if (!rc)
		rc = dat_evd_modify_cno(ia->async, ia->cno), call = "dat_evd_modify_cno";
	if (!rc)
		rc = dat_evd_create(ia->handle, EVENTS, ia->cno, DAT_EVD_CR_FLAG, &ia->requests),
		call = "dat_evd_create";
	if (!rc)
		rc = dat_evd_create(ia->handle, EVENTS, ia->cno, DAT_EVD_CONNECTION_FLAG, &ia->connects);
	if (!rc)
		rc = dat_evd_create(ia->handle, EVENTS, ia->cno, DAT_EVD_DTO_FLAG, &ia->transfers);
	if (!rc)
		rc = dat_psp_create(ia->handle, ia->qualifier, ia->requests, DAT_PSP_CONSUMER_FLAG, &psp),
		call = "dat_psp_create";
	ia->watch.fd = -1;
	if (rc) {
		const char *major = "?", *minor = "";

		dat_strerror(rc, &major, &minor);
		snprintf(text, sizeof text, "%s: %s %s", call, major, minor);
		return text;
	}
	address_gid((const struct sockaddr *)attr.ia_address_ptr, ia->address);
	find_network(ia);
	ia->watch = (struct loop_watch){ fd, on_events };
	return loop_add(&ia->watch) ? NULL : "epoll";
}

static bool open_ia(struct ia *ia, bool quiet)
{
	const char *wrong = open_parts(ia);

	ia->open = !wrong;
	ia->reopen_at = 0;
	if (!wrong)
		return true;
	if (!quiet)
		cli_warn("%s: %s; it is tried again every %d s", ia->name, wrong, REOPEN_MS / 1000);
	close_ia(ia);
	return false;
}

bool point_open(const char *name, uint16_t qualifier)
{
	struct ia *ia = &ias[ia_count];

	if (ia_count == IAS || strlen(name) >= sizeof ia->name)
		fail("%s: at most %d IAs with names of at most %zu characters expected", name, IAS,
		     sizeof ia->name - 1);
	ia_count++;
	strcpy(ia->name, name);
	ia->qualifier = qualifier;
	return open_ia(ia, false);
}

int point_for(const uint8_t address[16])
{
	for (int i = 0; i < ia_count; i++)
		if (ias[i].open && !memcmp(ias[i].address, address, 16))
			return i;
	return -1;
}

int point_beside(const uint8_t address[16])
{
	int ia = point_for(address);

	for (int i = 0; ia < 0 && i < ia_count; i++)
		if (ias[i].open && interfaces_join(ias[i].address, address))
			ia = i;
	return ia;
}

unsigned point_list_beside(const uint8_t address[16], uint8_t adapters[SOCK_SERVICE_ADAPTERS][16])
{
	unsigned count = 0;

	for (int i = 0; i < ia_count && count < SOCK_SERVICE_ADAPTERS; i++)
		if (ias[i].open && interfaces_join(ias[i].address, address))
			memcpy(adapters[count++], ias[i].address, 16);
	return count;
}

int point_instead_of(const uint8_t address[16])
{
	int open = -1;
	bool known = false;

	for (int i = 0; i < ia_count; i++) {
		known |= !memcmp(ias[i].address, address, 16) || interfaces_join(ias[i].address, address);
		if (ias[i].open)
			open = i;
	}
	return known ? open : -1;
}

bool point_is_near(int ia, const uint8_t address[16])
{
	bool other = memcmp(ias[ia].address, address, 16);

	for (int i = 0; i < 16; i++)
		if ((ias[ia].address[i] ^ address[i]) & ias[ia].mask[i])
			return false;
	return other && ias[ia].open;
}

int point_count(void)
{
	return ia_count;
}

const char *point_name(int ia)
{
	return ias[ia].name;
}

bool point_tick(void)
{
	bool waits = false;

	for (int i = 0; i < ia_count; i++) {
		if (ias[i].open && ias[i].more)
			on_events(&ias[i].watch);
		if (!ias[i].open && loop_now_ms() >= ias[i].reopen_at)
			open_ia(&ias[i], true);
		waits |= !ias[i].open;
	}
	return waits;
}

void point_close(void)
{
	for (int i = 0; i < ia_count; i++)
		if (ias[i].handle)
			close_ia(&ias[i]);
}
