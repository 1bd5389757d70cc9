/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the dynamic linker asks an auditor (rtld-audit(7)). Only bindings to the verbs libraries are
 * looked at, so that no other library's calls cost anything; no PLT hook is defined.
 */
#include <string.h>

#include "plugin/observe/observe.h"

#include "base/banned.h"

#define EXPORT __attribute__((visibility("default")))

/* Older glibc (before 2.35) has interface version 1, and refuses what it does not know. */
EXPORT unsigned int la_version(unsigned int version)
{
	if (!observe_line_setup())
		return 0; /* not watching: the linker forgets this library */
	return version < LAV_CURRENT ? version : LAV_CURRENT;
}

static bool is_called(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, name, strlen(name));
}

EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
	const char *path = map->l_name ? map->l_name : "";

	(void)cookie;
	if (space != LM_ID_BASE)
		return 0;
	if (is_called(path, "libc.so."))
		observe_base_seen(map);
	/* What the verbs libraries call of each other is a part of the program's own call. */
	if (is_called(path, "libibverbs.so") || is_called(path, "libmlx5.so"))
		return LA_FLG_BINDTO;
	return LA_FLG_BINDFROM;
}

EXPORT uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned int index, uintptr_t *from, uintptr_t *to,
			      unsigned int *flags, const char *name)
{
	(void)index;
	(void)from;
	(void)to;
	(void)flags;
	return observe_call_bind(name, symbol->st_value);
}
