/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_objects.h - verbs of the control socket that show objects: the process with its IAs, counters, endpoints and
 * service points. doc/design/control.md has the members of the answers. */
#ifndef DAPL_CONTROL_OBJECTS_H
#define DAPL_CONTROL_OBJECTS_H
#include "dapl/core/base/control.h"

dapl_control_verb dapl_list_verb, dapl_counters_verb, dapl_endpoints_verb, dapl_service_points_verb;

#endif
