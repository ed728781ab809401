/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* screen.c - see screen.h. The terminal is restored whenever the program exits. */
#include "tools/info/screen.h"
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static bool moves_cursor, reads_keys;
static volatile sig_atomic_t ended;
static struct termios before;

static void end(int signal)
{
	(void)signal;
	ended = 1;
}

void screen_catch_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = end };

	for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
		sigaction(signals[i], &action, NULL);
}

static void restore(void)
{
	if (reads_keys)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	reads_keys = false;
	if (moves_cursor) {
		printf("\033[?25h\033[?1049l");
		fflush(stdout);
	}
	moves_cursor = false;
}

bool screen_begin(void)
{
	const char *term = getenv("TERM");
	struct termios raw;

	screen_catch_signals();
	moves_cursor = isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb");
	if (!moves_cursor)
		return false;
	if (isatty(STDIN_FILENO) && !tcgetattr(STDIN_FILENO, &before)) {
		raw = before;
		raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
		reads_keys = !tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	}
	atexit(restore);
	printf("\033[?1049h\033[?25l");		/* alternate screen; hide the cursor */
	return true;
}

void screen_frame(void)
{
	if (moves_cursor)
		printf("\033[H\033[J");
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static bool key_ends(void)
{
	char key;

	if (read(STDIN_FILENO, &key, 1) != 1) {
		reads_keys = false;	/* the input has ended */
		return false;
	}
	return key == 'q' || key == 'Q' || key == 3;
}

bool screen_wait(double seconds)
{
	double until = now() + seconds, left;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };

	if (fflush(stdout) || ferror(stdout))
		return false;
	while (!ended && (left = until - now()) > 0) {
		int n = poll(&input, reads_keys, (int)(left * 1000) + 1);

		if (n > 0 && key_ends())
			return false;
	}
	return !ended;
}

void screen_end(void)
{
	restore();
}

int screen_rows(void)
{
	struct winsize size;

	if (!moves_cursor)
		return 0;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row < 8 ? 24 : size.ws_row;
}
