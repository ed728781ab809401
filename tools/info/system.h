/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* system.h - reads what the operating system has about network interfaces and RDMA devices.
 * DAT_TEST_ROOT stands in front of /sys, /dev and /etc, as it does for the registry. */
#ifndef TOOLS_INFO_SYSTEM_H
#define TOOLS_INFO_SYSTEM_H
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum { SYSTEM_NAME = 256 };	/* bytes of a device's name */

/* The path of a file of the system, with DAT_TEST_ROOT. Returns `path`. */
const char *system_path(char path[PATH_MAX], const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Reads the first line of a file. If it cannot be read, stores "" and returns false. */
bool system_value(char *value, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Returns the names in a directory, in the order of their numbers; an empty array if there is no directory. */
json_t *system_names(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes "a, b, c", or `none` if the array is empty. Returns `text`. */
const char *system_join(char *text, size_t size, const json_t *names, const char *none);

json_t *system_rdma_devices(void);	/* names */
json_t *system_interfaces(void);	/* names of network interfaces of this network namespace */

struct system_interface {
	bool exists, up, has_address;
};
struct system_interface system_interface(const char *name);
/* Returns whether an interface of this host has the address; false if `text` is no address. */
bool system_has_address(const char *text);
/* Returns whether a port of an RDMA device belongs to the interface, and stores the name of the device. */
bool system_device_of(char device[SYSTEM_NAME], const char *interface);
/* Stores and returns the first network interface of a port; "" if it has none. */
const char *system_interface_of(char interface[SYSTEM_NAME], const char *device, const char *port);
/* Stores and returns the state of a port ("ACTIVE", "DOWN"); "" if there is no such port. Port 0 is the
 * first port. */
const char *system_port_state(char state[32], const char *device, unsigned port);
/* Stores and returns the node of a device, such as "/dev/infiniband/uverbs0"; "" if the kernel has none. */
const char *system_verbs_node(char node[PATH_MAX], const char *device);
/* Stores and returns the rights of a file, such as "crw-rw---- root rdma"; "absent" if there is no file. */
const char *system_rights(char text[128], const char *path);
/* Stores and returns the directory whose files name the drivers that libibverbs loads. */
const char *system_driver_dir(char path[PATH_MAX]);
/* Returns whether a file in that directory names a driver for the device. If the kernel driver of the
 * device is not known, any file counts. */
bool system_has_driver(const char *device);

#endif
