/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* journal.c - the journal's native protocol (journal.h).
 *
 * The socket stays open, so that an entry can be sent when there are no descriptors left. A program may
 * close descriptors that it did not open, and have another file under the same number: the inode shows
 * whether it is still the socket. */
#include "common/journal.h"
#include "common/file_size.h"
#include "common/lock.h"
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SMALL_ENTRY 4096	/* bytes; larger ones are allocated */

const char *journal_path = "/run/systemd/journal/socket";

static struct dapl_mutex lock = DAPL_MUTEX_INIT(RANK_JOURNAL);	/* guards both */
static int kept = -1;
static ino_t kept_inode;

/* --- the entry -------------------------------------------------------------------- */

/* "NAME=value\n"; a value with newlines as "NAME\n", its length in 64 bits, little-endian, the
 * value, "\n". Returns the end, and only counts when `out` is NULL. */
static size_t put_field(char *out, const struct journal_field *field)
{
	size_t name = strlen(field->name), value = strlen(field->value);
	bool lines = strchr(field->value, '\n') != NULL;
	size_t head = name + 1 + (lines ? 8 : 0);

	if (!out)
		return head + value + 1;
	memcpy(out, field->name, name);
	out[name] = lines ? '\n' : '=';
	for (int i = 0; lines && i < 8; i++)
		out[name + 1 + i] = (char)((uint64_t)value >> (8 * i));
	memcpy(out + head, field->value, value);
	out[head + value] = '\n';
	return head + value + 1;
}

static size_t put_fields(char *out, const struct journal_field *fields, size_t count)
{
	size_t length = 0;

	for (size_t i = 0; i < count; i++)
		if (fields[i].value)
			length += put_field(out ? out + length : NULL, &fields[i]);
	return length;
}

/* --- the socket ------------------------------------------------------------------- */

static bool is_kept(void)
{
	struct stat st;

	return kept >= 0 && !fstat(kept, &st) && S_ISSOCK(st.st_mode) && st.st_ino == kept_inode;
}

/* Returns the socket, or -1 (errno). Called with the lock held. */
static int get_socket(void)
{
	struct stat st;

	if (is_kept())
		return kept;
	kept = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (kept >= 0 && !fstat(kept, &st))
		kept_inode = st.st_ino;
	return kept;
}

void journal_close(void)
{
	dapl_mutex_lock(&lock);
	if (is_kept())
		close(kept);
	kept = -1;
	dapl_mutex_unlock(&lock);
}

/* Sends a datagram of the entry, or of a descriptor without data. */
static int send_datagram(int fd, const char *entry, size_t length, int file)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct iovec iov = { (void *)entry, length };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct msghdr message = { .msg_name = &to, .msg_namelen = sizeof(to),
		.msg_iov = &iov, .msg_iovlen = entry ? 1 : 0 };
	ssize_t n;

	if (strlen(journal_path) >= sizeof(to.sun_path))
		return ENAMETOOLONG;
	strcpy(to.sun_path, journal_path);
	if (file >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &file, sizeof(file));
	}
	do
		n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? errno : 0;
}

static int write_all(int file, const char *entry, size_t length)
{
	while (length) {
		ssize_t n = file_write(file, entry, length);

		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0) {
			entry += n;
			length -= n;
		}
	}
	return 0;
}

/* The journal takes a memory file only if it is sealed: no process changes it while it is read. */
static int send_file(int fd, const char *entry, size_t length)
{
	int file = memfd_create("dapl-journal", MFD_CLOEXEC | MFD_ALLOW_SEALING), err;

	if (file < 0)
		return errno;
	err = write_all(file, entry, length);
	if (!err && fcntl(file, F_ADD_SEALS,
			  F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		err = errno;
	if (!err)
		err = send_datagram(fd, NULL, 0, file);
	close(file);
	return err;
}

static int send_entry(const char *entry, size_t length)
{
	int fd, err;

	dapl_mutex_lock(&lock);
	fd = get_socket();
	err = fd < 0 ? errno : send_datagram(fd, entry, length, -1);
	if (err == EMSGSIZE || err == ENOBUFS)
		err = send_file(fd, entry, length);
	dapl_mutex_unlock(&lock);
	return err;
}

int journal_send(const struct journal_field *fields, size_t count)
{
	size_t length = put_fields(NULL, fields, count);
	char small[SMALL_ENTRY], *entry = small;
	int err;

	if (length > sizeof(small))
		entry = malloc(length);
	if (!entry)
		return ENOMEM;
	put_fields(entry, fields, count);
	err = send_entry(entry, length);
	if (entry != small)
		free(entry);
	return err;
}
