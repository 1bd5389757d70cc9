/* SPDX-License-Identifier: Apache-2.0 */
#include "node/module.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

/* A large machine lists some 300 modules in 30 KiB. */
enum { LIST_BYTES = 256 << 10 };

static const char PROC_MODULES[] = "/proc/modules", SYS_MODULE[] = "/sys/module";

/*
 * Every kernel has this one built in. A recording may hold a part of /sys/module only, and what a
 * part does not list is not absent.
 */
static const char ALWAYS[] = "kernel";

bool pp_names_hold(const struct pp_names *names, const char *name)
{
	for (size_t i = 0; i < names->n; i++)
		if (!strcmp(names->name[i], name))
			return true;
	return false;
}

void pp_modules_read(struct pp_source *s, struct pp_modules *ret)
{
	struct pp_modules *l = ret;
	size_t len = 0;

	*l = (struct pp_modules){.proc = malloc(LIST_BYTES + 1), .proc_error = -ENOMEM};
	if (l->proc)
		l->proc_error = pp_source_read(s, PROC_MODULES, l->proc, LIST_BYTES, &len);
	if (!l->proc_error && !pp_is_text(l->proc, len))
		l->proc_error = -EBADMSG;
	if (!l->proc_error)
		l->proc[len] = '\0';
	else
		free(pp_take(l->proc));
	l->sys_error = pp_source_list(s, SYS_MODULE, &l->sys);
	if (l->sys_error)
		l->sys = (struct pp_names){0};
	l->sys_whole = !pp_source_cut(s) && pp_names_hold(&l->sys, ALWAYS);
}

void pp_modules_done(struct pp_modules *l)
{
	free(l->proc);
	pp_names_done(&l->sys);
}

/* The module's line of /proc/modules, "nvidia_peermem 16384 0 - Live 0x0 (OE)"; NULL if none. */
static const char *line_of(const char *proc, const char *module)
{
	size_t len = strlen(module);

	for (const char *p = proc; *p; p += strcspn(p, "\n"), p += *p == '\n')
		if (!strncmp(p, module, len) && p[len] == ' ')
			return p;
	return NULL;
}

/* Field number @want of a line, from 0; "" when there is none or it is too long. */
static void field(const char *line, unsigned int want, char *ret, size_t size)
{
	size_t len;

	for (*ret = '\0'; *line && *line != '\n'; line += len) {
		line += *line == ' ';
		len = strcspn(line, " \n");
		if (want--)
			continue;
		if (len < size) {
			memcpy(ret, line, len);
			ret[len] = '\0';
		}
		return;
	}
}

/* Is it in /sys/module without being in the list: built in, or the list could not be read? */
static struct pp_module in_sys(struct pp_source *s, const struct pp_modules *l, const char *name)
{
	struct pp_module m = {.source = SYS_MODULE, .presence = PP_MODULE_UNKNOWN};
	char path[PP_PATH_MAX];
	struct pp_names files;

	if (pp_names_hold(&l->sys, name)) {
		m.presence = PP_MODULE_LOADED;
		return m;
	}
	/* The directory above may refuse to be listed while this one does not. */
	if (!pp_path_join(SYS_MODULE, name, path) && !pp_source_list(s, path, &files)) {
		pp_names_done(&files);
		m.presence = PP_MODULE_LOADED;
		return m;
	}
	if (l->foreign)
		(void)snprintf(m.why, sizeof(m.why),
			       "the driver runs and %s does not list it: the modules of its kernel "
			       "are not visible here",
			       l->proc ? PROC_MODULES : SYS_MODULE);
	else if (l->proc && l->sys_whole)
		m.presence = PP_MODULE_NOT_LOADED;
	else
		(void)snprintf(m.why, sizeof(m.why), "%s: %s; %s: %s", PROC_MODULES,
			       l->proc ? "does not list it" : pp_source_why(l->proc_error),
			       SYS_MODULE,
			       l->sys_error   ? pp_source_why(l->sys_error)
			       : l->sys_whole ? "does not list it"
					      : "not whole");
	return m;
}

struct pp_module pp_module_find(struct pp_source *s, const struct pp_modules *l, const char *name)
{
	struct pp_module m = {.presence = PP_MODULE_LOADED, .source = PROC_MODULES};
	const char *line = l->proc ? line_of(l->proc, name) : NULL;
	char word[16];

	if (!line)
		return in_sys(s, l, name);
	field(line, 2, m.users, sizeof(m.users));
	field(line, 4, word, sizeof(word));
	if (strcmp(word, "Live") != 0) {
		m.presence = PP_MODULE_UNKNOWN;
		(void)snprintf(m.why, sizeof(m.why), "%s: its state is '%s', not 'Live'",
			       PROC_MODULES, word);
	}
	return m;
}
