/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* calls_process.c - interposed calls after which another program or process has the descriptors, and calls of the
 * kernel that go past libc. The connections go back to TCP before. */
#include "sock/calls.h"
#include <alloca.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include "common/clock.h"
#include "sock/link.h"
#include "sock/remote_back.h"
#include "sock/remote_out.h"
#include "sock/service.h"
#include "sock/share.h"

extern char **environ;

enum {
	INHERITED = 1, /* for all_back(): connections that another program inherits */
	EXEC = 2,      /* the memory of the process ends */
	SHARED = 4,    /* a child has them, too; it counts */
	FORK_MS = 2000,  /* a peer that is stopped delays a fork by so long at most */
	FLUSH_MS = 2000, /* a peer that does not read delays a fork or the end of the process by so long at most */
};

static unsigned forks;

static bool is_inherited(struct conn *c)
{
	int flags = REAL(fcntl)(c->fd, F_GETFD);

	return flags >= 0 && !(flags & FD_CLOEXEC);
}

/* Sends on what came back from a ring and is not in TCP yet. Waits for the peer until the time, 0: for ever. */
static void flush(struct conn *c, uint64_t until)
{
	uint64_t id = c->id;

	while (c->resend && c->id == id && (!until || clock_now_ns() < until)) {
		struct pollfd p = { c->fd, POLLOUT, 0 };

		REAL(poll)(&p, 1, 100);
		if (!conn_lock_out(c))
			return;
		move_flush(c);
		conn_unlock_out(c);
	}
}

/* Counts a child that is about to be made among the holders of a connection, then brings it back. If that fails, this
 * process has bytes of it that the child has not, so it does not move again. */
static void share_one(struct conn *c, uint64_t until)
{
	bool shared = false;

	c->forked = forks;
	if (conn_lock(c)) {
		shared = share_fork(&c->share);
		conn_unlock(c);
	}
	if (c->connector || c->acceptor)
		shared &= move_back(c, DAT_SOCKET_WHY_FORK, !shared, FORK_MS);
	flush(c, until);
	/* The peer may still send a frame, which only this process knows what to do with. */
	c->not_for_child = c->remote;
	if (!shared || c->resend) {
		c->never = true;
		share_spoil(c->share);
	}
}

/* Brings each connection back. The list may change meanwhile; numbers are not used again and rise in it. EXEC: the
 * memory of the process ends, so what is in it must get into TCP, however long that takes. */
static void all_back(enum dat_socket_why why, int how)
{
	bool exec = how & EXEC;
	struct conn *next = NULL;
	uint64_t done = 0, until = exec ? 0 : clock_now_ns() + FLUSH_MS * 1000000ull;

	if (conn_is_vfork_child())
		return;
	for (;;) {
		dapl_mutex_lock(&sock_lock);
		next = next && next->id == done ? next->next : conn_list;
		while (next && (next->id <= done || (next->closed && !(exec && next->resend)) ||
				(how & SHARED && next->forked == forks)))
			next = next->next;
		if (next)
			done = next->id;
		dapl_mutex_unlock(&sock_lock);
		if (!next)
			return;
		if (how & SHARED) {
			share_one(next, until);
		} else if (!next->closed && (!(how & INHERITED) || is_inherited(next))) {
			if (next->connector || next->acceptor)
				move_back(next, why, true, exec ? BACK_FOR_EVER : FORK_MS);
			flush(next, until);
		} else if (exec) {
			flush(next, until);
		}
	}
}

/* Ahead of the handlers of the DAT libraries: streams over DAT go back while these libraries work. */
static void before_fork_early(void)
{
	forks++;
	service_set_forking(true);
	all_back(DAT_SOCKET_WHY_FORK, SHARED);
}

static void before_fork(void)
{
	if (!service_is_forking())
		forks++;
	do
		all_back(DAT_SOCKET_WHY_FORK, SHARED);
	while (!service_before_fork(forks));
}

static void in_parent(void)
{
	service_after_fork(false);
}

static void in_child(void)
{
	service_after_fork(true);
}

/* More than TCP takes may be left in a ring of a peer that reads slowly: it stays there, once all of it has arrived. */
static void leave_in_ring(struct conn *c, uint64_t until)
{
	bool asked = false, done = false;

	while (!done && conn_lock_out(c)) {
		done = !c->remote || !remote_leaves_much(c) || remote_take_synced(c) || clock_now_ns() > until;
		if (!done && !asked)
			remote_ask_synced(c), asked = true;
		conn_unlock_out(c);
		if (!done)
			usleep(100);
	}
}

