/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The journal as a destination: the test has a socket of its own, and parses what is sent to
 * it as the journal does. */
#include "common/journal.h"
#include "common/log.h"
#include "common/trace.h"
#include "test/unit/unit.h"
#include <sys/resource.h>
#include <sys/un.h>

static char dir[] = "/tmp/dapl-journal-XXXXXX", path[64], error_text[4096];
static int journal = -1;

/* --- the journal ---------------------------------------------------------------------- */

static struct entry {
	char bytes[64 << 20];	/* more than any usual net.core.wmem_default */
	size_t length;
	bool from_file;
	struct ucred sender;
} entry;

static void read_file(int file)
{
	int seals = fcntl(file, F_GET_SEALS);

	assert_int_equal(seals & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	entry.length = pread(file, entry.bytes, sizeof(entry.bytes) - 1, 0);
	entry.from_file = true;
	close(file);
}

/* Receives the next entry. Returns false if there is none. */
static bool receive(void)
{
	struct iovec iov = { entry.bytes, sizeof(entry.bytes) - 1 };
	char control[256];
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
		.msg_controllen = sizeof(control) };
	ssize_t n = recvmsg(journal, &message, MSG_DONTWAIT);
	int file = -1;

	if (n < 0)
		return false;
	entry.length = n;
	entry.from_file = false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
		if (c->cmsg_type == SCM_RIGHTS)
			memcpy(&file, CMSG_DATA(c), sizeof(file));
		else if (c->cmsg_type == SCM_CREDENTIALS)
			memcpy(&entry.sender, CMSG_DATA(c), sizeof(entry.sender));
	if (file >= 0)
		read_file(file);
	return true;
}

/* Returns the value of a field, with a NUL behind it. Returns NULL if the entry has no such field, or two.
 * */
static char *field(const char *name)
{
	static char *value;
	const char *at = entry.bytes, *end = at + entry.length;
	int found = 0;

	free(value);
	value = NULL;
	while (at < end) {
		size_t length = strcspn(at, "=\n");
		const char *from = at + length + 1;
		uint64_t size = 0;

		if (at[length] == '=') {
			size = strcspn(from, "\n");
		} else {
			for (int i = 8; i-- > 0; )
				size = size << 8 | (unsigned char)from[i];
			from += 8;
		}
		assert_true(from + size < end);
		assert_int_equal(from[size], '\n');
		if (!strncmp(at, name, length) && !name[length]) {
			free(value);
			value = strndup(from, size);
			found++;
		}
		at = from + size + 1;
	}
	return found == 1 ? value : NULL;
}

static void open_journal(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int on = 1;

	strcpy(address.sun_path, path);
	journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	setsockopt(journal, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	assert_int_equal(bind(journal, (struct sockaddr *)&address, sizeof(address)), 0);
}

static void close_journal(void)
{
	close(journal);
	unlink(path);
}

static void use(const char *dest)
{
	setenv("T_DEST", dest, 1);
	log_init("dapl", NULL, NULL, "T_DEST", 3);
}

/* Returns what body() writes to standard error. */
static const char *errors_of(void (*body)(void))
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO);
	ssize_t n;

	dup2(fileno(file), STDERR_FILENO);
	body();
	n = pread(fileno(file), error_text, sizeof(error_text) - 1, 0);
	error_text[n > 0 ? n : 0] = '\0';
	dup2(saved, STDERR_FILENO);
	close(saved);
	fclose(file);
	return error_text;
}

UNIT_FIXTURE(set_up) { open_journal(); }

UNIT_FIXTURE(tear_down)
{
	journal_close();
	close_journal();
}

/* --- tests ------------------------------------------------------------------------------ */

static int object;

static void report(void)
{
	log_report(REPORT_REFUSED, LOG_FIELDS(.ia = "ofa-v2-eth1", .kind = "ep", .object = &object,
		   .peer = "192.0.2.7 port 45290", .err = ECONNREFUSED,
		   .result = "DAT_CONNECTION_EVENT_NON_PEER_REJECTED"), "connect: refused");
}

UNIT_CASE(fields_arrive)
{
	char text[64];

	use("4");
	assert_string_equal(errors_of(report), "");
	assert_true(receive());
	assert_string_equal(field("MESSAGE"), "dapl: connect: refused");
	assert_string_equal(field("PRIORITY"), "4");
	assert_string_equal(field("MESSAGE_ID"), "9ef3cfafcd534ed4aac4b4a22062b7d8");
	assert_string_equal(field("SYSLOG_IDENTIFIER"), program_invocation_short_name);
	assert_string_equal(field("DAPL_IA"), "ofa-v2-eth1");
	assert_string_equal(field("DAPL_CLASS"), "5C4");
	snprintf(text, sizeof(text), "ep %p", (void *)&object);
	assert_string_equal(field("DAPL_OBJECT"), text);
	assert_string_equal(field("DAPL_PEER"), "192.0.2.7 port 45290");
	snprintf(text, sizeof(text), "%d", ECONNREFUSED);
	assert_string_equal(field("DAPL_ERRNO"), text);
	assert_string_equal(field("DAPL_RETURN"), "DAT_CONNECTION_EVENT_NON_PEER_REJECTED");
	assert_int_equal(entry.sender.pid, getpid());
	assert_int_equal(entry.sender.uid, getuid());
	assert_false(receive());
}

