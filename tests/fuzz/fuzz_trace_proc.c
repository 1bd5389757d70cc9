/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of /proc about one process: fdinfo, stat, cgroup, a namespace's link. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/process_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = pp_fuzz_text(data, size), path[64];
	struct pp_process_buffer b = {.fd = 3};
	uint64_t started;
	int r = pp_fdinfo_parse((const char *)data, size, &b);

	assert(r == 0 || r == -EBADMSG);
	assert(b.has_info == (r == 0) && b.fd == 3);
	assert(!b.has_info || (b.exporter[0] && strlen(b.exporter) < sizeof(b.exporter)));
	r = pp_process_started(text, &started);
	assert(r == 0 || r == -EBADMSG);
	pp_process_cgroup(text, path, sizeof(path));
	assert(strlen(path) < sizeof(path) && !strchr(path, '\n'));
	(void)pp_process_ns(text);
	free(text);
	return 0;
}
