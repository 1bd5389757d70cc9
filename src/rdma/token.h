/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The token: the secret that the processes of one run share. It is read from the environment or
 * from a file, never from a command line, where everybody on the host could see it.
 *
 * A token is a key, not a password: who has seen two ends greet each other can try others at
 * leisure. A drawn one has 128 bits.
 */
#ifndef PP_RDMA_TOKEN_H
#define PP_RDMA_TOKEN_H

#include <stddef.h>

#include "base/error.h"

enum { PP_TOKEN_MOST = 256, PP_TOKEN_DRAWN = 32 };

struct pp_launch;

/* Long enough, not too long, printable without blanks inside. -EINVAL. Never shows the token. */
int pp_token_check(const char *token, struct pp_error *err);
/* The content of a file, blanks around it cut off; the file's bytes as they came. Pure. */
int pp_token_parse(const char *bytes, size_t len, char ret[PP_TOKEN_MOST + 1],
		   struct pp_error *err);
/* -EACCES: others may read it. -EINVAL, -ENOENT... */
int pp_token_read(const char *path, char ret[PP_TOKEN_MOST + 1], struct pp_error *err);
/* A new one: 128 bits of the kernel's, in hexadecimal. */
int pp_token_draw(char ret[PP_TOKEN_MOST + 1], struct pp_error *err);
/*
 * For launched processes that were given none: made of what all of them know by their launcher.
 * Not a secret where the launcher gives none (Slurm, PMI and PMIx do not): whoever knows the
 * job's number, user and variables can compute it. It keeps runs apart; against strangers on the
 * network set PEERPATH_TOKEN.
 */
void pp_token_derive(const struct pp_launch *launch, unsigned int user,
		     char ret[PP_TOKEN_MOST + 1]);
/*
 * The one of this process: of @file (NULL: none is named), else of PEERPATH_TOKEN, else derived
 * from
 * @launch (NULL: it was not launched). -ENOENT, without a word: there is none.
 */
int pp_token_find(const char *file, const struct pp_launch *launch, char ret[PP_TOKEN_MOST + 1],
		  struct pp_error *err);

#endif
