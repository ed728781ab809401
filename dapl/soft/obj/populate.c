/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* populate.c - asks the kernel to fault pages in (madvise), huge ones where it can. It reports an error where
 * an access would raise a signal. Kernels before 5.14 cannot: there the list of mappings tells
 * the rights, and one byte of each page is read through process_vm_readv. mem.c checks the
 * accesses to a region afterwards. */
#include "dapl/soft/obj/populate.h"
#include "dapl/soft/tunables.h"
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>
#include "common/mapping.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Whole pages. */
struct range {
	char *start;
	size_t length, page;
};

/* Returns true if every page is in a mapping with the rights. Without the list the mappings alone are
 * checked. */
static bool has_rights(const struct range *r, bool write)
{
	uintptr_t at = (uintptr_t)r->start, end = at + r->length;
	FILE *list = mapping_open();
	struct mapping m;

	if (!list)
		return !msync(r->start, r->length, MS_ASYNC) || errno != ENOMEM;
	while (at < end && mapping_next(list, &m))
		if (m.from <= at && at < m.to) {
			if (!m.readable || (write && !m.writable))
				break;
			at = m.to;
		}
	fclose(list);
	return at >= end;
}

/* Reads a byte of each page. The kernel reports EFAULT for pages behind the end of a file. */
static int probe(const struct range *r)
{
	struct iovec there[POPULATE_PROBES], here;
	char bytes[POPULATE_PROBES];
	ssize_t got;
	size_t n = 0;

	for (size_t at = 0; at < r->length; at += r->page) {
		there[n++] = (struct iovec){ r->start + at, 1 };
		if (n < POPULATE_PROBES && at + r->page < r->length)
			continue;
		here = (struct iovec){ bytes, n };
		got = process_vm_readv(getpid(), &here, 1, there, n, 0);
		if (got < 0 ? errno != ENOSYS && errno != EPERM : got != (ssize_t)n)
			return EFAULT;
		n = 0;
	}
	return 0;
}

/* For a range of 0 bytes, madvise() fails only if the kernel does not know the advice. */
static bool kernel_populates(const struct range *r, int advice)
{
	return !madvise(r->start, 0, advice);
}

/* EINVAL stands for missing rights, and for mappings of device memory, which verbs refuse with
 * EFAULT; ENOMEM for missing pages and for missing memory. */
static int populate(const struct range *r, int advice)
{
	int rc;

	do
		rc = madvise(r->start, r->length, advice);
	while (rc && (errno == EAGAIN || errno == EINTR));
	if (!rc)
		return 0;
	if (errno != ENOMEM)
		return EFAULT;
	return !msync(r->start, r->length, MS_ASYNC) || errno != ENOMEM ? ENOMEM : EFAULT;
}

/* The size of the largest region that is populated, in bytes. */
static size_t max_populated(size_t page)
{
	long pages = sysconf(_SC_PHYS_PAGES);

	return pages > 0 ? pages / POPULATE_FRACTION * page : SIZE_MAX;
}

void soft_populate_advise_huge(const void *addr, size_t length)
{
	size_t before = -(uintptr_t)addr & (HUGE_PAGE - 1);	/* bytes in front of the first whole huge page */

	if (length >= before + HUGE_PAGE && length <= max_populated(sysconf(_SC_PAGESIZE)))
		madvise((char *)addr + before, (length - before) & -(size_t)HUGE_PAGE, MADV_HUGEPAGE);
}

int soft_populate(const void *addr, size_t length, bool write)
{
	size_t page = sysconf(_SC_PAGESIZE);
	uintptr_t first = (uintptr_t)addr & -page, end = (uintptr_t)addr + length;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
	struct range r = { (char *)first, ((end - first) + page - 1) & -page, page };

	if (!length)
		return 0;
	if (end < (uintptr_t)addr || r.length < length)
		return EFAULT;
	if (r.length > max_populated(page))
		return has_rights(&r, write) ? 0 : EFAULT;
	if (kernel_populates(&r, advice))
		return populate(&r, advice);
	return has_rights(&r, write) ? probe(&r) : EFAULT;
}