/* The end of the process, before the DAT libraries end. */
static void streams_end(void)
{
	uint64_t until = clock_now_ns() + FLUSH_MS * 1000000ull;

	/* A signal handler that interrupts a call of DAT ends the process. */
	if (conn_is_vfork_child() || link_is_interrupted())
		return;
	for (struct conn *c = conn_list; c; c = c->next)
		if (!c->closed && c->remote)
			leave_in_ring(c, until);
	for (struct conn *c = conn_list; c; c = c->next)
		if (!c->closed && c->remote && conn_lock(c)) {
			if (c->remote)
				remote_notify_end(c);
			conn_unlock(c);
		}
	link_end();
}

__attribute__((constructor)) static void begin(void)
{
	real_init();
	settings_read();
	link_set_process(before_fork_early, streams_end);
	if (settings.enabled)
		pthread_atfork(before_fork, in_parent, in_child);
}

/* The process ends. The kernel sends on what is in TCP. Bytes of the rings go there, as far as they fit: a peer that
 * execs does not find them in a ring. The rest stays in the ring, which the peer reads before the end of the stream. */
__attribute__((destructor)) static void process_ends(void)
{
	uint64_t until;

	if (!conn_list || conn_is_vfork_child())
		return;
	until = clock_now_ns() + FLUSH_MS * 1000000ull;
	streams_end();
	for (struct conn *c = conn_list; c; c = c->next) {
		if (!c->closed && c->mode == CONN_ATTACHED && conn_lock_out(c)) {
			c->may_begin = false;
			move_revoke_what_fits(c);
			conn_unlock_out(c);
		}
		flush(c, until);
		if (share_is_sole(c->share))
			share_leave(&c->share);
	}
}

/* Whether no other thread can use a descriptor any more. */
static bool is_last_thread(void)
{
	struct stat st;

	return !stat("/proc/self/task", &st) && st.st_nlink == 3 + (nlink_t)service_is_running();
}

/* Other holders of the connections need not wait for this process. With exit(), functions that are called after this
 * library's destructor may still write. */
static void leave_shares(void)
{
	if (conn_list && !conn_is_vfork_child() && is_last_thread())
		for (struct conn *c = conn_list; c; c = c->next)
			if (!c->closed && !c->resend)
				share_leave(&c->share);
}

EXPORT void _exit(int status)
{
	process_ends();
	leave_shares();
	REAL(_exit)(status);
	__builtin_unreachable();
}

EXPORT void _Exit(int status)
{
	_exit(status);
}

/* Before another process starts that inherits descriptors. */
static void before_spawn(void)
{
	all_back(DAT_SOCKET_WHY_EXEC, INHERITED);
}

/* Before this process becomes another program. In a child of vfork() the parent has called before_spawn(). */
static void before_exec(void)
{
	all_back(DAT_SOCKET_WHY_EXEC, INHERITED | EXEC);
}

/* The child of vfork() runs on the parent's stack, so no function of C may stand between: the connections go back, then
 * libc's vfork() is jumped to. */
void *process_vfork;
void process_before_vfork(void);
void process_before_vfork(void)
{
	int saved = errno;

	conn_vforked = true;
	if (!process_vfork)
		process_vfork = dlsym(RTLD_NEXT, "vfork");
	before_spawn();
	errno = saved;
}

#if defined(__x86_64__)
__asm__(".text\n.globl vfork\n.type vfork, @function\nvfork:\n"
	"	endbr64\n"
	"	subq $8, %rsp\n"
	"	call process_before_vfork\n"
	"	addq $8, %rsp\n"
	"	movq process_vfork(%rip), %rax\n"
	"	jmp *%rax\n"
	".size vfork, .-vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n.globl vfork\n.type vfork, %function\nvfork:\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	bl process_before_vfork\n"
	"	ldp x29, x30, [sp], #16\n"
	"	adrp x16, process_vfork\n"
	"	ldr x16, [x16, #:lo12:process_vfork]\n"
	"	br x16\n"
	".size vfork, .-vfork\n");
#else
EXPORT pid_t vfork(void)
{
	return fork();
}
#endif

EXPORT int execve(const char *path, char *const *argv, char *const *env)
{
	before_exec();
	return REAL(execve)(path, argv, env);
}

EXPORT int execv(const char *path, char *const *argv)
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const *argv, char *const *env)
{
	before_exec();
	return REAL(execvpe)(file, argv, env);
}

EXPORT int execvp(const char *file, char *const *argv)
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const *argv, char *const *env)
{
	before_exec();
	return REAL(fexecve)(fd, argv, env);
}

/* Calls `with` with the arguments of a function of variable arguments; `take_env`: the environment follows them. */
#define EXEC_LIST(file, first, take_env, with) \
	do { \
		va_list list; \
		size_t count = 1; \
		va_start(list, first); \
		while (va_arg(list, char *)) \
			count++; \
		va_end(list); \
		char **argv = alloca((count + 1) * sizeof *argv); \
		argv[0] = (char *)first; \
		va_start(list, first); \
		for (size_t i = 1; i <= count; i++) \
			argv[i] = va_arg(list, char *); \
		char **env = take_env ? va_arg(list, char **) : environ; \
		va_end(list); \
		return with(file, argv, env); \
	} while (0)

