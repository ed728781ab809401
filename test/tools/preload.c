/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preload.c - makes one call of a program fail, of all that its executable and its libraries make from the start of
 * main on (LD_PRELOAD). FAULT_KIND is "alloc" or "system", FAULT_AT the number of the call, from 1 on. With
 * FAULT_COUNT, a file, the numbers of calls of both kinds are written there when the program ends. Calls
 * within the C library are not seen, but for allocations. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <pthread.h>
#include <unistd.h>

enum { ALLOC, SYSTEM };

static unsigned calls[2], at;
static int kind;
static bool counting;
static const char *report;
static pid_t home;

__attribute__((constructor)) static void begin(void)
{
	const char *number = getenv("FAULT_AT"), *what = getenv("FAULT_KIND");

	at = number ? (unsigned)strtoul(number, NULL, 10) : 0;
	kind = what && !strcmp(what, "system") ? SYSTEM : ALLOC;
	report = getenv("FAULT_COUNT");
	home = getpid();
	counting = true;
}

__attribute__((destructor)) static void end(void)
{
	char text[64];
	int fd, n;

	counting = false;
	fd = report && home == getpid() ? open(report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	n = snprintf(text, sizeof text, "%u %u\n", calls[ALLOC], calls[SYSTEM]);
	if (write(fd, text, (size_t)n) != n)
		_exit(99);
	close(fd);
}

static bool fails(int which, int error)
{
	if (!counting || __atomic_add_fetch(&calls[which], 1, __ATOMIC_RELAXED) != at || kind != which)
		return false;
	errno = error;
	return true;
}

/* --- memory ---------------------------------------------------------------------------------- */

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
	return fails(ALLOC, ENOMEM) ? NULL : __libc_malloc(size);
}
void *calloc(size_t n, size_t size)
{
	return fails(ALLOC, ENOMEM) ? NULL : __libc_calloc(n, size);
}
void *realloc(void *old, size_t size)
{
	return fails(ALLOC, ENOMEM) ? NULL : __libc_realloc(old, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
	return fails(ALLOC, ENOMEM) ? NULL : __libc_memalign(alignment, size);
}

/* --- the system ------------------------------------------------------------------------------ */

#define NEXT(name) ((__typeof__(name) *)dlsym(RTLD_NEXT, #name))
#define WRAP(type, name, error, failure, parameters, arguments) \
	type name parameters \
	{ return fails(SYSTEM, error) ? failure : NEXT(name) arguments; }

WRAP(int, pthread_create, EAGAIN, EAGAIN, (pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
     void *arg), (thread, attr, run, arg))
WRAP(int, epoll_create1, EMFILE, -1, (int flags), (flags))
WRAP(int, eventfd, EMFILE, -1, (unsigned int n, int flags), (n, flags))
WRAP(int, socket, EMFILE, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, socketpair, EMFILE, -1, (int domain, int type, int protocol, int fd[2]), (domain, type, protocol, fd))
WRAP(int, bind, ENOBUFS, -1, (int fd, const struct sockaddr *addr, socklen_t length), (fd, addr, length))
WRAP(int, listen, ENOBUFS, -1, (int fd, int backlog), (fd, backlog))
WRAP(int, connect, ENOBUFS, -1, (int fd, const struct sockaddr *addr, socklen_t length), (fd, addr, length))
WRAP(int, memfd_create, EMFILE, -1, (const char *name, unsigned int flags), (name, flags))
WRAP(int, ftruncate, ENOMEM, -1, (int fd, off_t length), (fd, length))
WRAP(void *, mmap, ENOMEM, MAP_FAILED, (void *address, size_t length, int protection, int flags, int fd,
     off_t offset), (address, length, protection, flags, fd, offset))
WRAP(FILE *, fopen, EMFILE, NULL, (const char *path, const char *mode), (path, mode))
WRAP(int, pipe2, EMFILE, -1, (int fd[2], int flags), (fd, flags))
WRAP(pid_t, fork, EAGAIN, -1, (void), ())

int open(const char *path, int flags, ...)
{
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return fails(SYSTEM, EMFILE) ? -1 : NEXT(open)(path, flags, mode);
}
