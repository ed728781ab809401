/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sources.c - reads the configuration files and inserts the generated entries.
 *
 * DAT_OVERRIDE names the only file to use; if it cannot be read there are no entries
 * (registry.md 4.1). Without DAT_OVERRIDE the sources are dat.conf, then dat.conf.d/NAME.conf
 * in the order of the names. Without dat.conf the entries come from the devices present. */
#include "dat/sources.h"
#include "common/env.h"
#include "common/log.h"
#include "dat/debug.h"
#include "dat/devices.h"
#include "dat/shortage.h"
#include "dat/soft_entries.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_SIZE_MAX (16u << 20)	/* bytes; a larger file is a device or a mistake */
#define DEFAULT_FILE SYSCONFDIR "/dat.conf"
#define DROP_IN_DIR DEFAULT_FILE ".d"

/* Keeps the last shortage. Other errors are permanent, so a later try would not help. */
static void note_shortage(struct sources *sources, int err)
{
	if (is_shortage(err))
		sources->shortage = err;
}

/* --- one file ----------------------------------------------------------------- */

struct text {
	char *bytes;
	size_t length, room;
};

static int text_read(struct text *text, int fd)
{
	ssize_t n;

	do {
		if (text->length == text->room) {
			size_t room = text->room ? 2 * text->room : 16384;
			char *grown = realloc(text->bytes, room);

			if (!grown)
				return ENOMEM;
			text->bytes = grown;
			text->room = room;
		}
		n = read(fd, text->bytes + text->length, text->room - text->length);
		if (n > 0)
			text->length += n;
		if (text->length > FILE_SIZE_MAX)
			return EFBIG;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? errno : 0;
}

static void report_line(void *arg, const struct conf_fault *fault)
{
	((struct sources *)arg)->faults++;
	log_report(REPORT_CONF_LINE, NULL, "%s:%u: %s", fault->file, fault->line, fault->message);
}

/* Returns the copy of `file` that entries may point to. */
static const char *keep_name(struct sources *sources, const char *file)
{
	size_t room = (sources->file_count + 1) * sizeof(*sources->files);
	char **grown = realloc(sources->files, room), *copy;

	if (!grown)
		return NULL;
	sources->files = grown;
	copy = strdup(file);
	if (copy)
		sources->files[sources->file_count++] = copy;
	return copy;
}

static int read_and_parse(struct sources *sources, const char *file)
{
	struct text text = { .bytes = NULL };
	const char *name;
	int fd = open(file, O_RDONLY | O_CLOEXEC | (sources->again ? O_NONBLOCK : 0)), err = 0;
	struct stat stat;

	if (fd < 0)
		return errno;
	if (sources->again && (fstat(fd, &stat) || !S_ISREG(stat.st_mode)))
		err = EINVAL;
	if (!err)
		err = text_read(&text, fd);
	close(fd);
	if (!err) {
		name = keep_name(sources, file);
		err = name ? conf_parse(&sources->conf, text.bytes, text.length, name, report_line,
					sources) : ENOMEM;
	}
	free(text.bytes);
	return err;
}

/* Returns 0, or the reason why the file could not be used. */
static int read_file(struct sources *sources, const char *file)
{
	int err = read_and_parse(sources, file);

	note_shortage(sources, err);
	return err;
}

/* --- the default files -------------------------------------------------------- */

bool sources_is_drop_in(const char *file)
{
	const char *slash = strrchr(file, '/');
	size_t length = slash ? (size_t)(slash - file) : 0, want = strlen(DROP_IN_DIR);

	return length >= want && !memcmp(slash - want, DROP_IN_DIR, want);
}

static int is_drop_in(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return entry->d_name[0] != '.' && dot && !strcmp(dot, ".conf");
}

/* alphasort() would depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void cannot_read(const char *file, int err)
{
	log_report(REPORT_CONF_FILE, LOG_FIELDS(.err = err), "cannot read %s: %s; file ignored",
		   file, strerror(err));
}

/* A missing drop-in directory is no error. A file of that name is, and is reported. */
static bool is_absent(const char *path, int err)
{
	struct stat status;

	return err == ENOENT || (err == ENOTDIR && lstat(path, &status));
}

static void read_drop_ins(struct sources *sources)
{
	struct dirent **names;
	char dir[PATH_MAX], file[PATH_MAX];
	int count, err;

	if ((size_t)snprintf(dir, sizeof(dir), "%s%s", test_root(), DROP_IN_DIR) >= sizeof(dir))
		return;
	count = scandir(dir, &names, is_drop_in, by_name);
	err = count < 0 ? errno : 0;
	if (err && !is_absent(dir, err)) {
		note_shortage(sources, err);
		sources->faults++;
		log_report(REPORT_CONF_FILE, LOG_FIELDS(.err = err),
			   "cannot read the directory %s: %s; its files are ignored", dir,
			   strerror(err));
	}
	for (int i = 0; i < count; i++) {
		err = (size_t)snprintf(file, sizeof(file), "%s/%s", dir, names[i]->d_name) >=
		      sizeof(file) ? ENAMETOOLONG : read_file(sources, file);
		if (err) {
			sources->faults++;
			cannot_read(file, err);
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
}

static void keep_origin(struct sources *sources, const char *before, const char *file)
{
	char text[PATH_MAX + 64];

	snprintf(text, sizeof(text), "%s%s", before, file);
	free(sources->origin);
	sources->origin = strdup(text);
}

static void read_default(struct sources *sources)
{
	char file[PATH_MAX];
	int err;

	if ((size_t)snprintf(file, sizeof(file), "%s%s", test_root(), DEFAULT_FILE) >= sizeof(file))
		return;
	err = read_file(sources, file);
	keep_origin(sources, "in ", file);
	if (err == ENOENT || err == ENOTDIR) {
		sources->conf.wants_auto = true;
		keep_origin(sources, "among the devices present, without ", file);
	} else if (err) {
		sources->unreadable = true;
		cannot_read(file, err);
	}
	read_drop_ins(sources);
}

/* --- generated entries -------------------------------------------------------- */

static bool names_ia(const struct conf *conf, const char *name)
{
	for (size_t i = 0; i < conf->count; i++)
		if (conf->entries[i].info.dapl_version_major == DAT_VERSION_MAJOR &&
		    !strcmp(conf->entries[i].info.ia_name, name))
			return true;
	return false;
}

/* Moves the generated entries whose names no file has to the place of "include auto". */
static int merge(struct conf *conf, struct conf *generated)
{
	size_t tail = conf->count - conf->auto_at;
	struct conf_entry *grown;
	size_t kept = 0;

	for (size_t i = 0; i < generated->count; i++) {
		struct conf_entry entry = generated->entries[i];

		if (names_ia(conf, entry.info.ia_name))
			continue;
		generated->entries[i] = generated->entries[kept];
		generated->entries[kept++] = entry;
	}
	if (!kept)
		return 0;
	grown = realloc(conf->entries, (conf->count + kept) * sizeof(*grown));
	if (!grown)
		return ENOMEM;
	memmove(grown + conf->auto_at + kept, grown + conf->auto_at, tail * sizeof(*grown));
	memcpy(grown + conf->auto_at, generated->entries, kept * sizeof(*grown));
	conf->entries = grown;
	conf->count = conf->room = conf->count + kept;
	generated->count -= kept;		/* these belong to `conf` now */
	memmove(generated->entries, generated->entries + kept,
		generated->count * sizeof(*grown));
	return 0;
}

int sources_generate(struct conf *conf, bool with_soft)
{
	char sysfs[PATH_MAX];
	int err;

	if ((size_t)snprintf(sysfs, sizeof(sysfs), "%s/sys", test_root()) >= sizeof(sysfs))
		return 0;
	err = devices_make_entries(conf, sysfs, with_soft);
	return err || !with_soft ? err : soft_entries_make(conf, sysfs);
}

static void read_devices(struct sources *sources, bool with_soft)
{
	struct conf generated = { .entries = NULL };
	int err = sources_generate(&generated, with_soft);

	if (!err)
		err = merge(&sources->conf, &generated);
	if (err)
		log_report(REPORT_NO_MEMORY, LOG_FIELDS(.err = err),
			   "cannot generate entries for the devices present: %s", strerror(err));
	note_shortage(sources, err);
	conf_free(&generated);
}

/* CFG-1, 2, 3, 4 */
int sources_read(struct sources *sources, bool with_soft)
{
	const char *override = env_get("DAT_OVERRIDE");
	int err;

	if (!override) {
		read_default(sources);
	} else {
		err = read_file(sources, override);
		keep_origin(sources, "in ", override);
		sources->unreadable = err;
		if (err)
			log_report(REPORT_CONF_FILE, LOG_FIELDS(.err = err),
				   "cannot read the file that DAT_OVERRIDE names, \"%s\": %s; no "
				   "interface adapter is configured", override, strerror(err));
	}
	if (sources->conf.wants_auto)
		read_devices(sources, with_soft);
	err = sources->shortage;
	if (err)
		sources_free(sources);
	return err;
}

void sources_free(struct sources *sources)
{
	conf_free(&sources->conf);
	for (size_t i = 0; i < sources->file_count; i++)
		free(sources->files[i]);
	free(sources->files);
	free(sources->origin);
	*sources = (struct sources){ .files = NULL };
}
