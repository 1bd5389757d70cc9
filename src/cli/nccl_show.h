/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PP_CLI_NCCL_SHOW_H
#define PP_CLI_NCCL_SHOW_H

#include "base/out.h"
#include "nccl/judge.h"

/* The judgement as one document, or as one short table, the reason, and what to run next. */
void pp_nccl_show(struct pp_out *o, const struct pp_nccl_job *job,
		  const struct pp_nccl_group *group, const struct pp_nccl_judgement *j);
/* The rest of the document: communicators, connections, errors. JSON only. */
void pp_nccl_show_details(struct pp_json *json, const struct pp_nccl_job *job,
			  const struct pp_nccl_group *group, const struct pp_nccl_judgement *j);

/* "file:line", "" for no place. */
const char *pp_nccl_show_place(const struct pp_nccl_job *job, struct pp_nccl_place at, char *text,
			       size_t size);

#endif
