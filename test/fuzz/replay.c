/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c - a fuzz target on files, one after the other, without a fuzzer. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static void replay(const char *name)
{
	FILE *f = fopen(name, "r");
	uint8_t *data;
	long size;

	if (!f || fseek(f, 0, SEEK_END) || (size = ftell(f)) < 0) {
		perror(name);
		exit(1);
	}
	rewind(f);
	data = malloc(size);	/* exactly: a read beyond it shows */
	if (size && (!data || fread(data, size, 1, f) != 1)) {
		perror(name);
		exit(1);
	}
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	free(data);
}

int main(int argc, char **argv)
{
	if (LLVMFuzzerInitialize)
		LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		replay(argv[i]);
	printf("%d inputs\n", argc - 1);
	return argc > 1 ? 0 : 77;
}
