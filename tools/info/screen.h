/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* screen.h - views that are renewed: on a terminal each frame replaces the one before, until 'q' or
 * Ctrl-C; elsewhere the frames follow each other. What is shown is the views' job. */
#ifndef TOOLS_INFO_SCREEN_H
#define TOOLS_INFO_SCREEN_H
#include <stdbool.h>

/* Prepares the terminal, if stdout is one that can move its cursor. Returns whether it is. */
bool screen_begin(void);
/* Part of screen_begin(), for a view that is no screen: signals end it after a whole frame. */
void screen_catch_signals(void);
void screen_frame(void);	/* what is printed from now on is the next frame */
/* Prints what is left of the frame; waits. False: the user, or a signal, ended it. */
bool screen_wait(double seconds);
void screen_end(void);
int screen_rows(void);		/* 0: no limit */

#endif
