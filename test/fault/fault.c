/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c - the wrappers that the linker puts in place of calls (--wrap), the count of calls, and the table
 * of blocks (fault.h). Operations of the device are in device.c. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "fault.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;	/* guards all below */
static enum fault_kind armed;
static unsigned at, calls[FAULT_KINDS];
static bool lasts;
static struct fault_page own_page, *page = &own_page;

/* A hash table of blocks, with linear probing and without gaps. Addresses are inverted, so that the leak
 * check does not find them here. */
enum { BLOCKS = 1 << 16 };
static struct block {
	uintptr_t inverted;	/* 0: free */
	void *caller;
} blocks[BLOCKS];
static size_t n_blocks;

void fault_tell(struct fault_page *to)
{
	page = to;
}

void fault_arm(enum fault_kind kind, unsigned n, bool lasting)
{
	pthread_mutex_lock(&lock);
	armed = kind;
	at = n;
	lasts = lasting;
	memset(calls, 0, sizeof calls);
	memset(page, 0, sizeof *page);
	if (n_blocks)
		memset(blocks, 0, sizeof blocks);
	n_blocks = 0;
	pthread_mutex_unlock(&lock);
}

void fault_disarm(void)
{
	pthread_mutex_lock(&lock);
	armed = FAULT_NONE;
	pthread_mutex_unlock(&lock);
}

bool fault_happened(struct fault *which)
{
	*which = page->fault;
	return page->happened;
}

/* lock held. */
static void note(const char *what, int error, void *caller)
{
	struct fault *fault = &page->fault;
	size_t i = 0;

	if (!fault->caller) {
		fault->caller = caller;
		strncpy(fault->what, what, sizeof fault->what - 1);	/* it may be unloaded */
	}
	while (i < sizeof fault->errors / sizeof *fault->errors - 1 && fault->errors[i] &&
	       fault->errors[i] != error)
		i++;
	fault->errors[i] = error;
	page->happened = true;
}

/* lock held. */
static unsigned count(enum fault_kind kind)
{
	unsigned n = ++calls[kind];

	if (page->calls[kind] < n)
		page->calls[kind] = n;
	return n;
}

bool fault_here(enum fault_kind kind, const char *what, int error, void *caller)
{
	bool fails;
	unsigned n;

	pthread_mutex_lock(&lock);
	n = count(kind);
	fails = kind == armed && (n == at || (lasts && n > at));
	if (fails)
		note(what, error, caller);
	pthread_mutex_unlock(&lock);
	if (fails)
		errno = error;
	return fails;
}

static size_t home_of(uintptr_t inverted)
{
	return (~inverted >> 4) * 2654435761u % BLOCKS;
}

static struct block *slot_of(const void *p)
{
	uintptr_t wanted = ~(uintptr_t)p;
	size_t i = home_of(wanted);

	while (blocks[i].inverted && blocks[i].inverted != wanted)
		i = (i + 1) % BLOCKS;
	return &blocks[i];
}

static void *remember(void *p, void *caller)
{
	struct block *block;

	if (!p)
		return NULL;
	pthread_mutex_lock(&lock);
	block = slot_of(p);
	if (!block->inverted && ++n_blocks == BLOCKS) {
		fprintf(stderr, "fault: more than %d blocks\n", BLOCKS);
		abort();
	}
	*block = (struct block){ ~(uintptr_t)p, caller };
	pthread_mutex_unlock(&lock);
	return p;
}

/* Called with the lock held. Fills the gap with an entry that would not be found behind it. */
static void close_gap(size_t gap)
{
	for (size_t i = (gap + 1) % BLOCKS; blocks[i].inverted; i = (i + 1) % BLOCKS) {
		size_t home = home_of(blocks[i].inverted);

		if ((i + BLOCKS - home) % BLOCKS < (i + BLOCKS - gap) % BLOCKS)
			continue;
		blocks[gap] = blocks[i];
		gap = i;
	}
	blocks[gap].inverted = 0;
}

static void forget(const void *p)
{
	struct block *block;

	if (!p)
		return;
	pthread_mutex_lock(&lock);
	block = slot_of(p);
	if (block->inverted) {
		n_blocks--;
		close_gap((size_t)(block - blocks));
	}
	pthread_mutex_unlock(&lock);
}

size_t fault_blocks(void **caller)
{
	size_t n;

	pthread_mutex_lock(&lock);
	n = n_blocks;
	for (size_t i = 0; n && i < BLOCKS; i++)
		if (blocks[i].inverted)
			*caller = blocks[i].caller;
	pthread_mutex_unlock(&lock);
	return n;
}

