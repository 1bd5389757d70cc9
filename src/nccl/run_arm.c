/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_nccl_run: its making and its end, and the words of its arms.
 */
#include "nccl/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

static const struct {
	const char *name, *title;
} arms[PP_NCCL_ARMS] = {
	[PP_NCCL_ARM_UNCHANGED] = {"unchanged", "the user's own environment"},
	[PP_NCCL_ARM_A] = {"A", "GDR off by level"},
	[PP_NCCL_ARM_B] = {"B", "DMA-BUF off"},
	[PP_NCCL_ARM_C] = {"C", "GDR read off"},
	[PP_NCCL_ARM_PINNED] = {"pinned", "the network named"},
};

const char *pp_nccl_arm_name(enum pp_nccl_arm a)
{
	return arms[a].name;
}

const char *pp_nccl_arm_title(enum pp_nccl_arm a)
{
	return arms[a].title;
}

int pp_nccl_arm_parse(const char *text, enum pp_nccl_arm *ret)
{
	for (unsigned int i = 0; i < PP_NCCL_ARMS; i++) {
		if (strcmp(text, arms[i].name) != 0)
			continue;
		*ret = (enum pp_nccl_arm)i;
		return 0;
	}
	return -EINVAL;
}

int pp_nccl_run_new(enum pp_nccl_arm arm, uint32_t nodes, struct pp_nccl_run **ret)
{
	struct pp_nccl_run *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->arm = arm;
	r->judgement.root = PP_NCCL_NONE;
	r->node = nodes ? calloc(nodes, sizeof(*r->node)) : NULL;
	if (nodes && !r->node) {
		free(r);
		return -ENOMEM;
	}
	r->n_nodes = nodes;
	*ret = r;
	return 0;
}

void pp_nccl_run_done(struct pp_nccl_run *r)
{
	free(r->node);
	r->node = NULL;
	r->n_nodes = 0;
}

struct pp_nccl_run *pp_nccl_run_free(struct pp_nccl_run *r)
{
	if (r)
		pp_nccl_run_done(r);
	free(r);
	return NULL;
}

bool pp_nccl_run_expects(const struct pp_nccl_run_node *n, const char *hca)
{
	size_t len;

	for (const char *at = n->expected_hca; *at; at += len + (at[len] == ',')) {
		len = strcspn(at, ",");
		if (len == strlen(hca) && !strncmp(at, hca, len))
			return true;
	}
	return false;
}
