/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_profile: one declared state of a node's registration path, as data: what software it
 * needs, and which files say so (peerpath-profile(1) has the format).
 *
 * A profile names files in known places only (profile/spot.h), holds text only, and runs nothing.
 */
#ifndef PP_PROFILE_PROFILE_H
#define PP_PROFILE_PROFILE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/words.h"
#include "judge/condition.h"
#include "profile/spot.h"

enum pp_profile_action {
	PP_PROFILE_WRITE,  /* the file holds this text and nothing else */
	PP_PROFILE_SET,	   /* the file has these keys; its other lines stay */
	PP_PROFILE_ABSENT, /* there is no such file */
	PP_PROFILE_KEEP,   /* stays as the profile before it left it */
};

struct pp_profile_file {
	enum pp_profile_action action;
	const char *path;
	const struct pp_spot *spot;
	unsigned int mode;  /* of a file that is written */
	const char *text;   /* lines, each with its end; of SET: "KEY=VALUE" lines */
	const char *fix_id; /* word that policy.conf can forbid; NULL none */
	const char *why;    /* NULL: not said */
};

/* A part of the software tuple. */
struct pp_profile_need {
	enum pp_kind scope; /* of which each object must meet it */
	struct pp_condition when;
	const char *install; /* what brings it about; NULL: not said */
	const char *fix_id;  /* NULL none */
};

/* A value for an operator of Kubernetes; @value NULL: to be left as it is. */
struct pp_profile_value {
	const char *operator_name; /* "gpu-operator", "network-operator" */
	const char *key;	   /* "driver.rdma.enabled" */
	const char *value, *why;
};

enum {
	PP_PROFILE_FILES = 32,
	PP_PROFILE_NEEDS = 64,
	PP_PROFILE_VALUES = 32,
	PP_PROFILE_HEAD = 2000, /* bytes of a value of [profile] */
	PP_PROFILE_BYTES = 256 << 10
};

struct pp_profile {
	struct pp_arena arena;
	const char *name, *title, *source, *reviewed;
	enum pp_registration registration; /* the path it is for: dmabuf or peermem */
	struct pp_profile_file file[PP_PROFILE_FILES];
	struct pp_profile_need need[PP_PROFILE_NEEDS];
	struct pp_profile_value value[PP_PROFILE_VALUES];
	unsigned int n_files, n_needs, n_values;
	char sha256[65]; /* of its text */
};

/* @name is used in messages. -EINVAL (file:line), -EFBIG, -ENOMEM. */
int pp_profile_parse(const char *name, const char *text, size_t len, struct pp_profile **ret,
		     struct pp_error *err);
struct pp_profile *pp_profile_free(struct pp_profile *p); /* returns NULL */

/* A word that can be a profile's name: [a-z0-9-], at most 40. */
bool pp_profile_is_name(const char *word);

const char *pp_profile_action_name(enum pp_profile_action a); /* "write", "set", ... */
/* NULL: it says nothing of this path. */
const struct pp_profile_file *pp_profile_file_of(const struct pp_profile *p, const char *path);

/*
 * Text of @old with the keys of @set ("KEY=VALUE" lines) having these values: a line that assigns
 * one of them is dropped, the new ones are put at the end. Of "" it is @set itself.
 */
void pp_profile_merge(const char *old, const char *set, struct pp_buf *ret);

/* Does text of modules-load.d load nvidia_peermem? Does text of modprobe.d keep it from loading? */
bool pp_profile_loads_peermem(const char *text);
bool pp_profile_blocks_peermem(const char *text);

#endif
