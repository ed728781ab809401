/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* starved.c - what a user sees at limits of the system: descriptors, locked memory, address space, a full
 * /dev/shm, the size of files, the backlog of listeners, no network, memory of a cgroup. Either there is no
 * effect, as the software device does not need the resource, or there is a documented error and a line.
 * test/life/limits and shortages test single calls. */
#include "soak.h"
#include "test/own_network.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	DESCRIPTORS = 64,
	PAIRS = 64,
	LINE = 2000, /* bytes: messages go to a file here, and longer ones end the process */
};

static void limit(int resource, rlim_t value)
{
	struct rlimit both = { value, value };

	getrlimit(resource, &both);
	both.rlim_cur = value;
	if (setrlimit(resource, &both))
		fail("setrlimit: %s", strerror(errno));
}

static void check_line(const char *line, const char *const *allowed)
{
	while (*allowed && !strstr(line, *allowed))
		allowed++;
	if (!*allowed)
		fail("an unexpected line: %s", line);
}

/* Runs a child, and prints its first line as a figure. Each line must match one of `allowed`, which ends
 * with NULL, and there must not be more lines than these. */
static void shows(const char *at, void (*what)(const void *), const char *const *allowed)
{
	struct child_result result = run(what, NULL);
	char *rest = result.text, *line;
	int most = 0;

	if (result.status)
		fail("status 0x%x: %s", result.status, result.text);
	while (allowed[most])
		most++;
	if (result.lines > most)
		fail("%d lines, expected %d at most: %s", result.lines, most, result.text);
	soak_figure("%s: %.*s", at, *result.text ? (int)strcspn(result.text, "\n") : 99,
		    *result.text ? result.text : "no message, all works");
	while ((line = strsep(&rest, "\n")) != NULL)
		if (*line)
			check_line(line, allowed);
}

static const char *const nothing[] = { NULL };

/* --- two processes ---------------------------------------------------------------------------- */

static struct board {
	volatile DAT_CONN_QUAL qual;
	volatile bool done;
} *board;

static void make_endpoint(struct end *x)
{
	memset(x, 0, sizeof *x);
	OK(end_open(x, LIFE_IA, (struct end_events){ .cr = 8, .conn = 8, .recv = 8 }));
	OK(end_create_ep(x, NULL));
}

