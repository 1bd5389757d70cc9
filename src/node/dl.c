/* SPDX-License-Identifier: Apache-2.0 */
#include "node/dl.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "node/ask.h"
#include "base/banned.h"

int pp_dl_permit(const struct pp_dl_options *options, const char *name, struct pp_error *err)
{
	const char *loader = options->loader ? options->loader : "/usr/bin/nvidia-modprobe";

	if (!options->module_absent || access(loader, X_OK))
		return 0;
	return pp_error_set(err, -ENODEV,
			    "not asked: the kernel module is not loaded, and %s would load it "
			    "through %s",
			    name, loader);
}

int pp_dl_open(const char *name, struct pp_json *data, void **ret, struct pp_error *err)
{
	struct link_map *map = NULL;
	char doing[96];
	const char *why;
	void *lib;

	(void)snprintf(doing, sizeof(doing), "loading %s", name);
	pp_ask_doing(doing);
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		why = dlerror();
		why = why ? why : "no reason given";
		/* The library itself, not one that it needs in turn. */
		if (!strncmp(why, name, strlen(name)) && strstr(why, "No such file"))
			return pp_error_set(err, -ENOENT, "%s not found", name);
		return pp_error_set(err, -ELIBACC, "%s cannot be loaded: %s", name, why);
	}
	if (!dlinfo(lib, RTLD_DI_LINKMAP, &map) && map && map->l_name && *map->l_name)
		pp_json_str(data, "library", map->l_name);
	*ret = lib;
	return 0;
}

void pp_dl_missing(struct pp_json *data, const char *member, const char *why_fmt, ...)
{
	char key[64], why[192];
	va_list ap;

	(void)snprintf(key, sizeof(key), "%s_error", member);
	va_start(ap, why_fmt);
	(void)vsnprintf(why, sizeof(why), why_fmt, ap);
	va_end(ap);
	pp_json_str(data, key, why);
}
