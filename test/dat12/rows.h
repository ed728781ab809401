/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows.h - the cases of rows.c, which are in rows_source.c and rows_binary.c. */
#ifndef TEST_DAT12_ROWS_H
#define TEST_DAT12_ROWS_H
#include "pair.h"

#define FOUR_GIB ((DAT_VLEN)1 << 32)
#define NO_FLAG DAT_COMPLETION_DEFAULT_FLAG

typedef void row_case(struct pair *p);

/* rows_source.c */
row_case lmr_create_has_11_arguments, cr_reject_has_1_argument, rmr_bind_has_7_arguments,
	lengths_of_4_gib_are_refused, long_lists, fence_holds_short_requests_back, rmr_triplet_has_target_address,
	cno_param_has_an_agent, endpoint_lengths_have_64_bits;

/* rows_binary.c */
row_case event_is_not_overrun, connection_request_and_its_data, endpoint_parameters, ia_attributes,
	provider_attributes, memory_and_event_parameters, service_point_parameters,
	srq_state_is_operational, codes_and_their_names, handles_are_known, providers_are_listed,
	u1_2_entry_is_first, providers_for_1_2_are_refused, only_selected_attributes_are_written,
	qualifiers_have_64_bits;

#endif
