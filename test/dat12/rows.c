/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rows.c - a case for each row of the tables of doc/spec/dat-1.2.md, in DAT 1.2 style, over the software
 * device. rows-view is compiled with the header of include/dat-1.2 and linked to libdat2;
 * rows-binary with the transcription, and linked to libdat.so.1. rows-X NAME runs one case. The cases are in
 * rows_source.c and rows_binary.c. */
#include "rows.h"
#include <string.h>
#include <unistd.h>

#define CASE(function) { #function, function }
static const struct {
	const char *name;
	row_case *run;
} cases[] = {
	CASE(lmr_create_has_11_arguments),
	CASE(cr_reject_has_1_argument),
	CASE(rmr_bind_has_7_arguments),
	CASE(lengths_of_4_gib_are_refused),
	CASE(long_lists),
	CASE(fence_holds_short_requests_back),
	CASE(rmr_triplet_has_target_address),
	CASE(cno_param_has_an_agent),
	CASE(endpoint_lengths_have_64_bits),
	CASE(event_is_not_overrun),
	CASE(connection_request_and_its_data),
	CASE(endpoint_parameters),
	CASE(ia_attributes),
	CASE(provider_attributes),
	CASE(memory_and_event_parameters),
	CASE(service_point_parameters),
	CASE(srq_state_is_operational),
	CASE(codes_and_their_names),
	CASE(handles_are_known),
	CASE(providers_are_listed),
#ifndef VIEW
	CASE(u1_2_entry_is_first),
	CASE(providers_for_1_2_are_refused),
	CASE(only_selected_attributes_are_written),
#endif
	CASE(qualifiers_have_64_bits)
};

int main(int argc, char **argv)
{
	struct pair p;
	unsigned i, passed = 0;

	use_soft_device();
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		if (argc > 1 && strcmp(argv[1], cases[i].name))
			continue;
		printf("%s\n", cases[i].name);
		fflush(stdout);
		alarm(120);
		cases[i].run(&p);
		if (p.ia)
			pair_close(&p);
		passed++;
	}
	printf("%u passed, 0 failed\n", passed);
	return passed ? 0 : 2;
}
