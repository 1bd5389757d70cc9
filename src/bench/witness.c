/* SPDX-License-Identifier: Apache-2.0 */
/* " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]" */
#include "bench/witness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/banned.h"

enum { COLUMNS = 5, AVERAGE = 3, WORD = 32 };
static const double MEBI = 1.048576;

/* Words of a line; how many there are, at most COLUMNS. */
static unsigned int split(const char *line, char word[COLUMNS][WORD])
{
	unsigned int n = 0;
	size_t len;

	while (n < COLUMNS) {
		line += strspn(line, " \t");
		len = strcspn(line, " \t\r\n");
		if (!len || len >= WORD)
			break;
		memcpy(word[n], line, len);
		word[n++][len] = '\0';
		line += len;
	}
	return n;
}

int pp_witness_parse(const char *text, uint64_t size, double *ret_mbytes)
{
	char word[COLUMNS][WORD], *end;
	uint64_t bytes;
	double value;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		if (split(text, word) < COLUMNS || pp_parse_u64(word[0], 1, UINT64_MAX, &bytes) ||
		    bytes != size)
			continue;
		value = strtod(word[AVERAGE], &end);
		if (*end || !(value > 0) || value > 1e9)
			continue;
		*ret_mbytes = value * MEBI;
		return 0;
	}
	return -ENOENT;
}
