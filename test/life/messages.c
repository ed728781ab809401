/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* messages.c - what the libraries print: nothing on success, and one line with what was found and what was
 * expected for each mistake in dat.conf or the environment. Trace records are in trace.c. */
#include "life.h"
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <dat/dat_ib_extensions.h>

static void success_is_silent(void)
{
	whole_session();
	whole_session();
}

/* --- dat.conf's ia_params ------------------------------------------------------------------ */

static void open_it(const void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = dat_ia_open((DAT_NAME_PTR)"hostile", 8, &async, &ia);

	(void)arg;
	if (ret == DAT_SUCCESS) {
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		exit(1);
	}
	switch (DAT_GET_TYPE(ret)) {
	case DAT_PROVIDER_NOT_FOUND: case DAT_INVALID_PARAMETER: case DAT_INVALID_ADDRESS:
	case DAT_INSUFFICIENT_RESOURCES:
		return;
	}
	fail("open gives %s", life_return(ret));
}

static void hostile(const char *library, const char *params, const char *named)
{
	struct child_result result;

	life_entry("hostile", library, params);
	result = run(open_it, NULL);
	if (result.status == 1 << 8)
		fail("%s: \"%.60s\" opens", library, params);
	if (result.status)
		fail("%s: \"%.60s\": status 0x%x: %s", library, params, result.status, result.text);
	if (result.lines != 1)
		fail("%s: \"%.60s\": expected one line, found %d: %s", library, params, result.lines,
		     result.text);
	if (!strstr(result.text, named))
		fail("%s: \"%.60s\": the line does not name it: %s", library, params, result.text);
	if (!strstr(result.text, "expected") && !strstr(result.text, "no such") &&
	    !strstr(result.text, "has no RDMA device"))
		fail("%s: \"%.60s\": the line does not say what was expected: %s", library, params,
		     result.text);
	for (const char *p = result.text; p[1]; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			fail("%s: \"%.60s\": control characters in the message", library, params);
}

static void hostile_params(const char *library)
{
	static char *longs[] = { NULL, NULL };

	for (int i = 0; i < 2; i++) {
		longs[i] = malloc(100000);
		memset(longs[i], 'a' + i, 99999);
		longs[i][i ? 99999 : 300] = '\0';
	}
	hostile(library, "nosuchdev 0", "nosuchdev");
	hostile(library, "nosuchdev", "nosuchdev");
	hostile(library, "lo -1", "lo -1");
	hostile(library, "lo 99999", "lo 99999");
	hostile(library, "lo zero", "lo zero");
	hostile(library, "lo 0 more", "lo 0 more");
	hostile(library, "\x01\x02\x1b[31m\x7f\xff\xfe 0", "[31m");
	hostile(library, "\"lo\" 0", "lo");
	hostile(library, "lo\\ 0", "lo");
	hostile(library, "%s%n%x 0", "%n");
	hostile(library, "../../etc/passwd 0", "etc/passwd");
	hostile(library, "203.0.113.9 0", "203.0.113.9");
	hostile(library, longs[0], "aaaaaaaa");
	hostile(library, longs[1], "bbbbbbbb");
	free(longs[0]);
	free(longs[1]);
}

static void hostile_params_of_the_software_device(void)
{
	hostile_params("libdaplsoft.so.2");
}

static void hostile_params_of_rdma_devices(void)
{
	if (!life_library("libdaplofa.so.2"))
		return;		/* not built */
	hostile_params("libdaplofa.so.2");
	hostile("libdaplofa.so.2", "", "");
}

/* --- the environment ----------------------------------------------------------------------------- */

static void bad_value(const char *variable, const char *value)
{
	char quoted[80];
	struct child_result result;

	setenv(variable, value, 1);
	result = run(in_session, NULL);
	unsetenv(variable);
	snprintf(quoted, sizeof quoted, "%s is \"%s\"", variable, value);
	if (result.status)
		fail("%s: status 0x%x: %s", quoted, result.status, result.text);
	if (result.lines != 1 || !strstr(result.text, quoted) || !strstr(result.text, "expected a number from"))
		fail("%s: expected one line that says so, found: %s", quoted, result.text);
}

static void bad_values_of_all_variables(void)
{
	static const char *const variables[] = {
		"DAPL_MAX_INLINE", "DAPL_WR_MAX", "DAPL_IB_MTU", "DAPL_IB_PKEY", "DAPL_IB_SL",
		"DAPL_GLOBAL_ROUTING", "DAPL_HOP_LIMIT", "DAPL_TCLASS", "DAPL_ACK_RETRY",
		"DAPL_ACK_TIMER", "DAPL_RNR_RETRY", "DAPL_RNR_TIMER", "DAPL_CM_ARP_TIMEOUT_MS",
		"DAPL_CM_ARP_RETRY_COUNT", "DAPL_CM_ROUTE_TIMEOUT_MS", "DAPL_CM_ROUTE_RETRY_COUNT",
		"DAPL_CM_TOS", "DAPL_DSCP_HIGH_THROUGHPUT", "DAPL_DSCP_LOW_LATENCY", "DAPL_DSCP_ECONOMY",
		"DAPL_DSCP_PREMIUM", "DAPL_MAX_CM_RESPONSE_TIME", "DAPL_MAX_CM_RETRIES", "DAPL_SOFT_CRC",
		"DAPL_SOFT_SHM", "DAPL_SOFT_DIRECT", "DAPL_SOFT_MAP",
		"DAPL_SOFT_DM", "DAPL_SOFT_GUARD",
		"DAPL_TRACE_LEVEL", "DAPL_DBG_TYPE", "DAPL_DBG_LEVEL", "DAPL_DBG_DEST",
		"DAT_TRACE_LEVEL", "DAT_DBG_TYPE", "DAT_DBG_DEST",
	};
	static const char *const values[] = {
		"", "many", "-1", " 1", "1x", "0x", "+1", "4294967296", "99999999999999999999999",
	};

	for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
		for (size_t j = 0; j < sizeof values / sizeof *values; j++)
			bad_value(variables[i], values[j]);
}

static void depth_is(const void *depth)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_ATTR attr;
	DAT_IA_HANDLE ia;

	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	printf("%d\n", attr.max_dto_per_ep);
	OK(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	if (*(const int *)depth && attr.max_dto_per_ep != *(const int *)depth)
		fail("max_dto_per_ep is %d, expected %d", attr.max_dto_per_ep, *(const int *)depth);
}

static void a_bad_value_leaves_the_default(void)
{
	int depth = 0;
	struct child_result result = run(depth_is, &depth);

	EXPECT(!result.status);
	depth = atoi(result.text);
	setenv("DAPL_WR_MAX", "0", 1);
	EXPECT(!run(depth_is, &depth).status);
	setenv("DAPL_WR_MAX", "17", 1);
	depth = 17;
	EXPECT(!run(depth_is, &depth).status);
	setenv("DAPL_WR_MAX", "0x13", 1);
	depth = 19;
	EXPECT(!run(depth_is, &depth).status);
}

/* --- messages by kind and destination ----------------------------------------------------------- */

static void use_without(const void *fd)
{
	FILE *null = freopen("/dev/null", "w", *(const int *)fd == 1 ? stdout : stderr);

	(void)null;
	whole_session();
}

static void messages_go_where_they_are_sent(void)
{
	static const struct {
		const char *dest;
		int out, err;
	} rows[] = { { NULL, 0, 1 }, { "1", 1, 0 }, { "2", 0, 0 }, { "3", 1, 0 }, { "0", 0, 1 } };
	int one = 1, two = 2;

	setenv("DAPL_WR_MAX", "bad", 1);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct child_result result;

		if (rows[i].dest)
			setenv("DAPL_DBG_DEST", rows[i].dest, 1);
		result = run(use_without, &two);
		if (result.status || result.lines != rows[i].out)
			fail("DAPL_DBG_DEST %s: standard output has: %s", rows[i].dest, result.text);
		result = run(use_without, &one);
		if (result.status || result.lines != rows[i].err)
			fail("DAPL_DBG_DEST %s: standard error has: %s", rows[i].dest, result.text);
	}
}

