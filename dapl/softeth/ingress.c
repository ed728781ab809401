/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ingress.c - the program of a port on the ingress of its network device, which keeps frames of TAKE and DROP rules from
 * the kernel's stack. It is attached while there are such rules, by a link that ends with the process. ETH-28.
 *
 * The packet socket sees a frame before the program does. So a rule is first added to the filter and last removed
 * from it: no frame is missed by both. */
#include <errno.h>
#include <unistd.h>
#include "dapl/softeth/ingress.h"
#include "dapl/softeth/spread.h"
#include "dapl/softeth/steer.h"

static int attach(struct eth_port *port, int program)
{
	if (port->link >= 0)
		return bpf_replace(port->link, program);
	port->link = bpf_attach_ingress(program, port->index);
	return port->link < 0 ? -port->link : 0;
}

static void detach(struct eth_port *port)
{
	if (port->link >= 0)
		close(port->link);
	port->link = -1;
}

static int load(struct eth_port *port, struct bpf_code *code)
{
	struct steer_rule rules[ETH_MAX_RULES];
	unsigned n = 0;
	int err, program;

	for (const struct eth_rule *r = port->rules; r; r = r->next)
		if (!r->moved)
			rules[n++] = (struct steer_rule){ &r->rule, r->counter, r->spread ? r->spread->id : 0 };
	if ((err = steer_make(code, rules, n, port->counters)))
		return err;
	program = bpf_load_program(code->insns, code->n);
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

	if (!port->steering) {
		detach(port);
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