/* --- fork and unload ----------------------------------------------------------------------- */

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}
static void after_fork(void)
{
	pthread_mutex_unlock(&lock);
}
__attribute__((constructor)) static void begin(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* Libraries that were linked with this one are unloaded before it. */
__attribute__((destructor)) static void end(void)
{
	if (page->process != getpid())
		return;
	page->blocks = fault_blocks(&page->owner);
	page->unloaded = true;
}

/* --- memory ------------------------------------------------------------------------------ */

#define HERE __builtin_return_address(0)
#define FAILS(kind, what, error) fault_here(FAULT_##kind, #what, error, HERE)

/* The linker's name for the replacement of the call. */
#define WRAP(type, name, ...) \
	extern __typeof__(name) __wrap_##name; \
	type __wrap_##name(__VA_ARGS__)

WRAP(void *, malloc, size_t size)
{
	return FAILS(ALLOC, malloc, ENOMEM) ? NULL : remember(malloc(size), HERE);
}
WRAP(void *, calloc, size_t n, size_t size)
{
	return FAILS(ALLOC, calloc, ENOMEM) ? NULL : remember(calloc(n, size), HERE);
}
WRAP(void *, aligned_alloc, size_t alignment, size_t size)
{
	return FAILS(ALLOC, aligned_alloc, ENOMEM) ? NULL :
		remember(aligned_alloc(alignment, size), HERE);
}
WRAP(char *, strdup, const char *s)
{
	return FAILS(ALLOC, strdup, ENOMEM) ? NULL : remember(strdup(s), HERE);
}
WRAP(void *, realloc, void *old, size_t size)
{
	void *new;

	if (FAILS(ALLOC, realloc, ENOMEM))
		return NULL;
	forget(old);	/* called before free(): another thread may then get the same address */
	new = realloc(old, size);
	return remember(new, HERE);
}
WRAP(void, free, void *p)
{
	forget(p);
	free(p);
}

/* --- the system ---------------------------------------------------------------------------- */

#define WRAP_SYSTEM(type, name, error, failure, parameters, arguments) \
	extern __typeof__(name) __wrap_##name; \
	type __wrap_##name parameters \
	{ return FAILS(SYSTEM, name, error) ? failure : name arguments; }

WRAP_SYSTEM(int, pthread_create, EAGAIN, EAGAIN, (pthread_t *thread, const pthread_attr_t *attr,
	    void *(*run)(void *), void *arg), (thread, attr, run, arg))
WRAP_SYSTEM(int, epoll_create1, EMFILE, -1, (int flags), (flags))
WRAP_SYSTEM(int, eventfd, EMFILE, -1, (unsigned int n, int flags), (n, flags))
WRAP_SYSTEM(int, socket, EMFILE, -1, (int domain, int type, int protocol), (domain, type, protocol))
WRAP_SYSTEM(int, accept4, EMFILE, -1, (int fd, struct sockaddr *addr, socklen_t *length, int flags),
	    (fd, addr, length, flags))
WRAP_SYSTEM(int, bind, ENOBUFS, -1, (int fd, const struct sockaddr *addr, socklen_t length),
	    (fd, addr, length))
WRAP_SYSTEM(int, listen, ENOBUFS, -1, (int fd, int backlog), (fd, backlog))
WRAP_SYSTEM(int, connect, ENOBUFS, -1, (int fd, const struct sockaddr *addr, socklen_t length),
	    (fd, addr, length))

/* A connection that was reset stays so, in both directions. */
static bool reset(int fd)
{
	shutdown(fd, SHUT_RDWR);
	errno = ECONNRESET;
	return true;
}
#define WRAP_STREAM(name, parameters, arguments) \
	extern __typeof__(name) __wrap_##name; \
	ssize_t __wrap_##name parameters \
	{ return FAILS(SYSTEM, name, ECONNRESET) && reset(fd) ? -1 : name arguments; }

WRAP_STREAM(sendmsg, (int fd, const struct msghdr *message, int flags),
	    (fd, message, flags))
WRAP_STREAM(send, (int fd, const void *data, size_t length, int flags),
	    (fd, data, length, flags))
WRAP_STREAM(recvmsg, (int fd, struct msghdr *message, int flags),
	    (fd, message, flags))
WRAP_STREAM(recv, (int fd, void *data, size_t length, int flags),
	    (fd, data, length, flags))
WRAP_SYSTEM(int, getifaddrs, ENOMEM, -1, (struct ifaddrs **list), (list))
WRAP_SYSTEM(int, getaddrinfo, ENOMEM, EAI_MEMORY, (const char *node, const char *service,
	    const struct addrinfo *hints, struct addrinfo **list), (node, service, hints, list))
WRAP_SYSTEM(FILE *, fopen, EMFILE, NULL, (const char *path, const char *mode), (path, mode))
WRAP_SYSTEM(DIR *, opendir, EMFILE, NULL, (const char *path), (path))

WRAP_SYSTEM(int, memfd_create, EMFILE, -1, (const char *name, unsigned int flags), (name, flags))
WRAP_SYSTEM(int, ftruncate, ENOMEM, -1, (int fd, off_t length), (fd, length))
WRAP_SYSTEM(void *, mmap, ENOMEM, MAP_FAILED, (void *addr, size_t length, int protection, int flags,
	    int fd, off_t offset), (addr, length, protection, flags, fd, offset))
WRAP_SYSTEM(int, pthread_key_create, EAGAIN, EAGAIN, (pthread_key_t *key, void (*end)(void *)),
	    (key, end))
WRAP_SYSTEM(int, scandir, ENOMEM, -1, (const char *path, struct dirent ***list,
	    int (*wanted)(const struct dirent *), int (*order)(const struct dirent **, const struct dirent **)),
	    (path, list, wanted, order))

/* Nothing is created. */
extern __typeof__(open) __wrap_open;
int __wrap_open(const char *path, int flags, ...)
{
	return FAILS(SYSTEM, open, EMFILE) ? -1 : open(path, flags);
}

/* The removal of a descriptor from the set does not fail. */
extern __typeof__(epoll_ctl) __wrap_epoll_ctl;
int __wrap_epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	if (op == EPOLL_CTL_ADD && FAILS(SYSTEM, epoll_ctl, ENOSPC))
		return -1;
	return epoll_ctl(set, op, fd, event);
}
