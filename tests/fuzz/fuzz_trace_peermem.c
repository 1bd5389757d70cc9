/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a client, one a line: name, blank, content. A name without a slash is a client's. */
#include "fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/peermem.h"

static void put(struct pp_record *r, char *line)
{
	char path[PP_PATH_MAX], *text = strchr(line, ' ');
	int n;

	if (!text)
		return;
	*text++ = '\0';
	n = snprintf(path, sizeof(path), "/sys/%s", line);
	/* What is no path of a file is refused there. */
	if (n > 0 && (size_t)n < sizeof(path))
		(void)pp_record_put(r, PP_ENTRY_FILE, path, text, strlen(text), 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), *end;
	struct pp_record *record = NULL;
	struct pp_source *source = NULL;
	struct pp_error err = {0};
	struct pp_peermem p;

	if (pp_record_new((size_t)4 << 20, &record))
		abort();
	for (char *line = text; line; line = end) {
		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		put(record, line);
	}
	if (pp_source_replay_record(record, &source, &err))
		abort();
	pp_peermem_read(source, &p);
	assert(p.n <= PP_PEER_CLIENTS && p.references >= -1);
	assert(p.loaded == (p.module[0] != '\0'));
	for (unsigned int i = 0; i < p.n; i++)
		assert(p.client[i].alloc_mrs >= -1 && p.client[i].free_callbacks >= -1);
	assert(p.report.state == PP_SURFACE_READ || p.report.why[0]);
	assert(pp_peermem_live(&p) >= -1);
	pp_source_free(source);
	free(text);
	return 0;
}
