/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.c - runs cases and programs, opens sessions (life.h). */
#include "life.h"
#include "test/dat_conf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
/* Children of processes with threads start threads. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "die_after_fork=0:atexit_sleep_ms=0"; }
#endif

/* Seconds for a case. LIFE_LIMIT raises them for long cases on an emulated machine. */
static double limit(void)
{
	const char *given = getenv("LIFE_LIMIT");

	return given ? atof(given) : 120;
}

static char *verdict;	/* shared: why the case failed */
enum { VERDICT = 2000 };

double life_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

_Noreturn void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (!*verdict)
		vsnprintf(verdict, VERDICT, format, args);
	va_end(args);
	_exit(99);
}

_Noreturn void skip(const char *why)
{
	snprintf(verdict, VERDICT, "%s", why);
	_exit(77);
}

const char *life_return(DAT_RETURN ret)
{
	static _Thread_local char text[160];
	const char *major = "?", *minor = "?";

	dat_strerror(ret, &major, &minor);
	snprintf(text, sizeof text, "%s(%s) 0x%x", major, minor, (unsigned)ret);
	return text;
}

void life_ok(int line, const char *call, DAT_RETURN ret)
{
	if (ret != DAT_SUCCESS)
		fail("line %d: %s gives %s", line, call, life_return(ret));
}

/* --- processes ----------------------------------------------------------------------------- */

int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = -1;	/* the directory's own */

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

const char *what_is_open(void)
{
	static char text[1000];
	char path[32], target[100];
	size_t used = 0;

	for (int fd = 3; fd < 1024 && used + 120 < sizeof text; fd++) {
		ssize_t n;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		n = readlink(path, target, sizeof target - 1);
		if (n <= 0)
			continue;
		target[n] = '\0';
		if (strcmp(target, "/dev/null"))	/* tests fill tables with it */
			used += snprintf(text + used, sizeof text - used, " %d %s", fd, target);
	}
	return text;
}

static struct child_result wait_for(pid_t pid, int output, double limit)
{
	struct child_result result = { .status = -1 };
	double begin = life_now();
	ssize_t n;

	while (waitpid(pid, &result.status, WNOHANG) != pid) {
		if (life_now() - begin > limit) {
			kill(pid, SIGKILL);
			waitpid(pid, &result.status, 0);
			break;
		}
		usleep(1000);
	}
	result.seconds = life_now() - begin;
	n = pread(output, result.text, sizeof result.text - 1, 0);
	result.text[n > 0 ? n : 0] = '\0';
	for (char *p = result.text; *p; p++)
		result.lines += *p == '\n';
	close(output);
	return result;
}

static bool without_leak_check;
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return without_leak_check; }

void end_without_leak_check(void)
{
	without_leak_check = true;
}

int count_threads(const char *name)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *task;
	int n = 0;

	while ((task = readdir(dir))) {
		char path[300], comm[20] = "";
		FILE *file;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
		file = task->d_name[0] != '.' ? fopen(path, "re") : NULL;
		if (file && fscanf(file, "%19s", comm) == 1)
			n += !name || !strcmp(comm, name);
		if (file)
			fclose(file);
	}
	closedir(dir);
	return n;
}

/* Threads of a child write to it at the same time. Without O_APPEND they could overwrite each other, as the
 * kernel does not lock the file position of a memfd. */
static int open_output(void)
{
	int fd = memfd_create("output", MFD_CLOEXEC);

	if (fd < 0 || fcntl(fd, F_SETFL, O_APPEND))
		fail("no file for the output of a child: %s", strerror(errno));
	return fd;
}

static pid_t fork_into(int output)
{
	pid_t pid, parent = getpid();
	bool threads = count_threads(NULL) > 1;

	fflush(NULL);
	pid = fork();
	if (pid)
		return pid;
	without_leak_check = threads;	/* the sanitizer looks for the parent's threads in the child */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(98);
	dup2(output, 1);
	dup2(output, 2);
	return 0;
}

struct child_result run(void (*what)(const void *), const void *arg)
{
	int output = open_output();
	pid_t pid = fork_into(output);
	struct child_result result;

	if (!pid) {
		close(output);
		what(arg);
		exit(0);
	}
	result = wait_for(pid, output, limit() / 2);
	if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == 77)
		_exit(77);
	return result;
}

void expect_quiet(const struct child_result *result, int status)
{
	if (WIFSIGNALED(result->status))
		fail("ended by signal %d after %.1f s, saying \"%s\"", WTERMSIG(result->status),
		     result->seconds, result->text);
	if (WEXITSTATUS(result->status) != status || *result->text)
		fail("exit status %d, expected %d; said \"%s\"", WEXITSTATUS(result->status), status,
		     result->text);
}

