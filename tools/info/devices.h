/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* devices.h - the RDMA devices of this machine, and the software devices of the registry's entries, as
 * JSON, with their properties. device_views.h prints them. */
#ifndef TOOLS_INFO_DEVICES_H
#define TOOLS_INFO_DEVICES_H
#include <jansson.h>
#include <stdbool.h>

/* Returns an array of devices:
 *   "name", "kind" ("RDMA", "software"), "transport", "node_guid", "sys_image_guid", "fw_ver", "hw_ver",
 *   "type", "ports"; "ia": entry of a software device; "problem": why it cannot be used; with `limits`:
 *   "limits".
 * A port:
 *   "port", "state", "phys_state", "rate", "link_layer", "lid", "sm_lid", "lmc", "cap_mask", "gid",
 *   "netdev", "max_mtu", "active_mtu"
 * `only`: the device of this name; NULL: all. */
json_t *devices_gather(const char *only, bool limits);

#endif
