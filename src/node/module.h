/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is a kernel module there? One way of telling for all that ask.
 *
 * Loaded: /proc/modules lists it as live, or /sys/module has it (built in, where the list does not
 * have it). Not loaded: /proc/modules could be read and /sys/module could be listed whole, and
 * neither has it. Everything else is unknown.
 */
#ifndef PP_NODE_MODULE_H
#define PP_NODE_MODULE_H

#include "node/source.h"

enum pp_module_presence { PP_MODULE_NOT_LOADED, PP_MODULE_LOADED, PP_MODULE_UNKNOWN };

struct pp_module {
	enum pp_module_presence presence;
	char why[256];	/* of PP_MODULE_UNKNOWN */
	char users[24]; /* use count as /proc/modules says, "" when it does not */
	const char *source;
};

/* What can be known of any module. */
struct pp_modules {
	char *proc; /* text of /proc/modules; NULL when unreadable */
	int proc_error;
	struct pp_names sys; /* names in /sys/module */
	int sys_error;
	bool sys_whole; /* else what is not listed is not absent */
	bool foreign;	/* set by who knows that these are not the modules of the kernel here */
};

/* pp_modules_done() frees. */
void pp_modules_read(struct pp_source *s, struct pp_modules *ret);
void pp_modules_done(struct pp_modules *l);

struct pp_module pp_module_find(struct pp_source *s, const struct pp_modules *l, const char *name);

bool pp_names_hold(const struct pp_names *names, const char *name);

#endif