static bool run_case(const struct life_case *c)
{
	int output = open_output();
	double begin = life_now();
	struct child_result result;
	pid_t pid;
	bool good;

	*verdict = '\0';
	pid = fork_into(output);
	if (!pid) {
		close(output);
		c->run();
		exit(0);
	}
	result = wait_for(pid, output, limit());
	good = !result.status && !*result.text && !*verdict;
	if (WIFEXITED(result.status) && WEXITSTATUS(result.status) == 77) {
		printf("skip %s: %s\n", c->name, verdict);
		good = true;
	} else if (good) {
		printf("ok %s (%.1f s)\n", c->name, life_now() - begin);
	} else {
		printf("FAIL %s: %s", c->name, verdict);
		if (WIFSIGNALED(result.status))
			printf("%s%s", *verdict ? "; " : "", WTERMSIG(result.status) == SIGKILL ? "hangs" :
			       strsignal(WTERMSIG(result.status)));
		else if (!*verdict)
			printf(result.status ? "exit status %d" : "exit status %d, but it wrote this",
			       WEXITSTATUS(result.status));
		printf("\n%s", result.text);
	}
	fflush(stdout);
	return good;
}

static bool named(int argc, char **argv, const char *name)
{
	for (int i = 1; i < argc; i++)
		if (!strcmp(argv[i], name))
			return true;
	return argc < 2;
}

static const char *device(void)
{
	const char *named = getenv("LIFE_DEVICE");

	return named ? named : "libdaplsoft.so.2 lo 0";
}

bool life_on_soft(void)
{
	return !strncmp(device(), "libdaplsoft", strlen("libdaplsoft"));
}

static void make_device_entry(void)
{
	const char *params = strchr(device(), ' ');
	char library[64];

	if (!params)
		fail("LIFE_DEVICE is \"%s\"; expected \"LIBRARY IA-PARAMS\"", device());
	snprintf(library, sizeof library, "%.*s", (int)(params - device()), device());
	life_entry(LIFE_IA, library, params + 1);
}

