/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attach.c - see attach.h. */
#include "tools/sock/attach.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "tools/sock/option.h"

#ifndef CGROUP2_SUPER_MAGIC
#define CGROUP2_SUPER_MAGIC 0x63677270
#endif
#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

#define FILE_SYSTEM "/sys/fs/bpf"
#define PIN(name) ATTACH_DIRECTORY "/" name

static const char *const pins[] = { PIN("sockets"), PIN("handshake"), PIN("mark") };
enum { PINS = sizeof pins / sizeof *pins }; /* a map, and the two links */

static char problem[512];

static const char *failed(const char *what, int err)
{
	snprintf(problem, sizeof problem, "%s: %s", what, strerror(err));
	return problem;
}

/* Returns a descriptor or 0, or a negative errno. */
static int call(int command, union bpf_attr *attr)
{
	int ret = (int)syscall(SYS_bpf, command, attr, sizeof *attr);

	return ret < 0 ? -errno : ret;
}

/* --- maps ---------------------------------------------------------------------------------------------------- */

/* The kernel wants to know the types of key and value of a map of sockets: a number, and a structure whose members it
 * need not know. */
static int load_types(void)
{
	static const char names[] = "\0int\0option_socket";
	struct {
		struct btf_header header;
		struct btf_type integer;
		uint32_t encoding;
		struct btf_type structure;
		char names[sizeof names];
	} types = {
		.header = { .magic = BTF_MAGIC, .version = BTF_VERSION, .hdr_len = sizeof types.header },
		.integer = { .name_off = 1, .info = BTF_KIND_INT << 24, .size = 4 },
		.encoding = BTF_INT_SIGNED << 24 | 32,
		.structure = { .name_off = 5, .info = BTF_KIND_STRUCT << 24, .size = sizeof(struct option_socket) },
	};
	union bpf_attr attr;

	memcpy(types.names, names, sizeof names);
	types.header.type_len = offsetof(__typeof__(types), names) - sizeof types.header;
	types.header.str_off = types.header.type_len;
	types.header.str_len = sizeof names;
	memset(&attr, 0, sizeof attr);
	attr.btf = (uintptr_t)&types;
	attr.btf_size = (uint32_t)(sizeof types.header + types.header.str_off + sizeof names);
	return call(BPF_BTF_LOAD, &attr);
}

static int create_map(const char *name, uint32_t type, uint32_t key, uint32_t value, uint32_t entries)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.map_type = type;
	attr.key_size = key;
	attr.value_size = value;
	attr.max_entries = entries;
	strncpy(attr.map_name, name, sizeof attr.map_name - 1);
	return call(BPF_MAP_CREATE, &attr);
}

static int create_sockets(void)
{
	int types = load_types(), map;
	union bpf_attr attr;

	if (types < 0)
		return types;
	memset(&attr, 0, sizeof attr);
	attr.map_type = BPF_MAP_TYPE_SK_STORAGE;
	attr.key_size = sizeof(int);
	attr.value_size = sizeof(struct option_socket);
	attr.map_flags = BPF_F_NO_PREALLOC | BPF_F_CLONE;	/* a new socket has its listener's state */
	attr.btf_fd = (uint32_t)types;
	attr.btf_key_type_id = 1;
	attr.btf_value_type_id = 2;
	strcpy(attr.map_name, "datsock_sockets");
	map = call(BPF_MAP_CREATE, &attr);
	close(types);
	return map;
}

static int create_keys(void)
{
	int map = create_map("datsock_keys", BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct option_keys), 1), err;
	struct option_keys keys;
	uint32_t entry = 0;
	union bpf_attr attr;

	if (map < 0)
		return map;
	memset(&attr, 0, sizeof attr);
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&entry;
	attr.value = (uintptr_t)&keys;
	err = getrandom(&keys, sizeof keys, 0) == sizeof keys ? call(BPF_MAP_UPDATE_ELEM, &attr) : -EIO;
	explicit_bzero(&keys, sizeof keys);
	if (!err)
		return map;
	close(map);
	return err;
}

