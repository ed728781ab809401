/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ticks.c - see ticks.h. */
#include "common/ticks.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if HAVE_TICKS
#include <cpuid.h>

/* The counter neither stops nor changes its rate. */
static bool is_invariant(void)
{
	enum { POWER = 0x80000007, INVARIANT_TSC = 1 << 8 };
	unsigned a, b, c, d;

	return __get_cpuid(POWER, &a, &b, &c, &d) && d & INVARIANT_TSC;
}

/* The kernel leaves these clocks when it finds that the counters of the processors differ. */
static bool is_clock_of_kernel(void)
{
	static const char *const clocks[] = { "tsc\n", "kvm-clock\n", "hyperv_clocksource_tsc_page\n" };
	int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
	char name[64] = "";
	ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : -1;

	if (fd >= 0)
		close(fd);
	for (unsigned i = 0; n > 0 && i < sizeof clocks / sizeof *clocks; i++)
		if (!strcmp(name, clocks[i]))
			return true;
	return false;
}

bool ticks_are_usable(void)
{
	return is_invariant() && is_clock_of_kernel();
}
#else
bool ticks_are_usable(void)
{
	return false;
}
#endif
