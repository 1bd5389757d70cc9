/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/symbol.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const char FILE_NAME[] = "/proc/kallsyms";

/* "ffffffffc064e970 T ib_umem_get\t[ib_uverbs]" */
static void match(char *line, struct pp_symbol *symbols, size_t n)
{
	char *name = strchr(line, ' '), *module;

	if (!name || !name[1] || !strchr("tT", name[1]) || name[2] != ' ')
		return;
	name += 3;
	name[strcspn(name, "\n")] = '\0';
	module = strchr(name, '\t');
	if (module) {
		*module++ = '\0';
		module += *module == '[';
		module[strcspn(module, "]")] = '\0';
	}
	for (size_t i = 0; i < n; i++) {
		struct pp_symbol *s = &symbols[i];

		if (s->found || strcmp(s->name, name) != 0 ||
		    (s->module && (!module || strcmp(s->module, module) != 0)))
			continue;
		s->found = true;
		(void)snprintf(s->in, sizeof(s->in), "%s", module ? module : "vmlinux");
	}
}

int pp_symbols_find(struct pp_symbol *symbols, size_t n, struct pp_error *err)
{
	FILE *f = fopen(FILE_NAME, "re");
	char line[512];

	if (!f)
		return pp_error_set(err, -errno, "%s: %s", FILE_NAME, pp_errno_name(errno));
	while (fgets(line, sizeof(line), f))
		match(line, symbols, n);
	(void)fclose(f);
	return 0;
}