static void every_kind_of_message_has_its_prefix(void)
{
	struct child_result result;

	setenv("DAPL_DBG_TYPE", "0xffffffff", 1);
	setenv("DAT_DBG_TYPE", "0xffffffff", 1);
	result = run(in_session, NULL);
	EXPECT(!result.status);
	for (char *line = strtok(result.text, "\n"); line; line = strtok(NULL, "\n"))
		if (strncmp(line, "dapl: ", 6) && strncmp(line, "dat: ", 5))
			fail("a line without a prefix: %s", line);
}

/* --- counters ------------------------------------------------------------------------------------ */

/* A single counter is always printed. Of all counters those that are not 0 are printed, or one line if all
 * are 0. */
static void print_counters(const void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, dto;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;

	OK(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia));
	OK(dat_evd_create(ia, 8, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &dto));
	OK(dat_ep_create(ia, DAT_HANDLE_NULL, dto, dto, DAT_HANDLE_NULL, NULL, &ep));
	OK(dat_ib_print_counters(ep, *(const int *)arg, 0));
	OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void counters_of_zero_are_printed(void)
{
	static const struct {
		int counter;
		const char *words;
	} rows[] = {
		{ DCNT_EP_POST_SEND, " POST_SEND 0" },
		{ DCNT_EP_ALL_COUNTERS, ": all 24 counters are 0" },
	};

	for (int i = 0; i < 2; i++) {
		struct child_result result = run(print_counters, &rows[i].counter);

		EXPECT(!result.status);
		if (result.lines != 1 || !strstr(result.text, rows[i].words))
			fail("expected one line with \"%s\", found %d: %s", rows[i].words, result.lines,
			     result.text);
	}
}