static const char *create_maps(struct option_maps *maps)
{
	*maps = (struct option_maps){ create_sockets(), create_keys(),
				      create_map("datsock_tuples", BPF_MAP_TYPE_LRU_HASH, sizeof(struct option_tuple),
						 sizeof(uint64_t), OPTION_TUPLES) };
	if (maps->sockets < 0)
		return failed("the kernel makes no map of sockets", -maps->sockets);
	if (maps->keys < 0)
		return failed("the kernel makes no map of keys", -maps->keys);
	return maps->tuples < 0 ? failed("the kernel makes no map of connections", -maps->tuples) : NULL;
}

/* --- programs -------------------------------------------------------------------------------------------------- */

/* The last line of the verifier's report that is no statistics. */
static const char *last_line(char *log)
{
	char *line, *last = log, *rest = log;

	while ((line = strsep(&rest, "\n")))
		if (*line && strncmp(line, "processed ", 10))
			last = line;
	return last;
}

/* Returns a descriptor or a negative errno. If the verifier has refused the program, its last line is on stderr. */
static int load_program(const char *name, enum bpf_prog_type type, enum bpf_attach_type place,
			const struct bpf_code *code)
{
	static char log[1 << 20];
	union bpf_attr attr;
	int program;

	memset(&attr, 0, sizeof attr);
	attr.prog_type = type;
	attr.expected_attach_type = place;
	attr.insns = (uintptr_t)code->insns;
	attr.insn_cnt = (uint32_t)code->n;
	attr.license = (uintptr_t)"Dual BSD/GPL";
	strncpy(attr.prog_name, name, sizeof attr.prog_name - 1);
	program = call(BPF_PROG_LOAD, &attr);
	if (program != -EACCES && program != -EINVAL)
		return program;
	attr.log_level = 1;
	attr.log_buf = (uintptr_t)log;
	attr.log_size = sizeof log;
	program = call(BPF_PROG_LOAD, &attr);
	if (program < 0 && *log)
		fprintf(stderr, "datsock: verifier: %s\n", last_line(log));
	return program;
}

/* Attaches beside the programs of others. Returns a link or a negative errno. */
static int attach(int program, int cgroup, enum bpf_attach_type place)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_fd = (uint32_t)cgroup;
	attr.link_create.attach_type = place;
	return call(BPF_LINK_CREATE, &attr);
}

static int load_and_attach(const struct option_maps *maps, int cgroup, bool mark)
{
	enum bpf_attach_type place = mark ? BPF_CGROUP_SETSOCKOPT : BPF_CGROUP_SOCK_OPS;
	struct bpf_code code;
	int err = bpf_code_begin(&code), program = -1, link;

	if (!err)
		err = mark ? option_make_mark(&code, maps, (uint32_t)sysconf(_SC_PAGESIZE)) :
			     option_make_handshake(&code, maps);
	if (!err)
		program = load_program(mark ? "datsock_mark" : "datsock_option",
				       mark ? BPF_PROG_TYPE_CGROUP_SOCKOPT : BPF_PROG_TYPE_SOCK_OPS, place, &code);
	bpf_code_end(&code);
	if (err || program < 0)
		return err ? -err : program;
	link = attach(program, cgroup, place);
	close(program); /* the link holds it */
	return link;
}

/* --- pins -------------------------------------------------------------------------------------------------------- */

static int pin(int fd, const char *path)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.pathname = (uintptr_t)path;
	attr.bpf_fd = (uint32_t)fd;
	return -call(BPF_OBJ_PIN, &attr);
}

bool attach_is_done(void)
{
	for (int i = 0; i < PINS; i++)
		if (access(pins[i], F_OK))
			return false;
	return true;
}

static int get_pinned(const char *path)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.pathname = (uintptr_t)path;
	return call(BPF_OBJ_GET, &attr);
}

/* At once: without a pin the kernel would do it some time later. */
static void detach(const char *path)
{
	int link = get_pinned(path);
	union bpf_attr attr;

	if (link < 0)
		return;
	memset(&attr, 0, sizeof attr);
	attr.link_detach.link_fd = (uint32_t)link;
	call(BPF_LINK_DETACH, &attr);
	close(link);
}