int life_main(int argc, char **argv, const struct life_case *cases, int n)
{
	int failed = 0, passed = 0;

	/* descriptors that the parent left open do not count as leaks of children */
	for (int fd = 3; fd < 256; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	for (char **e = environ; *e;)
		if (!strncmp(*e, "DAPL_", 5) || !strncmp(*e, "DAT_", 4)) {
			char *name = strndup(*e, strcspn(*e, "="));

			unsetenv(name);
			free(name);
			e = environ;
		} else {
			e++;
		}
	verdict = mmap(NULL, VERDICT, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	make_device_entry();
	for (int i = 0; i < n; i++)
		if (named(argc, argv, cases[i].name))
			*(run_case(&cases[i]) ? &passed : &failed) += 1;
	printf("%d passed, %d failed\n", passed, failed);
	return failed != 0;
}

/* --- the registry ------------------------------------------------------------------------------ */

const char *life_library(const char *name)
{
	static char path[PATH_MAX];
	char in_build[64];

	snprintf(in_build, sizeof in_build, ".libs/%s", name);
	return realpath(in_build, path) ? path : NULL;
}

void life_conf(const char *text)
{
	int err = set_dat_conf(text);

	if (err)
		fail("writing dat.conf: %s", strerror(err));
}

void life_entry(const char *name, const char *library, const char *params)
{
	size_t size = strlen(params) * 2 + PATH_MAX + 400;
	const char *path = life_library(library);
	char *text = malloc(size), *at = text;

	at += sprintf(at, "%s u2.0 nonthreadsafe default %s dapl.3.0 \"", name, path ? path : library);
	for (; *params; params++) {
		if (*params == '"' || *params == '\\')
			*at++ = '\\';
		*at++ = *params;
	}
	strcpy(at, "\" \"\"\n");
	life_conf(text);
	free(text);
}

/* --- sessions ------------------------------------------------------------------------------------- */

DAT_RETURN await(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_TIMEOUT timeout, DAT_EVENT *event)
{
	DAT_EVENT mine;
	DAT_COUNT n;
	DAT_RETURN ret;

	if (!event)
		event = &mine;
	ret = dat_evd_wait(evd, timeout, 1, event, &n);
	if (ret != DAT_SUCCESS)
		return ret;
	return event->event_number == number ? DAT_SUCCESS : DAT_CLASS_ERROR | DAT_ABORT | event->event_number;
}

#define STEP(call) do { DAT_RETURN ret_ = (call); \
		if (ret_ != DAT_SUCCESS) { s->step = #call; return ret_; } } while (0)

static DAT_RETURN make_side(struct session *s, struct end *side, char *memory)
{
	DAT_RETURN ret;

	side->ia = s->ia;
	if ((ret = end_open(side, NULL, (struct end_events){ .recv = 64, .request = 64, .conn = 8 })) ||
	    (ret = end_register(side, memory, SIDE_MEMORY)) || (ret = end_create_ep(side, NULL)))
		s->step = side->step;
	return ret;
}

DAT_RETURN session_connect(struct session *s, DAT_TIMEOUT timeout)
{
	DAT_IA_ATTR attr;
	DAT_EVENT event;

	STEP(dat_ia_query(s->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	STEP(dat_ep_connect(s->a.ep, attr.ia_address_ptr, s->qual, timeout, 0, NULL,
			    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
	STEP(await(s->cr, DAT_CONNECTION_REQUEST_EVENT, timeout, &event));
	STEP(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s->b.ep, 0, NULL));
	STEP(await(s->b.conn, DAT_CONNECTION_EVENT_ESTABLISHED, timeout, NULL));
	STEP(await(s->a.conn, DAT_CONNECTION_EVENT_ESTABLISHED, timeout, NULL));
	return DAT_SUCCESS;
}

DAT_RETURN session_open(struct session *s, DAT_TIMEOUT timeout)
{
	DAT_RETURN ret;

	memset(s, 0, sizeof *s);
	s->async = DAT_HANDLE_NULL;
	STEP(dat_ia_open((DAT_NAME_PTR)LIFE_IA, 8, &s->async, &s->ia));
	STEP(dat_evd_create(s->ia, 8, DAT_HANDLE_NULL, DAT_EVD_CR_FLAG, &s->cr));
	STEP(dat_psp_create_any(s->ia, &s->qual, s->cr, DAT_PSP_CONSUMER_FLAG, &s->psp));
	if ((ret = make_side(s, &s->a, s->memory[0])) || (ret = make_side(s, &s->b, s->memory[1])))
		return ret;
	return session_connect(s, timeout);
}

struct session *session_opened(void)
{
	struct session *s = malloc(sizeof *s);
	DAT_RETURN ret = session_open(s, MOMENT);

	if (ret != DAT_SUCCESS)
		fail("%s gives %s", s->step, life_return(ret));
	return s;
}

static DAT_RETURN dto_done(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	DAT_RETURN ret = await(evd, DAT_DTO_COMPLETION_EVENT, MOMENT * SLOWER, &event);

	if (ret == DAT_SUCCESS && event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		ret = DAT_CLASS_ERROR | DAT_ABORT | event.event_data.dto_completion_event_data.status;
	return ret;
}

static DAT_RETURN send_one(struct session *s, struct end *from, struct end *to, unsigned seed)
{
	DAT_LMR_TRIPLET in = end_segment(to, to->memory + 1024, 256), out = end_segment(from, from->memory, 256);
	DAT_RMR_TRIPLET there = { .rmr_context = to->remote, .segment_length = 256,
		.virtual_address = (uintptr_t)to->memory + 2048 };
	DAT_DTO_COOKIE cookie = { .as_64 = seed };

	memset(from->memory, (int)seed, 256);
	memset(to->memory + 1024, 0, 2048);
	STEP(dat_ep_post_recv(to->ep, 1, &in, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	STEP(dat_ep_post_rdma_write(from->ep, 1, &out, cookie, &there, DAT_COMPLETION_DEFAULT_FLAG));
	STEP(dat_ep_post_send(from->ep, 1, &out, cookie, DAT_COMPLETION_DEFAULT_FLAG));
	STEP(dto_done(to->recv));
	STEP(dto_done(from->request));
	STEP(dto_done(from->request));
	s->step = "comparing the data";
	return memcmp(from->memory, to->memory + 1024, 256) ||
	       memcmp(from->memory, to->memory + 2048, 256) ? DAT_CLASS_ERROR | DAT_ABORT : DAT_SUCCESS;
}

bool session_exchange(struct session *s, unsigned seed)
{
	return send_one(s, &s->a, &s->b, seed | 1) == DAT_SUCCESS &&
	       send_one(s, &s->b, &s->a, seed | 2) == DAT_SUCCESS;
}

DAT_RETURN session_close(struct session *s)
{
	DAT_RETURN ret = s->ia ? dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG) : DAT_SUCCESS;

	s->ia = NULL;
	return ret;
}

void whole_session(void)
{
	struct session *s = malloc(sizeof *s);

	OK(session_open(s, MOMENT));
	for (unsigned i = 0; i < 4; i++)
		if (!session_exchange(s, i))
			fail("exchange %u ended at %s", i, s->step);
	OK(session_close(s));
	free(s);
}

void in_session(const void *none)
{
	(void)none;
	whole_session();
}
