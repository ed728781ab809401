/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_attach_socket.c - the sockets through which peers attach shared memory: other
 * users cannot block the one in the runtime directory, the abstract one is used if there is no
 * runtime directory, and a directory that other users can write is not used. */
#include <sys/stat.h>
#include <sys/un.h>
#include "dapl/soft/shm/attach_socket.h"
#include "test/unit/child.h"
#include "test/unit/unit.h"

#define OK(call) assert_int_equal((call), 0)
#define NAME 0x123456789abcdef0ull
#define FILE_NAME "dapl-soft-123456789abcdef0"

static char directory[] = "/tmp/dapl-attach-XXXXXX", path[sizeof directory + 64];

static bool exists(void) { return !access(path, F_OK); }

/* A process of another user (root can become one) connects to the abstract name until the
 * backlog is full. A connection that its initiator closes stays in the backlog. */
static void fill_abstract(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(FILE_NAME);
	int fd, err;
	pid_t pid = fork_child();

	if (pid) {
		expect_success(pid);
		return;
	}
	if (!geteuid() && setresuid(65534, 65534, 65534))
		_exit(1);
	memcpy(address.sun_path + 1, FILE_NAME, strlen(FILE_NAME));
	do {
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0);
		err = connect(fd, (struct sockaddr *)&address, length) ? errno : 0;
		close(fd);
	} while (!err);
	_exit(err == EAGAIN ? 0 : 2);
}

UNIT_TEST(full_abstract_socket_does_not_block_the_file)
{
	int abstract = attach_socket_listen(NAME, false), file = attach_socket_listen(NAME, true), fd;

	assert_true(abstract >= 0 && file >= 0);
	assert_true(exists());
	fill_abstract();
	fd = attach_socket_connect(NAME);
	assert_true(fd >= 0);
	close(fd);
	attach_socket_remove(NAME);
	assert_false(exists());
	assert_int_equal(attach_socket_connect(NAME), -1);
	assert_int_equal(errno, EAGAIN);
	close(file);
	close(abstract);
}

UNIT_TEST(without_a_file_the_abstract_name_is_used)
{
	int abstract = attach_socket_listen(NAME, false), fd = attach_socket_connect(NAME);

	assert_true(abstract >= 0 && fd >= 0);
	close(fd);
	close(abstract);
	assert_int_equal(attach_socket_connect(NAME), -1);
	assert_int_equal(errno, ECONNREFUSED);
}

static void expect_unused(void)
{
	int fd = attach_socket_listen(NAME, true);

	assert_false(exists());
	if (fd >= 0) {		/* /run/user/UID */
		attach_socket_remove(NAME);
		close(fd);
	}
}

UNIT_TEST(directories_of_other_users_are_not_used)
{
	char link[sizeof directory + 8];

	OK(chmod(directory, 0755));
	expect_unused();
	OK(chmod(directory, 0700));
	snprintf(link, sizeof link, "%s.link", directory);
	OK(symlink(directory, link));
	setenv("XDG_RUNTIME_DIR", link, 1);
	expect_unused();
	setenv("XDG_RUNTIME_DIR", directory, 1);
	OK(unlink(link));
	if (geteuid())
		return;
	OK(chown(directory, 65534, 65534));
	expect_unused();
	OK(chown(directory, 0, 0));
}

UNIT_TEST(files_of_killed_processes_are_removed)
{
	struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	struct stat st;
	int fd = attach_socket_listen(NAME, true), other;

	assert_true(fd >= 0);
	OK(utimensat(AT_FDCWD, path, old, 0));
	other = attach_socket_listen(NAME + 1, true);	/* connects, and finds it alive */
	assert_true(other >= 0);
	attach_socket_remove(NAME + 1);
	close(other);
	OK(stat(path, &st));
	assert_int_not_equal(st.st_mtime, 1000);
	close(fd);			/* as a killed process does */
	OK(utimensat(AT_FDCWD, path, old, 0));
	other = attach_socket_listen(NAME + 1, true);
	assert_true(other >= 0);
	attach_socket_remove(NAME + 1);
	close(other);
	assert_false(exists());
}

UNIT_FIXTURE(make_directory)
{
	assert_non_null(mkdtemp(directory));
	setenv("XDG_RUNTIME_DIR", directory, 1);
	snprintf(path, sizeof path, "%s/" FILE_NAME, directory);
}

UNIT_FIXTURE(remove_directory) { rmdir(directory); }

UNIT_MAIN(make_directory, remove_directory)
