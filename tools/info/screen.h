/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* screen.h - views that are renewed: on a terminal each frame replaces the one before, until 'q' or
 * Ctrl-C; elsewhere the frames follow each other. The callers print the contents. */
#ifndef TOOLS_INFO_SCREEN_H
#define TOOLS_INFO_SCREEN_H
#include <stdbool.h>

/* Prepares the terminal, if stdout is one that can move its cursor. Returns whether it is. */
bool screen_begin(void);
/* The part of screen_begin() for output that is not renewed in place: signals end it after a whole frame. */
void screen_catch_signals(void);
/* Begins the next frame, and drops one that was begun and not shown. On a terminal that is renewed, what is printed to
 * output_stream() belongs to the frame. What exceeds the screen is cut. */
void screen_frame(void);
bool screen_fits(void);		/* whether the lines of the frame so far fit the screen */
/* Prints the rest of the frame and waits. Returns false if the user or a signal ended the view. */
bool screen_wait(double seconds);
/* Like screen_wait(), but returns at the first key: the key, SCREEN_TIME after `seconds`, or SCREEN_END after a
 * signal. */
enum { SCREEN_TIME = 0, SCREEN_END = -1 };
int screen_key(double seconds);
bool screen_key_ends(int key);	/* whether this result of screen_key() ends the view: 'q', Ctrl-C, SCREEN_END */
void screen_end(void);
int screen_rows(void);		/* 0: no limit */
int screen_columns(void);	/* 0: no limit */

#endif
