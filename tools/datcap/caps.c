/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* caps.c - `datcap caps`: what a device can do for raw Ethernet endpoints. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "datcap.h"
#include "device.h"
#include "print.h"
#include "tools/cli.h"

enum { TAG_BYTES = 4 };		/* of a VLAN tag, which may exceed max_frame */

static const struct { DAT_UINT64 bit; const char *name, *meaning; } capabilities[] = {
	{ DAT_ETH_CAP_COPY, "COPY", "copies of frames; the kernel handles them as ever" },
	{ DAT_ETH_CAP_EGRESS, "EGRESS", "frames that this host sends" },
	{ DAT_ETH_CAP_PARTIAL_MASK, "PARTIAL_MASK", "rules with any bits" },
	{ DAT_ETH_CAP_TUNNEL, "TUNNEL", "VXLAN, Geneve, NVGRE, GRE and MPLS are recognised" },
	{ DAT_ETH_CAP_INNER, "INNER", "rules about headers within tunnels" },
	{ DAT_ETH_CAP_VLAN_STRIP, "VLAN_STRIP", "tags that the device has stripped are told" },
	{ DAT_ETH_CAP_HASH, "HASH", "a hash of the flow with each frame" },
	{ DAT_ETH_CAP_RX_CSUM, "RX_CSUM", "checksums that were found right" },
	{ DAT_ETH_CAP_FCS, "FCS", "frames with their check sequence" },
	{ DAT_ETH_CAP_LRO, "LRO", "segments that the device or the kernel has joined" },
	{ DAT_ETH_CAP_TX_CSUM, "TX_CSUM", "checksums are put into frames that are sent" },
	{ DAT_ETH_CAP_INNER_CSUM, "INNER_CSUM", "checksums are put into what a tunnel carries" },
	{ DAT_ETH_CAP_TSO, "TSO", "long TCP segments are cut into frames" },
	{ DAT_ETH_CAP_VLAN_INSERT, "VLAN_INSERT", "VLAN tags are put into frames that are sent" },
	{ DAT_ETH_CAP_PACE, "PACE", "a rate for the frames of an endpoint" },
	{ DAT_ETH_CAP_LAUNCH, "LAUNCH", "a time at which a frame is sent" },
	{ DAT_ETH_CAP_SEND_STAMP, "SEND_STAMP", "the time at which a frame left" },
	{ DAT_ETH_CAP_JOIN, "JOIN", "membership of multicast groups" },
	{ DAT_ETH_CAP_TAKE, "TAKE", "frames that the kernel does not get" },
	{ DAT_ETH_CAP_XDP, "XDP", "the same by AF_XDP, with zero copy if the driver has it" },
	{ DAT_ETH_CAP_RSS, "RSS", "groups of endpoints that share frames by a hash" },
	{ DAT_ETH_CAP_MODERATE, "MODERATE", "wake-ups after so many frames, or so long" },
	{ DAT_ETH_CAP_RSS_INNER, "RSS_INNER", "the hash may be of headers within tunnels" },
	{ DAT_ETH_CAP_RSS_LOSSLESS, "RSS_LOSSLESS", "no frame is lost while a group gets another table" },
};

static const char *clock_of(const DAT_ETH_ATTR *attr)
{
	return attr->clock == DAT_ETH_CLOCK_HARDWARE ? "hardware" :
	       attr->clock == DAT_ETH_CLOCK_SOFTWARE ? "software" : "none";
}

static void print_object(const struct options *o, const DAT_ETH_ATTR *attr, const char *carrier, const char *address)
{
	json_t *names = json_array(), *object;
	char *text;

	for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
		if (attr->caps & capabilities[i].bit)
			json_array_append_new(names, json_string(capabilities[i].name));
	object = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:o}", "device", o->interface,
			   "carrier", carrier, "time_stamps", clock_of(attr), "address", address, "mtu", (int)attr->mtu,
			   "max_frame", (int)attr->max_frame, "max_tso", (int)attr->max_tso,
			   "max_rules", (int)attr->max_rules, "rate_min", (json_int_t)attr->rate_min,
			   "rate_max", (json_int_t)attr->rate_max, "max_group", (int)attr->max_group,
			   "max_table", (int)attr->max_table, "capabilities", names);
	text = object ? json_dumps(object, JSON_INDENT(2)) : NULL;
	if (!text)
		fail("no memory");
	print("%s\n", text);
	free(text);
	json_decref(object);
}

static void print_limits(const DAT_ETH_ATTR *attr)
{
	if (attr->caps & DAT_ETH_CAP_TSO)
		print("messages of TCP to cut: %u bytes at most\n", attr->max_tso);
	if (attr->caps & DAT_ETH_CAP_PACE)
		print("rates: %s to %s bit/s\n", grouped(attr->rate_min), grouped(attr->rate_max));
	if (attr->caps & DAT_ETH_CAP_RSS)
		print("groups: %u endpoints, tables of %u entries at most\n", attr->max_group, attr->max_table);
}

static void print_text(const struct options *o, const DAT_ETH_ATTR *attr, const char *carrier, const char *address)
{
	print("%s: address %s, MTU %u, frames of at most %u bytes (%u with a VLAN tag), %u rules\n", o->interface,
	      address, attr->mtu, attr->max_frame, attr->max_frame + TAG_BYTES, attr->max_rules);
	print("carried by %s, time stamps: %s\n", carrier, clock_of(attr));
	print_limits(attr);
	for (size_t i = 0; i < sizeof capabilities / sizeof *capabilities; i++)
		if (attr->caps & capabilities[i].bit)
			print("  %-13s %s\n", capabilities[i].name, capabilities[i].meaning);
}

int caps_run(const struct options *o)
{
	const char *carrier;
	struct device d;
	DAT_ETH_ATTR attr;
	char address[20];

	device_make_up(o->interface, "");
	device_open(&d, o->interface);
	device_capabilities(&d, &attr, &carrier);
	snprintf(address, sizeof address, "%02x:%02x:%02x:%02x:%02x:%02x", attr.address[0], attr.address[1],
		 attr.address[2], attr.address[3], attr.address[4], attr.address[5]);
	if (o->json)
		print_object(o, &attr, carrier, address);
	else
		print_text(o, &attr, carrier, address);
	device_close(&d);
	return 0;
}