EXPORT int execl(const char *path, const char *first, ...)
{
	EXEC_LIST(path, first, false, execve);
}

EXPORT int execlp(const char *file, const char *first, ...)
{
	EXEC_LIST(file, first, false, execvpe);
}

EXPORT int execle(const char *path, const char *first, ...)
{
	EXEC_LIST(path, first, true, execve);
}

void process_passes_on(int fd)
{
	struct conn *c = conn_of(fd);

	if (!c || !conn_is_vfork_child() || !(c->connector || c->acceptor))
		return;
	move_back(c, DAT_SOCKET_WHY_EXEC, true, FORK_MS);
	flush(c, clock_now_ns() + FLUSH_MS * 1000000ull);
}

/* The new program gets a copy, though the descriptor itself may be closed there. */
EXPORT int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *actions, int fd, int copy)
{
	struct conn *c = conn_of(fd);

	if (c && (c->connector || c->acceptor))
		move_back(c, DAT_SOCKET_WHY_EXEC, true, FORK_MS);
	return REAL(posix_spawn_file_actions_adddup2)(actions, fd, copy);
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const *argv, char *const *env)
{
	before_spawn();
	return REAL(posix_spawn)(pid, path, actions, attr, argv, env);
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const *argv, char *const *env)
{
	before_spawn();
	return REAL(posix_spawnp)(pid, file, actions, attr, argv, env);
}

EXPORT int system(const char *command)
{
	before_spawn();
	return REAL(system)(command);
}

EXPORT FILE *popen(const char *command, const char *type)
{
	before_spawn();
	return REAL(popen)(command, type);
}

/* Calls of the kernel that this library cannot follow: from now on no connection of the process moves. */
static void stay_on_tcp(void)
{
	settings.enabled = false;
	all_back(DAT_SOCKET_WHY_CALL, 0);
}

EXPORT long syscall(long number, ...)
{
	va_list args;
	long a[6];
	struct conn *c;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (number) {
#ifdef SYS_fork
	case SYS_fork:
#endif
	case SYS_clone:
	case SYS_clone3:
		conn_vforked = true;
		all_back(DAT_SOCKET_WHY_FORK, 0);
		break;
	case SYS_io_uring_setup:
		stay_on_tcp();
		break;
	case SYS_close:
		return close((int)a[0]);
	case SYS_read:
	case SYS_write:
	case SYS_readv:
	case SYS_writev:
	case SYS_recvfrom:
	case SYS_sendto:
	case SYS_recvmsg:
	case SYS_sendmsg:
	case SYS_splice:
	case SYS_tee:
	case SYS_sendfile:
	case SYS_epoll_ctl:
	case SYS_dup:
	case SYS_dup3:
		c = conn_of((int)a[number == SYS_epoll_ctl ? 2 : 0]);
		if (c)
			move_back(c, DAT_SOCKET_WHY_CALL, true, BACK_FOR_EVER);
		break;
	case SYS_execve:
	case SYS_execveat:
		before_exec();
		break;
	default:
		break;
	}
	return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

EXPORT int execveat(int dir, const char *path, char *const *argv, char *const *env, int flags)
{
	return syscall(SYS_execveat, dir, path, argv, env, flags);
}

EXPORT int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
	int (*real)(int (*)(void *), void *, int, void *, ...) =
		(int (*)(int (*)(void *), void *, int, void *, ...))dlsym(RTLD_NEXT, "clone");
	va_list args;
	void *a[3];

	va_start(args, arg);
	for (int i = 0; i < 3; i++)
		a[i] = va_arg(args, void *);
	va_end(args);
	if (!(flags & 0x10000)) { /* CLONE_THREAD */
		conn_vforked = true;
		all_back(DAT_SOCKET_WHY_FORK, 0);
	}
	return real(run, stack, flags, arg, a[0], a[1], a[2]);
}

/* liburing enters the kernel by itself. */
#define URING(name, params, args) \
	int name params; \
	EXPORT int name params \
	{ \
		int(*real) params = (int(*) params)dlsym(RTLD_NEXT, #name); \
		stay_on_tcp(); \
		return real ? real args : -ENOSYS; \
	}
URING(io_uring_queue_init, (unsigned entries, void *ring, unsigned flags), (entries, ring, flags))
URING(io_uring_queue_init_params, (unsigned entries, void *ring, void *p), (entries, ring, p))
URING(io_uring_queue_init_mem, (unsigned entries, void *ring, void *p, void *mem, size_t size),
      (entries, ring, p, mem, size))
URING(io_uring_setup, (unsigned entries, void *p), (entries, p))
