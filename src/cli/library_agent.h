/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The other end of prove's gate 3: what a node does that is not the coordinator's. It runs its rank
 * of the job, which is this program's own and nothing else, and says how it ended.
 *
 *   {"do": "library", "arm", "rank", "size", "name", "gpu", "sizes", "busy_ok"}
 *     -> {"ok": true, "status": exit code, "text": its last word}
 *     -> {"ok": false, "text"}
 */
#ifndef PP_CLI_LIBRARY_AGENT_H
#define PP_CLI_LIBRARY_AGENT_H

#include "cli/library_child.h"
#include "base/json.h"
#include "rdma/channel.h"

/*
 * True: @message was of this kind, and has been answered. @token: the party's, which the ranks
 * share, too. As struct pp_agent_options has it.
 */
bool pp_library_agent_answer(struct pp_channel *c, const json_t *message, const void *token);
/* The same as a struct pp_party_service's agent, which knows nothing else. */
int pp_library_agent_serve(struct pp_channel *c, const void *token);

/* The command; @job->size is that of the party. */
void pp_library_agent_write(struct pp_json *j, const struct pp_library_job *job);

#endif
