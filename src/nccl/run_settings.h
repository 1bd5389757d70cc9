/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a run: NCCL's variables that the user has, by whichever way, and those that were
 * added to them.
 */
#ifndef PP_NCCL_RUN_SETTINGS_H
#define PP_NCCL_RUN_SETTINGS_H

#include "base/arena.h"
#include "nccl/run.h"
#include "node/source.h"

/* NULL: there are PP_NCCL_RUN_SETTINGS already. Texts are copied, cleaned and cut. */
struct pp_nccl_run_setting *pp_nccl_run_setting_add(struct pp_nccl_run *r, enum pp_nccl_origin from,
						    const char *name, const char *value);
/* The value that a process of the job would see: what was added first, then environment, files. */
const char *pp_nccl_run_setting_value(const struct pp_nccl_run *r, const char *name);

/*
 * Of the user: NCCL_* of @environment (NULL-terminated, "NAME=value"), then of NCCL_CONF_FILE or
 * else ~/.nccl.conf, then of /etc/nccl.conf, as NCCL reads them. A value that is a secret by its
 * name is left out. -ENOMEM: a file was not read.
 */
int pp_nccl_run_settings_read(struct pp_nccl_run *r, struct pp_source *s, char *const *environment);

/* An environment to be changed and given to a program. Texts are the arena's or borrowed. */
struct pp_nccl_environment {
	struct pp_arena *arena;
	char **at; /* NULL-terminated */
	size_t n, room;
};

/* Copies the list. -ENOMEM. */
int pp_nccl_environment_copy(struct pp_nccl_environment *e, struct pp_arena *arena,
			     char *const *from);
/* NULL when it is not set. */
const char *pp_nccl_environment_get(const struct pp_nccl_environment *e, const char *name);
/* -ENOMEM. */
int pp_nccl_environment_set(struct pp_nccl_environment *e, const char *name, const char *value);

/*
 * Sets @name for the command, and says so in the run: why, and how to do without.
 */
int pp_nccl_run_set(struct pp_nccl_run *r, struct pp_nccl_environment *e, enum pp_nccl_origin from,
		    const char *name, const char *value, const char *why);

#endif
