/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* failures.c - helpers of the tests of failed connections (failures.h). */
#include "failures.h"
#include <arpa/inet.h>
#include <regex.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

bool matches(const char *text, const char *pattern)
{
	regex_t regex;
	bool found;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB | REG_NEWLINE))
		fail("the pattern %s is wrong", pattern);
	found = !regexec(&regex, text, 0, NULL, 0);
	regfree(&regex);
	return found;
}

void expect_lines(void (*what)(const void *), const char *first, const char *second)
{
	struct child_result result = run(what, NULL);
	int lines = !!first + !!second;

	if (result.status)
		fail("status 0x%x: %s", result.status, result.text);
	if (result.lines != lines)
		fail("%d lines, expected %d: %s", result.lines, lines, result.text);
	if (first && !matches(result.text, first))
		fail("no line \"%s\" in: %s", first, result.text);
	if (second && !matches(result.text, second))
		fail("no line \"%s\" in: %s", second, result.text);
}

unsigned port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

void expect_error(DAT_EP_HANDLE ep, DAT_EVENT_NUMBER event, DAT_DIAG_STEP step, int err, DAT_DIAG_CODE_KIND kind,
		  unsigned code)
{
	DAT_LAST_ERROR error;

	memset(&error, 0xff, sizeof error);
	OK(dat_ext_last_error(ep, &error));
	if (error.event != event || error.step != step || error.error != err ||
	    error.code_kind != kind || error.code != code)
		fail("event 0x%x step %d error %d kind %d code 0x%x, expected 0x%x %d %d %d 0x%x: %s",
		     error.event, error.step, error.error, error.code_kind, error.code, event, step,
		     err, kind, code, error.text);
	EXPECT(event == 0 || strchr(error.text, '('));
	EXPECT(event == 0 || error.remote.ss_family == AF_INET);
	EXPECT(event == 0 || error.local.ss_family == AF_INET);
}

/* --- an endpoint that connects ------------------------------------------------------------ */

DAT_EP_HANDLE new_ep(struct active *a, bool ud)
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	OK(dat_ep_create(a->ia, a->pz, a->dto, a->dto, a->conn, NULL, &ep));
	if (ud) {
		DAT_EP_PARAM param;

		OK(dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
		attr = param.ep_attr;
		attr.service_type = (DAT_SERVICE_TYPE)DAT_IB_SERVICE_TYPE_UD;
		attr.max_rdma_size = 0;
		attr.max_rdma_read_in = attr.max_rdma_read_out = 0;
		OK(dat_ep_free(ep));
		OK(dat_ep_create(a->ia, a->pz, a->dto, a->dto, a->conn, &attr, &ep));
	}
	return ep;
}

void open_active(struct active *a)
{
	memset(a, 0, sizeof *a);
	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &a->async, &a->ia));
	OK(dat_pz_create(a->ia, &a->pz));
	OK(dat_evd_create(a->ia, 64, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &a->dto));
	OK(dat_evd_create(a->ia, 64, DAT_HANDLE_NULL, DAT_EVD_CONNECTION_FLAG, &a->conn));
	a->ep = new_ep(a, false);
}

void close_active(struct active *a)
{
	OK(dat_ia_close(a->ia, DAT_CLOSE_ABRUPT_FLAG));
}

struct sockaddr_in address_of(const char *text)
{
	struct sockaddr_in address = { .sin_family = AF_INET };

	inet_pton(AF_INET, text, &address.sin_addr);
	return address;
}

void connect_gives(struct active *a, DAT_EP_HANDLE ep, const char *host, unsigned port, DAT_TIMEOUT timeout,
		   DAT_EVENT_NUMBER event)
{
	struct sockaddr_in to = address_of(host);

	OK(dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, port, timeout, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG));
	OK(await(a->conn, event, MOMENT * SLOWER, NULL));
}

void own_network(void)
{
	if ((unshare(CLONE_NEWNET) && unshare(CLONE_NEWUSER | CLONE_NEWNET)) ||
	    system("ip link set lo up"))
		skip("no network namespace to be had");
}
