/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* screen.c - see screen.h. The terminal is restored whenever the program exits. A frame is gathered in memory, so that
 * its lines can be counted and cut. */
#include "tools/info/screen.h"
#include "tools/cli.h"
#include "tools/info/output.h"
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
static struct {
	FILE *stream;		/* NULL: no frame is being gathered */
	char *text;
	size_t length;
} frame;

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

static void drop_frame(void)
{
	if (!frame.stream)
		return;
	output_redirect(NULL);
	fclose(frame.stream);
	free(frame.text);
	frame.stream = NULL;
	frame.text = NULL;
}

void screen_frame(void)
{
	if (!moves_cursor)
		return;
	drop_frame();
	frame.stream = open_memstream(&frame.text, &frame.length);
	if (!frame.stream)
		fail("there is no memory left");
	output_redirect(frame.stream);
}

/* Returns the number of lines of the frame. */
static int count_lines(void)
{
	int lines = 0;

	if (fflush(frame.stream))
		fail("there is no memory left");
	for (const char *at = frame.text; (at = strchr(at, '\n')); at++)
		lines++;
	return lines;
}

bool screen_fits(void)
{
	return !frame.stream || count_lines() <= screen_rows();
}

/* Prints a line up to the width of the terminal. Escape sequences, which are as those of output_bold(), take no
 * room and are not cut. */
static void print_line(const char *line, size_t length, int columns)
{
	for (const char *at = line; at < line + length; at++) {
		if (*at == '\033') {
			size_t escape = strcspn(at, "m");

			fwrite(at, 1, escape + 1, stdout);
			at += escape;
			continue;
		}
		columns -= (*at & 0xc0) != 0x80;	/* the first byte of a character */
		if (columns >= 0)
			putchar(*at);
	}
}

/* Replaces the contents of the screen. No newline follows the last line, which would scroll. */
static void print_frame(void)
{
	int lines = count_lines(), rows = screen_rows(), shown = lines > rows ? rows - 1 : lines;
	const char *at = frame.text;

	printf("\033[H\033[J");
	for (int i = 0; i < shown; i++) {
		size_t length = strcspn(at, "\n");

		if (i)
			putchar('\n');
		print_line(at, length, screen_columns());
		at += length + 1;
	}
	if (shown < lines)
		printf("%sand %d more lines", shown ? "\n" : "", lines - shown);
	drop_frame();
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Returns the key that was pressed, or SCREEN_TIME if the input has ended. */
static int read_key(void)
{
	unsigned char key;

	if (read(STDIN_FILENO, &key, 1) == 1)
		return key;
	reads_keys = false;
	return SCREEN_TIME;
}

int screen_key(double seconds)
{
	double until = now() + seconds, left;
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	int key;

	if (frame.stream)
		print_frame();
	if (fflush(stdout) || ferror(stdout))
		return SCREEN_END;
	while (!ended && (left = until - now()) > 0)
		if (poll(&input, reads_keys, (int)(left * 1000) + 1) > 0 && (key = read_key()) != SCREEN_TIME)
			return key;
	return ended ? SCREEN_END : SCREEN_TIME;
}

bool screen_key_ends(int key)
{
	return key == SCREEN_END || key == 'q' || key == 'Q' || key == 3;
}

bool screen_wait(double seconds)
{
	double until = now() + seconds;
	int key;

	do
		key = screen_key(until - now());
	while (key != SCREEN_TIME && !screen_key_ends(key));
	return key == SCREEN_TIME;
}

void screen_end(void)
{
	restore();
}

static struct winsize terminal_size(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		size = (struct winsize){ .ws_row = 0 };
	return size;
}

int screen_rows(void)
{
	int rows = terminal_size().ws_row;

	return !moves_cursor ? 0 : rows ? rows : 24;
}

int screen_columns(void)
{
	int columns = terminal_size().ws_col;

	return !moves_cursor ? 0 : columns ? columns : 80;
}
