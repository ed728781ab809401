/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wireshark.h - writes the profile of Wireshark for captures of DAT programs: the files of tools/datcap/wireshark,
 * which are a part of the program. */
#ifndef DATCAP_WIRESHARK_H
#define DATCAP_WIRESHARK_H

struct wireshark_file {
	const char *name, *text;
};
/* The files; the last one has no name. tools/datcap/wireshark_files.c, which make generates. */
extern const struct wireshark_file wireshark_files[];

/* Writes the files into the directory, which is made if need be, and prints how to start Wireshark with them. A file
 * that is there and is not from here stays: the program ends. */
void wireshark_write(const char *directory);

#endif
