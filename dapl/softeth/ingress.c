/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ingress.c - the program of a port on the ingress of its network device, which keeps frames of TAKE and DROP rules
 * from the kernel's stack. It is attached while there are such rules, by a link that ends with the process. ETH-28. A
 * port with AF_XDP sockets has an XDP program instead, from its opening to its end: attaching one may restart the
 * device. ETH-40.
 *
 * The packet socket sees a frame before the program does. So a rule is first added to the filter and last removed
 * from it: no frame is missed by both. */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "common/interface.h"
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/steer.h"
#include "dapl/softeth/xdp.h"

static int attach(struct eth_port *port, int program)
{
	if (port->link >= 0)
		return bpf_replace(port->link, program);
	port->link = port->xdp ? bpf_attach_xdp(program, port->index) : bpf_attach_ingress(program, port->index);
	return port->link < 0 ? -port->link : 0;
}

void eth_steer_detach(struct eth_port *port)
{
	if (port->link >= 0)
		close(port->link);
	port->link = -1;
}

static int make(const struct eth_port *port, struct bpf_code *code, const struct steer_rule *rules, unsigned n)
{
	struct steer_xdp xdp = { .index = port->index };
	struct ifreq ifr;
	int err;

	if (!port->xdp)
		return steer_make(code, rules, n, port->counters);
	if ((err = interface_request_index(port->index, SIOCGIFHWADDR, &ifr)))
		return err;
	memcpy(xdp.address, ifr.ifr_hwaddr.sa_data, sizeof xdp.address);
	xdp.sockets = eth_xdp_sockets(port->xdp);
	return steer_make_xdp(code, rules, n, port->counters, &xdp);
}

static int load(struct eth_port *port, struct bpf_code *code)
{
	struct steer_rule rules[ETH_MAX_RULES];
	unsigned n = 0;
	int err, program;

	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (!r->moved)
			rules[n++] = (struct steer_rule){ &r->rule, r->rule.mode == ETH_DROP ? r->counter : r->id,
				r->spread ? r->spread->id : 0 };
	if ((err = make(port, code, rules, n)))
		return err;
	program = bpf_load_program(port->xdp ? BPF_PROG_TYPE_XDP : BPF_PROG_TYPE_SCHED_CLS, code->insns, code->n);
	if (program < 0)
		return -program;
	err = attach(port, program);
	close(program);		/* the link holds it */
	return err;
}

int eth_steer_renew(struct eth_port *port)
{
	struct bpf_code code;
	int err;

	if (!port->steering && !port->xdp) {
		eth_steer_detach(port);
		return 0;
	}
	if (port->counters < 0) {
		port->counters = bpf_create_counters(ETH_MAX_RULES);
		if (port->counters < 0) {
			err = -port->counters;
			port->counters = -1;
			return err;
		}
	}
	err = bpf_code_begin(&code);
	if (!err)
		err = load(port, &code);
	bpf_code_end(&code);
	return err;
}

int eth_steer_get_counter(struct eth_port *port, struct eth_rule *rule)
{
	while (port->counters_used >> rule->counter & 1)
		rule->counter++;	/* ETH_MAX_RULES are enough */
	port->counters_used |= (uint64_t)1 << rule->counter;
	return port->counters < 0 ? 0 : bpf_clear_counters(port->counters, rule->counter);
}

void eth_steer_put_counter(struct eth_port *port, struct eth_rule *rule)
{
	port->counters_used &= ~((uint64_t)1 << rule->counter);
}

int eth_steer_count(const struct eth_port *port, const struct eth_rule *rule, uint64_t *frames, uint64_t *bytes)
{
	uint64_t counters[2];
	int err = bpf_read_counters(port->counters, rule->counter, counters);

	if (err)
		return err;
	*frames = counters[0];
	*bytes = counters[1];
	return 0;
}
