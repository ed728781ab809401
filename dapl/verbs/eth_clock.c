/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eth_clock.c - the device's clock, which stamps frames, and CLOCK_REALTIME.
 *
 * Both clocks are read as a pair once a second. Time stamps are converted along a line through the last
 * pair, whose slope comes from the last two pairs. If that slope differs from the nominal frequency by more
 * than WORST_DRIFT, CLOCK_REALTIME was set, and the nominal frequency is used. */
#include "eth_clock.h"
#include "hw.h"
#include "common/clock.h"
#include <errno.h>
#include <math.h>

#define FIT_NS 1000000000ull		/* age of a pair at which another one is read */
#define WORST_DRIFT 0.0005		/* of a quartz against NTP's slewed clock, relative */

/* Reads both clocks at one instant: the device's between two readings of CLOCK_REALTIME. *realtime_ns is
 * the mean of these, and *error_ns how far it may be off. */
static int read_pair(struct hw_eth_device *eth, uint64_t *cycles, uint64_t *realtime_ns, uint64_t *error_ns)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };
	uint64_t before = clock_read_ns(CLOCK_REALTIME), after;
	int err = hw_errno(ibv_query_rt_values_ex(eth->dev->verbs, &values));

	if (err)
		return err;
	if (!(values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK))
		return EOPNOTSUPP;
	after = clock_read_ns(CLOCK_REALTIME);
	if (after < before)	/* it was set in between */
		after = before;
	*cycles = (uint64_t)values.raw_clock.tv_sec * 1000000000ull + (uint64_t)values.raw_clock.tv_nsec;
	*error_ns = (after - before + 1) / 2;
	*realtime_ns = before + *error_ns;
	return 0;
}

static double nominal_ns_per_cycle(const struct hw_eth_clock *c)
{
	return 1e6 / (double)c->khz;
}

/* Cycles from b to a, negative if b is later. Time stamps have only the bits of the mask. */
static double cycles_between(const struct hw_eth_clock *c, uint64_t a, uint64_t b)
{
	uint64_t ahead = (a - b) & c->mask;

	return ahead <= c->mask / 2 ? (double)ahead : -((double)(c->mask - ahead) + 1);
}

/* eth->lock held. */
static void fit(struct hw_eth_device *eth, uint64_t now)
{
	struct hw_eth_clock *c = &eth->clock;
	uint64_t cycles, realtime, error;
	double slope = 0, passed;

	assert_held(&eth->lock);
	if (read_pair(eth, &cycles, &realtime, &error))
		return;
	passed = cycles_between(c, cycles, c->cycles);
	if (c->fit_ns && passed > 0)
		slope = (double)(int64_t)(realtime - c->realtime_ns) / passed;
	c->ns_per_cycle = fabs(slope / nominal_ns_per_cycle(c) - 1) < WORST_DRIFT ? slope : nominal_ns_per_cycle(c);
	c->cycles = cycles;
	c->realtime_ns = realtime;
	c->fit_ns = now;
}

void hw_eth_clock_init(struct hw_eth_device *eth)
{
	eth->clock.khz = eth->caps.core_khz;
	eth->clock.mask = eth->caps.stamp_mask;
}

bool hw_eth_clock_works(const struct hw_eth_device *eth)
{
	return eth->clock.khz && eth->clock.mask;
}

uint64_t hw_eth_clock_convert(struct hw_eth_device *eth, uint64_t cycles)
{
	struct hw_eth_clock *c = &eth->clock;
	uint64_t now = clock_now_ns(), ns = 0;

	dapl_mutex_lock(&eth->lock);
	if (!c->fit_ns || now - c->fit_ns > FIT_NS)
		fit(eth, now);
	if (c->fit_ns)
		ns = c->realtime_ns + (uint64_t)(int64_t)(cycles_between(c, cycles, c->cycles) * c->ns_per_cycle);
	dapl_mutex_unlock(&eth->lock);
	return ns;
}

int hw_eth_clock_read(struct dapl_device *dev, uint64_t *device_ns, uint64_t *system_ns, uint64_t *error_ns)
{
	uint64_t cycles;
	int err;

	if (!dev->eth || !hw_eth_clock_works(dev->eth))
		return EOPNOTSUPP;
	err = read_pair(dev->eth, &cycles, system_ns, error_ns);
	if (!err)
		*device_ns = (uint64_t)((double)cycles * nominal_ns_per_cycle(&dev->eth->clock));
	return err;
}
