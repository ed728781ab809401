/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port_filter.c - see port_filter.h. filter.c makes the program. */
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include "common/clock.h"
#include "dapl/softeth/filter.h"
#include "dapl/softeth/port_filter.h"
#include "dapl/softeth/spread.h"

static int attach(int fd, struct sock_filter *code, unsigned n)
{
	struct sock_fprog program = { .len = (unsigned short)n, .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) ? errno : 0;
}

static uint32_t kept_bytes(const struct eth_port *port)
{
	return port->snap ? port->snap : ETH_ALL_BYTES;
}

int port_filter_none(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);

	return attach(fd, &nothing, 1);
}

/* The rules of a group, from `r` on. Returns the first rule behind them. */
static struct eth_rule *gather_group(struct eth_port *port, struct eth_rule *r, const struct dapl_eth_rule **rules,
				     struct filter_part *part)
{
	struct eth_spread *spread = r->spread;
	uint64_t since = clock_read_ns(CLOCK_REALTIME) - RULE_LEFT_NS;

	*part = (struct filter_part){ .rules = rules };
	if (spread) {
		part->key = spread->key;
		part->ports = spread->ports;
		part->inner = spread->inner;
		part->size = spread->size;
		port->old_tables |= spread_bits(spread, r->member, since, part->bits);
	}
	for (; r && r->spread == spread; r = r->next)
		if (r->rule.mode != ETH_DROP)
			rules[part->n++] = &r->rule;
	return r;
}

/* Makes a program of the rules, for groups with their hash or without it, and attaches it. Without the hash a
 * port gets all frames that the rules of its groups match, and drops those of other members (rule_find.c). */
static int attach_rules(struct eth_port *port, struct sock_filter *code, bool hash)
{
	const struct dapl_eth_rule *rules[ETH_MAX_RULES];
	struct eth_filter filter;
	struct filter_part part;

	port->old_tables = false;
	eth_filter_begin(&filter, code, kept_bytes(port));
	for (struct eth_rule *r = port->rules; r;) {
		r = gather_group(port, r, rules, &part);
		if (!hash)
			part.key = NULL;
		eth_filter_add(&filter, &part);
	}
	if (filter.full && hash)
		return attach_rules(port, code, false);
	return attach(port->fd, code, eth_filter_end(&filter));
}

/* The kernel limits the memory of a socket's filter, and counts the one that is replaced, too: 20
 * KiB in all before Linux 6.9 (net.core.optmem_max), while a hash takes up to 15. So where memory is short all frames
 * pass first, which frees the old filter, and then those that a program with the hash passes, or one without it. */
int port_filter_renew_locked(struct eth_port *port)
{
	struct sock_filter everything = BPF_STMT(BPF_RET | BPF_K, kept_bytes(port)), *code;
	int err;

	assert_held(&port->lock);
	if (port->xdp)		/* frames that the XDP program passes are the kernel's */
		return 0;
	if (!(code = malloc(ETH_FILTER_MAX * sizeof *code)))
		return ENOMEM;
	err = attach_rules(port, code, true);
	if (err == ENOMEM && !attach(port->fd, &everything, 1)) {
		if (attach_rules(port, code, true))
			attach_rules(port, code, false);	/* if it fails, too, all frames pass */
		err = 0;
	}
	free(code);
	return err;
}

int port_filter_renew(struct eth_port *port)
{
	int err;

	dapl_mutex_lock(&port->lock);
	err = port_filter_renew_locked(port);
	if (port->old_tables)
		port->want_purge(port->context);
	dapl_mutex_unlock(&port->lock);
	return err;
}
