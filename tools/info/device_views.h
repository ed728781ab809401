/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_views.h - the devices of devices.h as ibv_devices, ibv_devinfo and ibstat would show them. */
#ifndef TOOLS_INFO_DEVICE_VIEWS_H
#define TOOLS_INFO_DEVICE_VIEWS_H
#include <stdbool.h>

struct device_options {
	const char *device;	/* NULL: all */
	unsigned port;		/* 0: all */
	bool names_only, verbose, json;
	double watch;		/* seconds between two frames; 0: prints once */
};

/* Each returns the exit status: CLI_FAILURE if there is no such device or port, or none at all. */
int device_views_list(const struct device_options *options);
int device_views_info(const struct device_options *options);
/* Also prints the users of each device. */
int device_views_stat(const struct device_options *options);

#endif
