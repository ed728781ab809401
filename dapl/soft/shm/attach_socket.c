/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach_socket.c - Unix sockets by which peers fetch shared memory (attach_socket.h).
 *
 * A runtime directory counts only if it is a directory of the effective user with mode 0700. It is
 * opened without following a symbolic link, and the sockets in it are addressed through its
 * descriptor: so what was checked is what is used, and long paths fit. A program with elevated
 * privileges (set-uid) uses no directory at all.
 *
 * A file is bound under another name and renamed when it listens. So a file with the final name
 * that refuses connections is stale: its process was killed. Each process that starts to listen
 * removes such files. The file of a living process is tried once a minute at most, however many processes
 * start: a try updates the time of the file. */
#include "dapl/soft/shm/attach_socket.h"
#include "common/address.h"
#include "dapl/soft/tunables.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "dapl-soft-"
#define UNFINISHED ".new"	/* suffix until it listens */

enum {
	DIRECTORIES = 2,
	NAME_SIZE = sizeof PREFIX + 16 + sizeof UNFINISHED,
};

/* --- the runtime directory ------------------------------------------------------------------- */

/* The candidates, in the order of preference. NULL: there is none of that number. */
static const char *directory_path(int i, char buffer[32])
{
	if (!i)
		return secure_getenv("XDG_RUNTIME_DIR");
	snprintf(buffer, 32, "/run/user/%u", (unsigned)geteuid());
	return buffer;
}

/* A descriptor of the candidate, or -1 if it is not this user's alone. */
static int directory_open(int i)
{
	char buffer[32];
	const char *path = getauxval(AT_SECURE) ? NULL : directory_path(i, buffer);
	struct stat st;
	int fd;

	if (!path || *path != '/')
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid() && !(st.st_mode & 077))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* --- addresses ------------------------------------------------------------------------------- */

static socklen_t address_abstract(struct sockaddr_un *address, uint64_t name)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	return offsetof(struct sockaddr_un, sun_path) + 1 +
	       snprintf(address->sun_path + 1, sizeof address->sun_path - 1, PREFIX "%016llx",
			(unsigned long long)name);
}

static socklen_t address_file(struct sockaddr_un *address, int directory, const char *file)
{
	memset(address, 0, sizeof *address);
	address->sun_family = AF_UNIX;
	snprintf(address->sun_path, sizeof address->sun_path, "/proc/self/fd/%d/%s", directory, file);
	return sizeof *address;
}

static void file_name(char file[NAME_SIZE], uint64_t name, const char *suffix)
{
	snprintf(file, NAME_SIZE, PREFIX "%016llx%s", (unsigned long long)name, suffix);
}

static int socket_new(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

/* Closes fd, unless it is negative, and keeps errno. Returns -1. */
static int close_keeping_errno(int fd)
{
	int err = errno;

	if (fd >= 0)
		close(fd);
	errno = err;
	return -1;
}

bool attach_socket_is_of_this_user(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof peer;

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) && peer.uid == geteuid();
}

static int connect_to(const struct sockaddr_un *address, socklen_t length)
{
	int fd = socket_new();

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, length))
		return close_keeping_errno(fd);
	if (attach_socket_is_of_this_user(fd))
		return fd;
	errno = EPERM;
	return close_keeping_errno(fd);
}

static int connect_file(int directory, const char *file)
{
	struct sockaddr_un address;

	return connect_to(&address, address_file(&address, directory, file));
}

/* --- stale files ------------------------------------------------------------------------------ */

static void remove_if_stale(int directory, const char *file, time_t now)
{
	struct stat st;
	int fd;

	if (fstatat(directory, file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISSOCK(st.st_mode) ||
	    (st.st_mtime <= now && now - st.st_mtime < ATTACH_FILE_FRESH_S))
		return;
	fd = strstr(file, UNFINISHED) ? -1 : connect_file(directory, file);
	if (fd < 0 && (errno == ECONNREFUSED || strstr(file, UNFINISHED)))
		unlinkat(directory, file, 0);
	else
		utimensat(directory, file, NULL, AT_SYMLINK_NOFOLLOW);
	if (fd >= 0)
		close(fd);
}

static void remove_stale_files(int directory)
{
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *files = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;

	if (!files) {
		if (copy >= 0)
			close(copy);
		return;
	}
	while ((entry = readdir(files)))
		if (!strncmp(entry->d_name, PREFIX, strlen(PREFIX)) &&
		    strlen(entry->d_name) < NAME_SIZE)
			remove_if_stale(directory, entry->d_name, time(NULL));
	closedir(files);
}

/* --- listening -------------------------------------------------------------------------------- */

static int listen_abstract(uint64_t name)
{
	struct sockaddr_un address;
	socklen_t length = address_abstract(&address, name);
	int fd = socket_new();

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, length) || listen(fd, ATTACH_BACKLOG))
		return close_keeping_errno(fd);
	return fd;
}

static int listen_file(int directory, uint64_t name)
{
	char final[NAME_SIZE], first[NAME_SIZE];
	struct sockaddr_un address;
	int fd = socket_new();

	file_name(final, name, "");
	file_name(first, name, UNFINISHED);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, address_file(&address, directory, first)))
		return close_keeping_errno(fd);
	if (!listen(fd, ATTACH_BACKLOG) && !renameat(directory, first, directory, final))
		return fd;
	unlinkat(directory, first, 0);
	return close_keeping_errno(fd);
}

int attach_socket_listen(uint64_t name, bool file)
{
	int directory, fd = -1;

	if (!file)
		return listen_abstract(name);
	errno = ENOENT;
	for (int i = 0; i < DIRECTORIES && fd < 0; i++) {
		directory = directory_open(i);
		if (directory < 0)
			continue;
		remove_stale_files(directory);
		fd = listen_file(directory, name);
		close_keeping_errno(directory);
	}
	return fd;
}

void attach_socket_remove(uint64_t name)
{
	char file[NAME_SIZE];
	int directory;

	file_name(file, name, "");
	for (int i = 0; i < DIRECTORIES; i++) {
		directory = directory_open(i);
		if (directory < 0)
			continue;
		unlinkat(directory, file, 0);
		close(directory);
	}
}

/* --- connecting -------------------------------------------------------------------------------- */

/* The file first. A file that is full is full of this user's own processes, and has its turn again
 * later; any other failure leaves the abstract name. */
int attach_socket_connect(uint64_t name)
{
	struct sockaddr_un address;
	char file[NAME_SIZE];
	int directory, fd;

	file_name(file, name, "");
	for (int i = 0; i < DIRECTORIES; i++) {
		directory = directory_open(i);
		if (directory < 0)
			continue;
		fd = connect_file(directory, file);
		close_keeping_errno(directory);
		if (fd >= 0 || errno == EAGAIN || errno == EMFILE || errno == ENFILE)
			return fd;
	}
	return connect_to(&address, address_abstract(&address, name));
}