const char *attach_end(void)
{
	for (int i = 1; i < PINS; i++)
		detach(pins[i]);
	for (int i = 0; i < PINS; i++)
		if (unlink(pins[i]) && errno != ENOENT && errno != ENOTDIR)
			return failed(pins[i], errno);
	if (rmdir(ATTACH_DIRECTORY) && errno != ENOENT && errno != ENOTDIR)
		return failed(ATTACH_DIRECTORY, errno);
	return NULL;
}

int attach_open_sockets(void)
{
	return get_pinned(pins[0]);
}

int attach_read_socket(int map, int socket, struct option_socket *state)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof attr);
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&socket;
	attr.value = (uintptr_t)state;
	return -call(BPF_MAP_LOOKUP_ELEM, &attr);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

/* Version 2 may be mounted beside version 1, at any place. */
static int open_root(void)
{
	FILE *mounts = setmntent("/proc/mounts", "re");
	struct mntent *m;
	int fd = -1;

	while (mounts && fd < 0 && (m = getmntent(mounts)))
		if (!strcmp(m->mnt_type, "cgroup2"))
			fd = open(m->mnt_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (mounts)
		endmntent(mounts);
	return fd;
}

static const char *open_cgroup(const char *path, int *fd)
{
	struct statfs fs;

	*fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : open_root();
	if (*fd < 0 && path)
		return failed(path, errno);
	if (*fd < 0)
		return "no file system of type cgroup2 is mounted";
	if (!fstatfs(*fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
		return NULL;
	close(*fd);
	snprintf(problem, sizeof problem, "%.300s: no directory of a file system of type cgroup2", path ? path : "/");
	return problem;
}

static const char *make_directory(void)
{
	struct statfs fs;

	if (statfs(FILE_SYSTEM, &fs) || (unsigned)fs.f_type != BPF_FS_MAGIC)
		return "no file system of type bpf is mounted at " FILE_SYSTEM
		       "; \"mount -t bpf bpf " FILE_SYSTEM "\" does that";
	if (mkdir(ATTACH_DIRECTORY, 0700) && errno != EEXIST)
		return failed(ATTACH_DIRECTORY, errno);
	return NULL;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

static const char *attach_both(const struct option_maps *maps, int cgroup)
{
	int links[2] = { -1, -1 }, err;
	const char *wrong = NULL;

	for (int i = 0; i < 2 && !wrong; i++) {
		links[i] = load_and_attach(maps, cgroup, i == 1);
		if (links[i] < 0)
			wrong = failed(i ? "the kernel does not take the program of cgroup/setsockopt" :
					   "the kernel does not take the program of sock_ops", -links[i]);
	}
	for (int i = 0; i < PINS && !wrong; i++)
		if ((err = pin(i ? links[i - 1] : maps->sockets, pins[i])))
			wrong = failed(pins[i], err);
	close_one(links[0]), close_one(links[1]);
	return wrong;
}

const char *attach_begin(const char *cgroup)
{
	struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };
	struct option_maps maps = { -1, -1, -1 };
	const char *wrong;
	int fd;

	if (attach_is_done())
		return NULL;
	setrlimit(RLIMIT_MEMLOCK, &unlimited); /* before Linux 5.11 maps count against it */
	wrong = attach_end();                  /* what an interrupted attempt has left */
	if (!wrong)
		wrong = open_cgroup(cgroup, &fd);
	if (wrong)
		return wrong;
	wrong = make_directory();
	if (!wrong)
		wrong = create_maps(&maps);
	if (!wrong)
		wrong = attach_both(&maps, fd);
	/* The programs hold them. */
	close_one(maps.sockets), close_one(maps.keys), close_one(maps.tuples);
	close(fd);
	if (wrong) {
		char kept[sizeof problem];

		snprintf(kept, sizeof kept, "%s", wrong);
		attach_end();
		snprintf(problem, sizeof problem, "%s", kept);
		wrong = problem;
	}
	return wrong;
}
