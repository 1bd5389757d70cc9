/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/environ.h"

#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

/* What container managers set for those who ask. */
static const char *const allowed[] = {"container=", "KUBERNETES_SERVICE_PORT=", "SLURM_CONTAINER=",
				      "APPTAINER_CONTAINER=", "SINGULARITY_CONTAINER="};

bool pp_environ_is(const char *path)
{
	static const char proc[] = "/proc/", name[] = "/environ";
	size_t len = strlen(path);

	return !strncmp(path, proc, sizeof(proc) - 1) && len > sizeof(proc) + sizeof(name) - 2 &&
	       !strcmp(path + len - (sizeof(name) - 1), name);
}

void pp_environ_filter(const char *text, size_t len, struct pp_buf *out)
{
	const char *end = text + len, *next;

	for (; text < end; text = next) {
		next = memchr(text, '\0', (size_t)(end - text));
		next = next ? next + 1 : end;
		for (size_t i = 0; i < PP_ARRAY_LEN(allowed); i++) {
			size_t n = strlen(allowed[i]);

			if ((size_t)(next - text) > n && !memcmp(text, allowed[i], n))
				pp_buf_add(out, text, (size_t)(next - text));
		}
	}
}
