/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "profile/profile.h"
#include "profile/render.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pp_profile *p = NULL;
	struct pp_error err = {0};
	int r = pp_profile_parse("seed", (const char *)data, size, &p, &err);

	assert(!r || (r < 0 && err.code == r && err.text[0]));
	assert(!r == (p != NULL));
	for (unsigned int i = 0; p && i < p->n_files; i++) {
		assert(!strncmp(p->file[i].path, "/etc/", 5) && !strstr(p->file[i].path, "/../"));
		assert(p->file[i].spot && p->file[i].text);
	}
	for (unsigned int how = 0; p && how <= PP_RENDER_KUBERNETES; how++) {
		struct pp_buf PP_AUTO_BUF text = PP_BUF(8 * PP_PROFILE_BYTES);

		pp_render(p, (enum pp_render)how, &text);
		assert(text.failed || text.len);
	}
	pp_profile_free(p);
	return 0;
}
