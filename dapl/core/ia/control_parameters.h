/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control_parameters.h - verbs of the control socket that show and change parameters (base/settings.h). */
#ifndef DAPL_CONTROL_PARAMETERS_H
#define DAPL_CONTROL_PARAMETERS_H
#include "dapl/core/base/control.h"

dapl_control_verb dapl_get_verb, dapl_set_verb;

#endif
