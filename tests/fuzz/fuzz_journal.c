/* SPDX-License-Identifier: Apache-2.0 */
/* The state that a profile leaves: journal, current, a generation, what verify kept. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "profile/generation.h"
#include "profile/verified.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct pp_generation *g = NULL, *again = NULL;
	struct pp_error err = {0};
	struct pp_verified v;
	struct pp_journal j;
	unsigned int number;

	if (!pp_journal_parse("seed", text, size, &j, &err))
		assert(j.of > 0 && j.of <= PP_GENERATION_LAST);
	if (!pp_current_parse("seed", text, size, &number, &err))
		assert(number <= PP_GENERATION_LAST);
	(void)pp_verified_parse("seed", text, size, &v, &err);
	err = (struct pp_error){0};
	if (pp_generation_parse("seed", text, size, &g, &err)) {
		assert(err.text[0] && !g);
		return 0;
	}
	/* What was read writes the same again. */
	{
		struct pp_buf PP_AUTO_BUF once = PP_BUF(1 << 20);
		struct pp_buf PP_AUTO_BUF twice = PP_BUF(1 << 20);

		pp_generation_write(g, &once);
		assert(!pp_generation_parse("once", pp_buf_text(&once), once.len, &again, &err));
		pp_generation_write(again, &twice);
		assert(!strcmp(pp_buf_text(&once), pp_buf_text(&twice)));
	}
	for (unsigned int i = 0; i < g->n; i++)
		assert(pp_spot_find(g->entry[i].path));
	pp_generation_free(again);
	pp_generation_free(g);
	return 0;
}
