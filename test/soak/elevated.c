/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* elevated.c - a program with more rights than its caller (set-uid, set-gid, file capabilities) does not take
 * its configuration from a path that the caller names in DAT_OVERRIDE; one without does.
 *
 * The program copies itself, and runs the copies as another user. A copy finds no library by
 * LD_LIBRARY_PATH, so it opens libdat2 by its path, which is its argument. Needs root. */
#include <dat/udat.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { USER = 65534, NOT_ELEVATED = 3, LISTED = 4, NOT_LISTED = 5 };
#define IA "ofa-v2-of-the-caller"

static int passed, failed;
static char directory[PATH_MAX];

/* --- the copy ------------------------------------------------------------------------------- */

/* Exit status: whether the registry lists the adapter of the caller's file. */
static int list_adapters(const char *library, bool elevated)
{
	DAT_PROVIDER_INFO info[64], *list[64];
	DAT_RETURN (*providers)(DAT_COUNT, DAT_COUNT *, DAT_PROVIDER_INFO *[]);
	void *dat = dlopen(library, RTLD_NOW);
	DAT_COUNT n = 0;

	if (!getauxval(AT_SECURE) == elevated)
		return NOT_ELEVATED;
	if (!dat)
		return 1;
	*(void **)&providers = dlsym(dat, "dat_registry_list_providers");
	for (int i = 0; i < 64; i++)
		list[i] = &info[i];
	if (!providers || providers(64, &n, list) != DAT_SUCCESS)
		return NOT_LISTED;	/* no dat.conf at all */
	for (DAT_COUNT i = 0; i < n; i++)
		if (!strcmp(info[i].ia_name, IA))
			return LISTED;
	return NOT_LISTED;
}

/* --- the test ------------------------------------------------------------------------------- */

static void result(const char *name, const char *why)
{
	if (why)
		printf("FAIL %s: %s\n", name, why);
	else
		printf("ok %s\n", name);
	*(why ? &failed : &passed) += 1;
}

static bool copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	char buffer[65536];
	ssize_t n = -1;

	while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof buffer)) > 0)
		if (write(out, buffer, (size_t)n) != n)
			n = -1;
	close(in);
	return !close(out) && n == 0;
}

static void write_conf(const char *path)
{
	FILE *file = fopen(path, "we");

	if (!file)
		exit(99);
	fputs(IA " u2.0 nonthreadsafe default /nowhere/libprovider.so dapl.3.0 \"lo 0\" \"\"\n", file);
	fclose(file);
}

/* Runs a copy as USER. */
static int run(const char *program, const char *library, bool elevated)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		char conf[PATH_MAX + 10];

		snprintf(conf, sizeof conf, "%s/dat.conf", directory);
		setenv("DAT_OVERRIDE", conf, 1);
		if (setgid(USER) || setuid(USER) || !freopen("/dev/null", "w", stderr))
			_exit(1);
		execl(program, program, "--list", library, elevated ? "elevated" : "plain", (char *)NULL);
		_exit(2);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void expect(const char *name, const char *program, const char *library, bool elevated)
{
	int status = run(program, library, elevated);
	static char why[80];

	if (status == NOT_ELEVATED) {
		printf("skip %s: this file system does not give a program more rights\n", name);
		return;
	}
	snprintf(why, sizeof why, "status %d, expected %d", status, elevated ? NOT_LISTED : LISTED);
	result(name, status == (elevated ? NOT_LISTED : LISTED) ? NULL : why);
}

static bool give_capability(const char *path)
{
	struct vfs_cap_data data = { .magic_etc = VFS_CAP_REVISION_2 | VFS_CAP_FLAGS_EFFECTIVE };

	data.data[0].permitted = 1u << CAP_NET_RAW;
	return !setxattr(path, "security.capability", &data, sizeof data, 0);
}

static void make_directory(void)
{
	const char *base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

	snprintf(directory, sizeof directory, "%s/dapl-elevated-XXXXXX", base);
	if (!mkdtemp(directory) || chmod(directory, 0755))
		exit(99);
}

/* libdat2 is copied too: another user may not enter the build tree. */
static void test_copies(const char *self, const char *built)
{
	char program[PATH_MAX + 20], library[PATH_MAX + 20], conf[PATH_MAX + 20];

	snprintf(program, sizeof program, "%s/program", directory);
	snprintf(library, sizeof library, "%s/libdat2.so.2", directory);
	snprintf(conf, sizeof conf, "%s/dat.conf", directory);
	write_conf(conf);
	if (!copy_file(self, program) || !copy_file(built, library))
		exit(99);
	expect("a_plain_program_uses_dat_override", program, library, false);
	if (chmod(program, 04755))
		exit(99);
	expect("a_set_uid_program_ignores_dat_override", program, library, true);
	if (chmod(program, 02755))
		exit(99);
	expect("a_set_gid_program_ignores_dat_override", program, library, true);
	if (chmod(program, 0755))
		exit(99);
	if (give_capability(program))
		expect("a_program_with_capabilities_ignores_dat_override", program, library, true);
	else
		printf("skip a_program_with_capabilities_ignores_dat_override: setxattr: %s\n", strerror(errno));
	unlink(program);
	unlink(library);
	unlink(conf);
	rmdir(directory);
}

int main(int argc, char **argv)
{
	char self[PATH_MAX], built[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	if (argc == 4 && !strcmp(argv[1], "--list"))
		return list_adapters(argv[2], !strcmp(argv[3], "elevated"));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("skip: the runtime of a sanitizer does not work in programs with more rights\n");
	return 77;
#endif
	if (geteuid()) {
		printf("skip: needs root\n");
		return 77;
	}
	if (n <= 0 || !realpath(".libs/libdat2.so.2", built))
		return 99;
	self[n] = '\0';
	make_directory();
	test_copies(self, built);
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}
