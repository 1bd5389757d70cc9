/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One library's list of GPUs (NVML's or CUDA's answer), joined by PCI address with the node's GPU
 * objects. Answers may come from a recording: nothing in them is trusted.
 */
#ifndef PP_NODE_GPU_SIDE_H
#define PP_NODE_GPU_SIDE_H

#include "node/ask.h"
#include "node/node.h"

struct pp_gpu_side {
	const char *name;	 /* "NVML" */
	struct pp_answer answer; /* owned */
	const json_t *list;	 /* of the answer; NULL when it holds none */
	const char *why;	 /* no list: the reason; else NULL */
	/* By position among the GPU objects, in the node's arena. */
	const json_t **of;    /* the library's object, NULL where it has none */
	const char **why_not; /* then: the reason */
};

/* Takes @answer. @member: name of the list in it. */
void pp_gpu_side_init(struct pp_gpu_side *s, const char *name, struct pp_answer answer,
		      const char *member);
void pp_gpu_side_done(struct pp_gpu_side *s);

/* Makes a GPU object for each listed address that is none yet. */
void pp_gpu_side_add(struct pp_node *n, const struct pp_gpu_side *s);
/* Fills of and why_not. -ENOMEM. */
int pp_gpu_side_match(struct pp_node *n, struct pp_gpu_side *s);

/* The text of a member, made safe, in the arena; NULL when it is absent, empty or too long. */
const char *pp_gpu_text(struct pp_node *n, const json_t *from, const char *member);
/* 0 to @max; -ENOENT otherwise. */
int pp_gpu_number(const json_t *from, const char *member, int64_t max, int64_t *ret);
/* Did the library refuse the member as not supported by this GPU? */
bool pp_gpu_unsupported(const json_t *from, const char *member);
/* Sets the fact unknown: the member's own reason, else the GPU's, else the library's. */
void pp_gpu_absent(struct pp_node *n, struct pp_object *o, enum pp_fact_id id,
		   const struct pp_gpu_side *s, unsigned int i, const char *member,
		   const char *source);

#endif
