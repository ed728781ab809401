/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shortage.c - reports shortages (shortage.h). */
#include "dapl/soft/obj/shortage.h"
#include "common/log.h"
#include "dapl/soft/obj/device.h"

void soft_report_shortage(const struct dapl_device *dev, int err, const char *what)
{
	report_no_descriptors(dev->identity.name, err, what);
	if (err == ENOMEM || err == ENOBUFS)
		log_report(REPORT_NO_MEMORY, LOG_FIELDS(.ia = dev->identity.name, .err = err),
			   "%s: %s: %s", dev->identity.name, what, strerror(err));
}
