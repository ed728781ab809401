/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wireshark.c - see wireshark.h. */
#include "wireshark.h"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "print.h"
#include "tools/cli.h"

/* Each file has these words near its begin, so that an older one is recognised. */
static const char mark[] = "`datcap rdma --wireshark`";

static void put_path(char path[PATH_MAX], const char *directory, const char *name)
{
	if (snprintf(path, PATH_MAX, "%s/%s", directory, name) >= PATH_MAX)
		fail("--wireshark: the name of the directory is too long");
}

/* Ends the program if there is a file of the user: its settings would be lost. */
static void check_file(const char *path)
{
	char begin[1024] = "";
	FILE *file = fopen(path, "r");
	size_t n;

	if (!file && errno == ENOENT)
		return;
	if (!file)
		fail("%s: %s", path, strerror(errno));
	n = fread(begin, 1, sizeof begin - 1, file);
	fclose(file);
	begin[n] = 0;
	if (!strstr(begin, mark))
		fail("%s exists and is not from datcap: expected a new directory, or one that datcap made", path);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	if (!file)
		fail("%s: %s", path, strerror(errno));
	fputs(text, file);
	if (ferror(file) | fclose(file))
		fail("%s: %s", path, cli_write_error(errno));
}

/* Prints the text as one word of a shell. */
static void print_word(const char *text)
{
	print("'");
	for (; *text; text++)
		if (*text == '\'')
			print("'\\''");
		else
			print("%c", *text);
	print("'");
}

static void print_start(const char *directory)
{
	char path[PATH_MAX], real[PATH_MAX];

	if (!realpath(directory, real))
		fail("%s: %s", directory, strerror(errno));
	put_path(path, real, "dapl.lua");
	print("WIRESHARK_CONFIG_DIR=");
	print_word(real);
	print(" tshark -X lua_script:");
	print_word(path);
	print(" -r FILE\n");
}

void wireshark_write(const char *directory)
{
	char path[PATH_MAX];

	if (mkdir(directory, 0777) && errno != EEXIST)
		fail("%s: %s", directory, strerror(errno));
	for (const struct wireshark_file *f = wireshark_files; f->name; f++) {
		put_path(path, directory, f->name);
		check_file(path);
	}
	for (const struct wireshark_file *f = wireshark_files; f->name; f++) {
		put_path(path, directory, f->name);
		write_file(path, f->text);
	}
	print_start(directory);
	if (!geteuid())
		cli_warn("as root, Wireshark 4.4 runs no Lua scripts, and does not say so: start it as another user");
}
