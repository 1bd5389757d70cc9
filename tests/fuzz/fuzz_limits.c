/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "node/limits.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const controllers[] = {"", "rdma", "memory"};
	char *text = pp_fuzz_text(data, size);
	char word[24];
	int64_t soft, hard;

	if (!pp_limits_memlock(text, &soft, &hard))
		assert(soft >= -1 && hard >= -1);
	if (!pp_limits_status_word(text, "CapEff", 0, word, sizeof(word)))
		assert(word[0] && strlen(word) < sizeof(word));
	if (!pp_limits_status_word(text, "Uid", 1, word, sizeof(word)))
		assert(word[0] && strlen(word) < sizeof(word));
	for (size_t i = 0; i < sizeof(controllers) / sizeof(controllers[0]); i++)
		if (!pp_limits_cgroup(text, controllers[i], word, sizeof(word)))
			assert(strlen(word) < sizeof(word) && !strchr(word, '\n'));
	(void)pp_limits_cgroup_manager(text);
	free(text);
	return 0;
}
