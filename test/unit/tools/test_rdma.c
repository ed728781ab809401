/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* test_rdma.c - the loop of `datcap rdma`, with programs that send faster than it prints. What taps.c would
 * read from their rings is made up here. */
#include "tools/datcap/taps.h"
#include "tools/datcap/datcap.h"
#include "tools/datcap/stop.h"
#include "test/unit/unit.h"

enum { MESSAGES = 20000, FAR_TOO_MANY = 1000000 };

volatile sig_atomic_t stop_requested;
static struct {
	unsigned taken, at_stop;	/* messages; at_stop: when Ctrl-C was pressed */
	unsigned times;			/* different values of `until` before that */
	uint64_t until;
	bool ended;
} t;

/* --- taps.c --------------------------------------------------------------------------------- */

void taps_start(pid_t pid, const char *ia, uint32_t snap) { (void)pid, (void)ia, (void)snap; }

void taps_find(void)
{
}

void taps_renew(void)
{
}

unsigned taps_count(void) { return 1; }
uint64_t taps_lost(void) { return 0; }
void taps_end(void) { t.ended = true; }

void taps_free(void)
{
}

/* There is always one more message from before `until`, as if CLOCK_REALTIME had been set back after the
 * caller read it. */
bool taps_next(uint64_t until, struct taps_message *message)
{
	static const struct tap_record record = { .time = 1000, .qpn = 1,
		.ends = { { .family = 4, .port = 1 }, { .family = 4, .port = 2 } } };

	if (t.ended)
		return false;
	assert_true(t.taken < FAR_TOO_MANY);
	t.times += until != t.until;
	t.until = until;
	if (++t.taken == MESSAGES) {
		stop_requested = 1;
		t.at_stop = t.taken;
	}
	*message = (struct taps_message){ &record, (const uint8_t *)"", 1 };
	return true;
}

/* --- tests ----------------------------------------------------------------------------------- */

static void run_quietly(const struct options *o)
{
	int out = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	assert_true(out >= 0 && null >= 0);
	dup2(null, STDOUT_FILENO);
	assert_int_equal(rdma_run(o), 0);
	dup2(out, STDOUT_FILENO);
	close(out);
	close(null);
}

UNIT_TEST(a_signal_ends_it_while_messages_keep_coming)
{
	run_quietly(&(struct options){ .command = "rdma" });
	assert_int_equal(t.at_stop, MESSAGES);
	assert_true(t.taken < 2 * MESSAGES);
	assert_true(t.times > 1);
}

UNIT_MAIN(NULL, NULL)
