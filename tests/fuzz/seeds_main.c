/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main() of a fuzz target when it is not built for fuzzing: runs the seed corpus as a normal test.
 *
 * Each seed is run whole, cut at up to CUTS places, and with one byte changed at up to CUTS
 * places: truncated and damaged input is what parsers get wrong first. Every input lies in a
 * block of exactly its size. No seed at all is a failure: such a test would prove nothing.
 */
#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SEED = 1 << 20, CUTS = 64 };

static void run(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	if (size)
		memcpy(exact, data, size);
	(void)LLVMFuzzerTestOneInput(exact, size);
	free(exact);
}

static void run_damaged(uint8_t *data, size_t size)
{
	static const uint8_t bytes[] = {0x00, 0xff, '\n', ' ', '9', '<', '"', '-'};
	size_t step = size / CUTS + 1;
	unsigned int n = 0;
	uint8_t kept;

	for (size_t at = 0; at < size; at += step) {
		run(data, at);
		kept = data[at];
		data[at] = bytes[n++ % sizeof(bytes)];
		run(data, size);
		data[at] = kept;
	}
}

static bool run_file(const char *dir, const char *name)
{
	static uint8_t data[MAX_SEED];
	char path[4096];
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return false;
	}
	n = fread(data, 1, sizeof(data), f);
	(void)fclose(f);
	run(data, n);
	run_damaged(data, n);
	return true;
}

int main(int argc, char **argv)
{
	unsigned int seeds = 0, bad = 0;
	struct dirent *e;
	DIR *d;

	if (argc != 2) {
		(void)fprintf(stderr, "usage: %s CORPUS-DIRECTORY\n", argv[0]);
		return 64;
	}
	d = opendir(argv[1]);
	if (!d) {
		perror(argv[1]);
		return 1;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		seeds++;
		bad += !run_file(argv[1], e->d_name);
	}
	(void)closedir(d);
	(void)printf("%u seeds\n", seeds);
	return seeds && !bad ? 0 : 1;
}
