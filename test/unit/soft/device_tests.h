/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* device_tests.h - the tests of test_device, which test_device.c lists. */
#ifndef TEST_SOFT_DEVICE_TESTS_H
#define TEST_SOFT_DEVICE_TESTS_H

#include "test/unit/unit.h"
/* device_data.c */
void sends_of_all_sizes_arrive(void **state);
void acceptor_may_send_first(void **state);
void segments_scatter_and_gather(void **state);
void inline_data_is_taken_at_the_post(void **state);
void writes_and_reads_of_all_sizes_arrive(void **state);
void immediate_data_arrives(void **state);
void atomics_return_the_previous_value(void **state);
void reads_beyond_ord_wait_and_order_holds(void **state);
void fence_holds_a_write_behind_a_read(void **state);
void unsignaled_requests_make_no_completion(void **state);
void post_to_a_full_queue_fails(void **state);
void sends_wait_for_receives_and_reads_pass_them(void **state);
void one_message_larger_than_the_window_waits(void **state);

/* device_errors.c */
void error_flushes_all_requests_in_order(void **state);
void remote_protection_is_enforced(void **state);
void receive_that_is_too_short_fails(void **state);
void local_protection_is_enforced(void **state);
void deregistered_memory_is_not_sent(void **state);
void reads_beyond_the_agreed_number_fail(void **state);
void deregistered_memory_is_not_accessible(void **state);
void device_without_memory_is_reported(void **state);
void initiator_waits_while_the_acceptor_has_no_memory(void **state);

/* device_windows.c */
void type_1_windows_bind_and_protect(void **state);
void type_2_windows_bind_and_invalidate(void **state);

/* device_queues.c */
void shared_receive_queue_feeds_all_its_qps(void **state);
void completion_channel_notifies_once_per_request(void **state);
void ping_pong_of_blocked_threads(void **state);
void cq_overrun_is_reported_and_resize_keeps_completions(void **state);
void destroyed_qp_leaves_no_completion_in_the_cq(void **state);
void datagrams_arrive_or_are_lost_whole(void **state);

/* device_processes.c */
void blocked_process_makes_progress_and_its_exit_is_detected(void **state);
void idle_process_uses_no_processor(void **state);
void poller_without_the_lock_yields(void **state);
void a_fork_leaves_the_parent_unharmed(void **state);
void threads_on_both_ends_transfer_concurrently(void **state);

#endif