/* --- the journal ------------------------------------------------------------------------------ */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		skip("no user namespaces here");
	close(fd);
}

/* Gives this process a /run of its own, in which it receives what is sent to the journal. */
static int become_journal(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX,
		.sun_path = "/run/systemd/journal/socket" };
	char map[32];
	int fd, on = 1;

	snprintf(map, sizeof map, "0 %u 1", (unsigned)getuid());
	if (unshare(CLONE_NEWNS)) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNS))
			skip("no mount namespaces here");
		write_file("/proc/self/uid_map", map);
	}
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("run", "/run", "tmpfs", 0, NULL))
		skip("no mounts in namespaces here");
	mkdir("/run/systemd", 0755);
	mkdir("/run/systemd/journal", 0755);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
	EXPECT(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	return fd;
}

/* Receives the next entry, with a line for each field. Returns the process that sent it. */
static pid_t next_entry(int journal, char *text, size_t size)
{
	struct iovec iov = { text + 1, size - 2 };
	struct ucred sender = { .pid = -1 };
	char control[256];
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof control };
	ssize_t n = recvmsg(journal, &message, MSG_DONTWAIT);

	if (n < 0)
		fail("the journal got nothing");
	text[0] = '\n';
	text[n + 1] = '\0';
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&sender, CMSG_DATA(c), sizeof sender);
	return sender.pid;
}

static void has_field(const char *entry, const char *field)
{
	char line[300];

	snprintf(line, sizeof line, "\n%s\n", field);
	if (!strstr(entry, line))
		fail("no %s in the entry:%s", field, entry);
}

static void open_unknown_interface(const void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)arg;
	printf("%d", (int)getpid());
	fflush(stdout);
	if (dat_ia_open((DAT_NAME_PTR)"journal", 8, &async, &ia) == DAT_SUCCESS)
		exit(1);
}

/* The registry's message of a wrong line, then the provider's of an interface. */
static void both_libraries_write_to_the_journal(void)
{
	int journal = become_journal();
	char entry[8192];
	struct child_result result;
	char conf[600];
	pid_t pid;

	snprintf(conf, sizeof conf, "short line\njournal u2.0 nonthreadsafe default %s dapl.2.0 "
		 "\"nosuchdev 0\" \"\"\n", life_library("libdaplsoft.so.2"));
	life_conf(conf);
	setenv("DAT_DBG_DEST", "4", 1);
	setenv("DAPL_DBG_DEST", "4", 1);
	result = run(open_unknown_interface, NULL);
	pid = atoi(result.text);
	if (result.status || result.lines)
		fail("status 0x%x: %s", result.status, result.text);
	EXPECT(next_entry(journal, entry, sizeof entry) == pid);
	has_field(entry, "MESSAGE_ID=708a2b90a3bc4f6ebf29da7574cbbdff");
	has_field(entry, "PRIORITY=3");
	has_field(entry, "DAPL_CLASS=5C8");
	EXPECT(strstr(entry, "\nMESSAGE=dat: ") && strstr(entry, ":1: \"short\": 2 fields"));
	EXPECT(next_entry(journal, entry, sizeof entry) == pid);
	has_field(entry, "MESSAGE_ID=634a0ea0d5814483a88c726959cb488c");
	has_field(entry, "DAPL_IA=journal");
	has_field(entry, "DAPL_CLASS=5C4");
	EXPECT(strstr(entry, "\nMESSAGE=dapl: ") && strstr(entry, "nosuchdev"));
	EXPECT(recv(journal, entry, sizeof entry, MSG_DONTWAIT) < 0);
}

static const struct life_case cases[] = {
	CASE(success_is_silent),
	CASE(hostile_params_of_the_software_device),
	CASE(hostile_params_of_rdma_devices),
	CASE(bad_values_of_all_variables),
	CASE(a_bad_value_leaves_the_default),
	CASE(messages_go_where_they_are_sent),
	CASE(every_kind_of_message_has_its_prefix),
	CASE(counters_of_zero_are_printed),
	CASE(both_libraries_write_to_the_journal),
};

int main(int argc, char **argv)
{
	return life_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