static void await_completion(struct end *x)
{
	DAT_EVENT event;

	OK(await(x->recv, DAT_DTO_COMPLETION_EVENT, MOMENT, &event));
	EXPECT(event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
}

static void accept_and_receive(struct end *x)
{
	DAT_EVENT event;
	DAT_CONN_QUAL qual;

	make_endpoint(x);
	OK(dat_psp_create_any(x->ia, &qual, x->cr, DAT_PSP_CONSUMER_FLAG, &x->psp));
	OK(dat_ep_post_recv(x->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	board->qual = qual;
	OK(await(x->cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT, &event));
	OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, x->ep, 0, NULL));
	OK(await(x->conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT, NULL));
	await_completion(x);
}

static void connect_and_send(struct end *x)
{
	DAT_IA_ATTR attr;

	make_endpoint(x);
	while (!board->qual)
		usleep(1000);
	OK(dat_ia_query(x->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	OK(dat_ep_connect(x->ep, attr.ia_address_ptr, board->qual, MOMENT, 0, NULL,
			  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	OK(await(x->conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT, NULL));
	OK(dat_ep_post_send(x->ep, 0, NULL, (DAT_DTO_COOKIE){ .as_64 = 1 },
			    DAT_COMPLETION_DEFAULT_FLAG));
	await_completion(x);
}

static void await_the_end(struct end *x)
{
	OK(await(x->conn, DAT_CONNECTION_EVENT_DISCONNECTED, MOMENT, NULL));
	OK(end_close(x));
}

/* Makes a connection that would use shared memory, and sends a message. */
static void two_processes(void)
{
	static struct end x;
	int status;
	pid_t pid;

	own_network();
	board = soak_shared(sizeof *board);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		accept_and_receive(&x);
		await_the_end(&x);
		exit(0);
	}
	connect_and_send(&x);
	OK(dat_ep_disconnect(x.ep, DAT_CLOSE_GRACEFUL_FLAG));
	await_the_end(&x);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (status)
		fail("the acceptor ends with status 0x%x", status);
}

/* --- the limits ---------------------------------------------------------------------------------- */

static void connect_until_descriptors_end(const void *arg)
{
	static DAT_EP_HANDLE ep[2 * PAIRS];
	struct session *s = malloc(sizeof *s), t;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned pairs = 0;

	(void)arg;
	own_network();
	OK(session_open(s, MOMENT));
	limit(RLIMIT_NOFILE, DESCRIPTORS);
	t = *s;
	while (pairs < PAIRS && ret == DAT_SUCCESS) {
		for (int side = 0; side < 2; side++)
			OK(dat_ep_create(s->ia, s->a.pz, s->a.recv, s->a.request,
					 side ? s->b.conn : s->a.conn, NULL,
					 &ep[2 * pairs + (unsigned)side]));
		t.a.ep = ep[2 * pairs];
		t.b.ep = ep[2 * pairs + 1];
		ret = session_connect(&t, 500000 * SLOWER);
		pairs++;
	}
	EXPECT(ret != DAT_SUCCESS && pairs > 4);
	EXPECT(DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ||
	       DAT_GET_TYPE(ret) == DAT_TIMEOUT_EXPIRED || DAT_GET_TYPE(ret) == DAT_ABORT);
	EXPECT(session_exchange(s, 1));
	for (unsigned i = 0; i < 2 * pairs; i++)
		OK(dat_ep_free(ep[i]));
	EXPECT(session_exchange(s, 2));
	OK(session_close(s));
	whole_session();
	free(s);
}

static void few_descriptors(void)
{
	/* Which place misses the last descriptor depends on timing: the acceptor; the initiator, also if the acceptor
	 * had none for its whole time limit; or either side when it opens the shared memory. The acceptor says
	 * when the initiator gave up. */
	static const char *const lines[] = { "accepting connections waits, accept4: Too many open files",
		"connect to ", "goes over TCP, which is slower: no shared memory",
		"ready to use: the peer closed before its first frame", NULL };

	shows("nofile 64", connect_until_descriptors_end, lines);
}

static void lock_nothing(const void *arg)
{
	(void)arg;
	limit(RLIMIT_MEMLOCK, 0);
	two_processes();
}

static void no_locked_memory(void)
{
	shows("memlock 0", lock_nothing, nothing);
}

static void fill_dev_shm(const void *arg)
{
	static char page[4096];
	int fd;

	(void)arg;
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/dev/shm", "tmpfs", 0, "size=4k"))
		skip("no mount namespace to be had: needs root");
	fd = open("/dev/shm/all", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while (write(fd, page, sizeof page) > 0)
		;
	EXPECT(errno == ENOSPC);
	close(fd);
	two_processes();
}

static void full_dev_shm(void)
{
	shows("full /dev/shm", fill_dev_shm, nothing);
}

static void write_no_file(const void *arg)
{
	(void)arg;
	two_processes();
	limit(RLIMIT_FSIZE, LINE);
	two_processes();
}

static void no_size_of_files(void)
{
	static const char tcp[] = "goes over TCP, which is slower: no shared memory: File too large (the limit is 2000";
	static const char *const lines[] = { tcp, tcp, NULL };	/* of each process */

	shows("fsize 2000", write_no_file, lines);
}

static void open_without_network(const void *arg)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;

	(void)arg;
	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had: needs root");
	ret = dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &ia); /* loopback is down there */
	if (ret == DAT_SUCCESS) {
		OK(dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		fail("an adapter opens without network");
	}
	if (DAT_GET_TYPE(ret) != DAT_PROVIDER_NOT_FOUND &&
	    DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		fail("dat_ia_open gives %s", life_return(ret));
}

static void no_network(void)
{
	static const char *const lines[] = { "interface lo is down and has no IP address", NULL };

	shows("no network", open_without_network, lines);
}

/* --- address space --------------------------------------------------------------------------------- */

/* Grows the stack beforehand: if it cannot grow later, the kernel kills the process. */
static void grow_stack(void)
{
	volatile char room[1 << 19];

	for (size_t i = 0; i < sizeof room; i += 4096)
		room[i] = 0;
}

/* Limits the address space to what this process uses now, and `more` bytes. */
static void limit_address_space(rlim_t more)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	grow_stack();
	EXPECT(file && fscanf(file, "%lu", &pages) == 1);
	fclose(file);
	limit(RLIMIT_AS, pages * (rlim_t)sysconf(_SC_PAGESIZE) + more);
}

static unsigned room_kib;	/* that open_with_little_memory() leaves */

/* Either there is a connection, or dat_ia_open() returns a documented error. */
static void open_with_little_memory(const void *arg)
{
	struct session *s = malloc(sizeof *s);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_RETURN ret;

	(void)arg;
	own_network();
	limit_address_space((rlim_t)room_kib << 10);
	ret = dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &async, &s->ia);
	if (ret == DAT_SUCCESS) {
		OK(dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG));
		OK(session_open(s, MOMENT));
		OK(session_close(s));
	} else if (DAT_GET_TYPE(ret) != DAT_PROVIDER_NOT_FOUND &&	/* no memory for the library */
		   DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES) {
		fail("%u KiB: dat_ia_open gives %s", room_kib, life_return(ret));
	}
	free(s);
}

static void little_memory_to_open(void)
{
	static const char *const lines[] = { "cannot load ", "no memory for its stack, or too many threads: ulimit -v",
		NULL };
	char at[64];

	if (SANITIZED)
		skip("the sanitizer needs all address space");
	for (room_kib = 256; room_kib <= 32768; room_kib *= 2) {
		snprintf(at, sizeof at, "address space, %u KiB more", room_kib);
		shows(at, open_with_little_memory, lines);
	}
}

/* Makes objects until there is no memory, then uses the connection that was made before. */
static void create_until_memory_ends(const void *arg)
{
	enum { OBJECTS = 4096 };
	static DAT_EP_HANDLE ep[OBJECTS];
	struct session *s = malloc(sizeof *s);
	DAT_RETURN ret = DAT_SUCCESS;
	int made = 0;

	(void)arg;
	own_network();
	OK(session_open(s, MOMENT));
	EXPECT(session_exchange(s, 1));
	limit_address_space(8 << 20);
	while (made < OBJECTS && ret == DAT_SUCCESS) {
		ret = dat_ep_create(s->ia, s->a.pz, s->a.recv, s->a.request, s->a.conn, NULL, &ep[made]);
		made += ret == DAT_SUCCESS;
	}
	if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		fail("%d endpoints, then %s", made, life_return(ret));
	EXPECT(session_exchange(s, 2));
	while (made)
		OK(dat_ep_free(ep[--made]));
	EXPECT(session_exchange(s, 3));
	OK(dat_ep_create(s->ia, s->a.pz, s->a.recv, s->a.request, s->a.conn, NULL, &ep[0]));
	OK(dat_ep_free(ep[0]));
	OK(session_close(s));
	free(s);
}

static void no_memory_for_objects(void)
{
	if (SANITIZED)
		skip("the sanitizer needs all address space");
	shows("address space, later", create_until_memory_ends, nothing);
}

/* --- the backlog of listeners ---------------------------------------------------------------------- */

static void allow_one_half_open(void)
{
	FILE *file;

	if (unshare(CLONE_NEWNET))
		skip("no network namespace to be had: needs root");
	file = fopen("/proc/sys/net/core/somaxconn", "w");	/* of the namespace */
	if (!file || fprintf(file, "1") < 0 || fclose(file))
		skip("net.core.somaxconn cannot be changed");
	own_network();
}

/* Many initiators at once: TCP repeats requests for which the listener has no room. */
static void connect_at_once(const void *arg)
{
	static DAT_EP_HANDLE ep[2 * PAIRS];
	struct session *s = malloc(sizeof *s);
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	(void)arg;
	allow_one_half_open();
	OK(session_open(s, MOMENT));
	OK(dat_ia_query(s->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	OK(dat_evd_resize(s->cr, 2 * PAIRS));
	for (int i = 0; i < 2 * PAIRS; i++)
		OK(dat_ep_create(s->ia, s->a.pz, s->a.recv, s->a.request, i < PAIRS ? s->a.conn : s->b.conn, NULL,
				 &ep[i]));
	OK(dat_evd_resize(s->a.conn, 2 * PAIRS));
	OK(dat_evd_resize(s->b.conn, 2 * PAIRS));
	for (int i = 0; i < PAIRS; i++)
		OK(dat_ep_connect(ep[i], attr.ia_address_ptr, s->qual, MOMENT * 2, 0, NULL, DAT_QOS_BEST_EFFORT,
				  DAT_CONNECT_DEFAULT_FLAG));
	for (int i = 0; i < PAIRS; i++) {
		OK(await(s->cr, DAT_CONNECTION_REQUEST_EVENT, MOMENT * 2, &event));
		OK(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, ep[PAIRS + i], 0, NULL));
	}
	for (int i = 0; i < PAIRS; i++) {
		OK(await(s->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT * 2, NULL));
		OK(await(s->b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, MOMENT * 2, NULL));
	}
	EXPECT(session_exchange(s, 1));
	OK(session_close(s));
	free(s);
}

static void short_backlog(void)
{
	shows("somaxconn 1", connect_at_once, nothing);
}

/* --- memory of a cgroup --------------------------------------------------------------------------- */

enum { CGROUP_BYTES = 32 << 20 };

static char cgroups[] = "/tmp/dapl-cgroups-XXXXXX";

static void write_cgroup(const char *file, const char *format, int value)
{
	char path[sizeof cgroups + 64];
	FILE *out;

	snprintf(path, sizeof path, "%s/%s", cgroups, file);
	out = fopen(path, "w");
	if (!out || fprintf(out, format, value) < 0 || fclose(out))
		fail("%s: %s", path, strerror(errno));
}

static void make_cgroup(void)
{
	char path[sizeof cgroups + 64];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || !mkdtemp(cgroups) ||
	    mount("none", cgroups, "cgroup2", 0, NULL))
		fail("cgroup2: %s", strerror(errno));
	write_cgroup("cgroup.subtree_control", "+memory", 0);
	snprintf(path, sizeof path, "%s/small", cgroups);
	if (mkdir(path, 0755))
		fail("%s: %s", path, strerror(errno));
	write_cgroup("small/memory.max", "%d", CGROUP_BYTES);
}

static void remove_cgroup(void)
{
	char path[sizeof cgroups + 64];

	snprintf(path, sizeof path, "%s/small", cgroups);
	if (rmdir(path) || umount(cgroups) || rmdir(cgroups))
		fail("%s: %s", path, strerror(errno));
}

static void use_more_than_the_cgroup_has(void)
{
	volatile char *memory = malloc(2 * CGROUP_BYTES);

	write_cgroup("small/cgroup.procs", "%d", 0);	/* this process */
	for (int at = 0; memory && at < 2 * CGROUP_BYTES; at += 4096)
		memory[at] = 1;
}

/* The kernel kills the peer: there is one event, as for any other peer that is killed (killed.c). */
static void lose_the_peer(const void *arg)
{
	static struct end x;
	DAT_EVENT event;
	DAT_COUNT more;
	int status;
	pid_t pid;

	(void)arg;
	own_network();
	make_cgroup();
	board = soak_shared(sizeof *board);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		connect_and_send(&x);
		use_more_than_the_cgroup_has();
		exit(0);
	}
	accept_and_receive(&x);
	OK(dat_evd_wait(x.conn, MOMENT, 1, &event, &more));
	EXPECT(event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	       event.event_number == DAT_CONNECTION_EVENT_BROKEN);
	EXPECT(waitpid(pid, &status, 0) == pid);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("the peer ends with status 0x%x, not killed", status);
	EXPECT(DAT_GET_TYPE(dat_evd_dequeue(x.conn, &event)) == DAT_QUEUE_EMPTY);
	OK(end_close(&x));
	remove_cgroup();
}

static void little_memory_in_a_cgroup(void)
{
	static const char *const ended[] = { "the peer's process ended without disconnecting", NULL };

	if (!getenv("SOAK_CGROUP"))
		skip("cgroups are made in the virtual machine only (SOAK_CGROUP)");
	shows("32 MiB for a cgroup, at its peer", lose_the_peer, ended);
}

static const struct life_case cases[] = {
	CASE(few_descriptors),  CASE(no_locked_memory), CASE(full_dev_shm),
	CASE(no_size_of_files), CASE(no_network),       CASE(little_memory_to_open),
	CASE(no_memory_for_objects), CASE(short_backlog), CASE(little_memory_in_a_cgroup),
};

int main(int argc, char **argv)
{
	return soak_main(argc, argv, cases, sizeof cases / sizeof *cases);
}
