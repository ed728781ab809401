/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device.c - opens IAs and raw endpoints for the commands of datcap. */
#include "device.h"
#include <errno.h>
#include <grp.h>
#include <net/if.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sockios.h>
#include <unistd.h>
#include "common/interface.h"
#include "tools/cli.h"
#include "tools/ia_choice.h"
#include "tools/messages.h"

enum { EVENTS = 4096 };		/* of an EVD */

/* Checks the result of a call that followed messages_hold(). A failure ends the program; the line has the
 * cause that the libraries reported, or else the code. */
static void check(DAT_RETURN ret, const char *device, const char *what)
{
	const char *major = "?", *minor = "", *cause = messages_release(ret != DAT_SUCCESS);

	if (ret == DAT_SUCCESS)
		return;
	dat_strerror(ret, &major, &minor);
	fail("%s: %s%s", device, what, cause ? cause : major);
}

static void fail_unknown(const char *name)
{
	struct if_nameindex *all = if_nameindex();
	char list[500] = "";
	size_t n = 0;

	for (struct if_nameindex *is = all; is && is->if_index && n < sizeof list; is++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s%s", n ? ", " : "", is->if_name);
	if (all)
		if_freenameindex(all);
	fail("\"%s\" is neither a network device nor an IA of dat.conf%s; network devices here: %s", name,
	     strcmp(name, "any") ? "" : ": -i is repeated for several devices", list);
}

bool device_make_up(const char *name, const char *option)
{
	char params[160];

	if (!if_nametoindex(name))
		return false;
	snprintf(params, sizeof params, "raw:%s 0 %s", name, option);
	ia_make_up(name, params);
	return true;
}

void device_open(struct device *d, const char *name)
{
	DAT_RETURN ret;

	*d = (struct device){ .name = name, .async = DAT_HANDLE_NULL, .ep = DAT_HANDLE_NULL };
	d->index = if_nametoindex(name);
	if (!d->index && !ia_is_configured(name))
		fail_unknown(name);
	messages_hold();
	ret = dat_ia_open((DAT_NAME_PTR)name, 8, &d->async, &d->ia);
	check(ret, name, "the IA cannot be opened: ");
	messages_hold();
	if ((ret = dat_pz_create(d->ia, &d->pz)) == DAT_SUCCESS &&
	    (ret = dat_evd_create(d->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &d->recv)) == DAT_SUCCESS)
		ret = dat_evd_create(d->ia, EVENTS, DAT_HANDLE_NULL, DAT_EVD_DTO_FLAG, &d->request);
	check(ret, name, "");
}

void device_capabilities(struct device *d, DAT_ETH_ATTR *attr, const char **carrier)
{
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;

	*carrier = NULL;
	ret = dat_ia_query(d->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &provider);
	for (int i = 0; ret == DAT_SUCCESS && i < provider.num_provider_specific_attr; i++)
		if (!strcmp(provider.provider_specific_attr[i].name, DAT_ETH_ATTR_RAW))
			*carrier = provider.provider_specific_attr[i].value;
	if (!*carrier)
		fail("%s: this IA has no raw Ethernet endpoints", d->name);
	attr->size = sizeof *attr;
	messages_hold();
	check(dat_eth_query(d->ia, attr), d->name, "dat_eth_query: ");
}

static void create(struct device *d, const DAT_EP_ATTR *attr)
{
	messages_hold();
	check(dat_ep_create(d->ia, d->pz, d->recv, d->request, DAT_HANDLE_NULL, attr, &d->ep), d->name,
	      "no raw Ethernet endpoint: ");
}

void device_receive(struct device *d, bool xdp, unsigned frames, unsigned snap)
{
	char frame_text[20], snap_text[20];
	DAT_NAMED_ATTR named[3] = { { "eth_receive", xdp ? "xdp" : "ring" }, { "eth_frames", frame_text },
		{ "eth_snap", snap_text } };
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.ep_provider_specific_count = snap ? 3 : 2, .ep_provider_specific = named };

	snprintf(frame_text, sizeof frame_text, "%u", frames);
	snprintf(snap_text, sizeof snap_text, "%u", snap);
	create(d, &attr);
}

void device_add_rule(struct device *d, const DAT_ETH_RULE *rule)
{
	DAT_ETH_RULE_HANDLE handle;

	messages_hold();
	check(dat_eth_rule_add(d->ep, rule, &handle), d->name, "the rule cannot be added: ");
}

void device_send(struct device *d, void *memory, size_t size, DAT_LMR_CONTEXT *context, unsigned queue)
{
	DAT_REGION_DESCRIPTION region = { .for_va = memory };
	DAT_EP_ATTR attr = { .service_type = DAT_ETH_SERVICE_TYPE_RAW, .qos = DAT_QOS_BEST_EFFORT,
		.max_request_dtos = (DAT_COUNT)queue, .max_request_iov = 1 };
	DAT_LMR_HANDLE lmr;
	DAT_VLEN length;
	DAT_VADDR at;
	DAT_RETURN ret;

	create(d, &attr);
	messages_hold();
	ret = dat_lmr_create(d->ia, DAT_MEM_TYPE_VIRTUAL, region, size, d->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG,
			     DAT_VA_TYPE_VA, &lmr, context, NULL, &length, &at);
	check(ret, d->name, "memory cannot be registered: ");
}

void device_stats(struct device *d, DAT_ETH_STATS *stats)
{
	stats->size = sizeof *stats;
	if (dat_eth_stats(d->ep, stats) != DAT_SUCCESS)
		fail("%s: dat_eth_stats failed", d->name);
}

bool device_is_gone(const struct device *d)
{
	char name[IF_NAMESIZE];

	return d->index && !if_indextoname(d->index, name);
}

void device_warn_if_down(const struct device *d)
{
	struct ifreq ifr;

	if (!d->index || interface_request_index((int)d->index, SIOCGIFFLAGS, &ifr))
		return;
	if (!(ifr.ifr_flags & IFF_UP))
		cli_warn("%s is down: no frame comes until \"ip link set %s up\"", d->name, ifr.ifr_name);
	else if (!(ifr.ifr_flags & IFF_RUNNING))
		cli_warn("%s has no carrier: no frame comes until it has", d->name);
}

void device_close(struct device *d)
{
	dat_ia_close(d->ia, DAT_CLOSE_ABRUPT_FLAG);
}

void device_drop_privileges(const char *user)
{
	const struct passwd *is = getpwnam(user);

	if (!is)
		fail("--user %s: there is no such user", user);
	if (initgroups(user, is->pw_gid) || setgid(is->pw_gid) || setuid(is->pw_uid))
		fail("--user %s: %s", user, strerror(errno));
	if (is->pw_uid && !setuid(0))
		fail("--user %s: the process could become root again", user);
}
