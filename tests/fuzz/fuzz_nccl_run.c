/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document of `nccl run` from a stranger: read, or refused in one line; and what is read writes a
 * document that reads and writes the same again.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "nccl/run.h"

static char *written(const struct pp_nccl_runs *runs)
{
	struct pp_buf text = PP_BUF(64 << 20);
	struct pp_json j = PP_JSON(&text, false);

	pp_json_object(&j, NULL);
	pp_json_str(&j, "schema", "peerpath.nccl_run/1");
	pp_json_array(&j, "runs");
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++)
		if (runs->arm[i])
			pp_nccl_run_write(&j, NULL, runs->arm[i]);
	pp_json_end_array(&j);
	pp_json_end_object(&j);
	assert(!text.failed);
	return text.data;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_nccl_runs runs, back;
	struct pp_error err = {0};
	int r = pp_nccl_runs_read((const char *)data, size, &runs, &err);
	char *first, *second;

	assert(!r || (err.code == r && err.text[0] && !strchr(err.text, '\n')));
	if (r)
		return 0;
	first = written(&runs);
	assert(!pp_nccl_runs_read(first, strlen(first), &back, &err));
	second = written(&back);
	assert(!strcmp(first, second));
	free(first);
	free(second);
	pp_nccl_runs_done(&back);
	pp_nccl_runs_done(&runs);
	return 0;
}
