/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* foreign_tests.h - the tests of test_foreign_peer, which test_foreign_peer.c lists. */
#ifndef TEST_SOFT_FOREIGN_TESTS_H
#define TEST_SOFT_FOREIGN_TESTS_H

#include "test/unit/unit.h"
/* foreign_handshake.c */
void bad_replies_fail_the_connection(void **state);
void peer_to_peer_and_revision_1_connect(void **state);
void acceptor_may_send_first(void **state);
void bad_requests_are_refused(void **state);

/* foreign_half_open.c */
void half_open_connections_time_out(void **state);
void beyond_the_limit_the_oldest_is_closed(void **state);
void one_source_gets_half_of_the_share(void **state);
void all_sources_get_a_share(void **state);
void closed_half_open_connections_are_one_line(void **state);
void errors_have_the_error_class(void **state);

/* foreign_frames.c */
void each_bad_frame_gets_its_terminate(void **state);
void more_reads_than_agreed_are_refused(void **state);

/* foreign_ends.c */
void terminate_of_the_peer_ends_the_connection(void **state);
void disorderly_ends_break_the_connection(void **state);
void sends_without_receives_stop_reading(void **state);
void end_of_a_stalled_peer_is_noticed(void **state);

#endif
