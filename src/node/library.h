/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a shared library as the dynamic loader would: LD_LIBRARY_PATH, then the directories of
 * ld.so.conf, then the built-in ones. Only by looking: nothing is loaded or run.
 *
 * Not looked at: DT_RPATH of the program, glibc-hwcaps, and the loader's cache, which holds what
 * the same directories held at its making.
 */
#ifndef PP_NODE_LIBRARY_H
#define PP_NODE_LIBRARY_H

#include "base/arena.h"
#include "node/source.h"

enum { PP_LIBRARY_DIRS = 128 };

struct pp_library_path {
	const char *dir[PP_LIBRARY_DIRS]; /* canonical, existing, each once; in the arena */
	size_t n;
};

/*
 * @ld_library_path NULL: not set. @arch: machine word ("x86_64") or NULL. Directories that do
 * not exist are left out.
 */
void pp_library_path_init(struct pp_source *s, struct pp_arena *arena, const char *ld_library_path,
			  const char *arch, struct pp_library_path *ret);

/* Canonical path of the first library called exactly @name in or after directory *at; moves *at
 * behind it. -ENOENT. Start with *at = 0. */
int pp_library_find(struct pp_source *s, const struct pp_library_path *path, const char *name,
		    size_t *at, char ret[PP_PATH_MAX]);

/*
 * Every symbolic link of @path followed, the last one included. -ENOENT when it leads nowhere,
 * -ELOOP, -ENAMETOOLONG, and as pp_source_link().
 */
int pp_library_real(struct pp_source *s, const char *path, char ret[PP_PATH_MAX]);

/* "libnccl.so.2.28.9" -> "2.28.9": three parts or more, since fewer are an ABI's number. -ENOENT.
 */
int pp_library_version_of_name(const char *path, char *buf, size_t size);

/*
 * From the strings in the file's .rodata: what follows @marker up to a blank ("NCCL version "),
 * or with @marker NULL the one string that is a version of three numbers and nothing else.
 * -ENOENT when there is none, -EEXIST when several differ.
 */
int pp_library_version_inside(struct pp_source *s, const char *path, const char *marker, char *buf,
			      size_t size);

#endif