static void without_fields(void) { log_line(2, "a warning"); }

UNIT_CASE(messages_of_an_open_name_the_adapter)
{
	use("4");
	log_set_ia("ib0");
	assert_string_equal(errors_of(without_fields), "");
	assert_string_equal(errors_of(report), "");
	log_set_ia(NULL);
	assert_string_equal(errors_of(without_fields), "");
	assert_true(receive());
	assert_string_equal(field("DAPL_IA"), "ib0");
	assert_true(receive());
	assert_string_equal(field("DAPL_IA"), "ofa-v2-eth1");	/* its own */
	assert_true(receive());
	assert_null(field("DAPL_IA"));
}

static void six(void)
{
	use("6");
	report();
}

UNIT_CASE(unknown_numbers_give_a_line_and_the_default)
{
	assert_string_equal(errors_of(six), "dapl: T_DEST is \"6\"; expected a number from 0 to 5; "
			    "ignored\ndapl: connect: refused\n");
	assert_false(receive());
}

/* Returns a message that no datagram of a socket with default buffers carries. The caller frees it. */
static char *beyond_a_datagram(size_t *length)
{
	int size = 0, fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char *text;

	assert_true(fd >= 0);
	assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, &(socklen_t){ sizeof(size) }), 0);
	close(fd);
	*length = (size_t)size + 1;
	text = malloc(*length + 1);
	assert_non_null(text);
	return text;
}

UNIT_CASE(long_messages_arrive_whole)
{
	size_t longest;
	char *text = beyond_a_datagram(&longest);
	const size_t lengths[] = { 1000, 1017, 1018, 5000, 100000, longest };

	use("4");
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		memset(text, 'x', lengths[i]);
		text[lengths[i]] = '\0';
		text[lengths[i] / 2] = '\n';
		log_line(1, "%s", text);
		assert_true(receive());
		assert_string_equal(field("MESSAGE") + strlen("dapl: "), text);
	}
	assert_true(entry.from_file);	/* the last message is longer than a datagram may be */
	free(text);
}

/* RLIMIT_FSIZE counts for memory files, too. */
UNIT_CASE(long_message_beyond_the_limit_of_files_is_an_error)
{
	static char text[250001];
	const struct journal_field field = { "MESSAGE", memset(text, 'x', sizeof(text) - 1) };
	struct rlimit before, limit;

	getrlimit(RLIMIT_FSIZE, &before);
	limit = (struct rlimit){ sizeof(text) / 2, before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(journal_send(&field, 1), EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_false(receive());
}

static void twice(void)
{
	report();
	report();
}

UNIT_CASE(without_a_journal_messages_go_to_standard_error)
{
	char expected[300];

	use("4");
	close_journal();
	snprintf(expected, sizeof(expected), "dapl: cannot reach the journal at %s: No such file or "
		 "directory; its messages go to standard error\ndapl: connect: refused\n"
		 "dapl: connect: refused\n", path);
	assert_string_equal(errors_of(twice), expected);
	use("5");
	assert_string_equal(errors_of(twice), expected);
	open_journal();		/* the socket connects again to a new journal */
	use("4");
	assert_string_equal(errors_of(report), "");
	assert_true(receive());
}

static void flood(void)
{
	for (int i = 0; i < 10000; i++)
		log_line(1, "number %d", i);
}

/* The journal does not read: the queue takes a few datagrams, and the rest must not block the
 * caller. */
UNIT_CASE(full_queue_does_not_block)
{
	int taken = 0;

	use("4");
	assert_non_null(strstr(errors_of(flood), "Resource temporarily unavailable"));
	while (receive())
		taken++;
	assert_true(taken > 0);
}

/* A program closes all descriptors, and its next file gets the socket's number. */
UNIT_CASE(file_that_reuses_the_descriptor_is_not_written)
{
	int pair[2], probe, fd;
	char byte;

	use("4");
	probe = dup(journal);	/* the number that the socket will have */
	close(probe);
	report();
	assert_true(receive());
	close(probe);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(pair[0], probe);
	report();
	assert_true(receive());
	assert_int_equal(recv(pair[1], &byte, 1, MSG_DONTWAIT), -1);
	fd = dup(pair[0]);
	assert_true(fd > pair[1]);
	journal_close();
	assert_int_equal(fcntl(pair[0], F_GETFD), 0);	/* the test's to close, not the log's */
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

UNIT_CASE(messages_are_written_without_free_descriptors)
{
	struct rlimit limit, none;

	use("4");
	report();
	assert_true(receive());
	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 0;
	setrlimit(RLIMIT_NOFILE, &none);
	report();
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_true(receive());
}

UNIT_FIXTURE(make_directory)
{
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/socket", dir);
	journal_path = path;
}

UNIT_FIXTURE(remove_directory) { rmdir(dir); }

UNIT_MAIN(make_directory, remove_directory)
