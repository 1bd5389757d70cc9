/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: one end of a pair under test, in a process of its own; does what the coordinator
 * tells it over a channel, and ends with it. Nothing else of peerpath calls a driver while traffic
 * runs.
 *
 * Commands are objects {"do": WORD, ...}; each has one answer, {"ok": true, ...} or
 * {"ok": false, "error": errno, "status": IBV_WC_* or 0, "call": ..., "text": one line}.
 *
 *   look      what is here: hcas, ports, gpus, rails, facts for ends   -> "node", "ends"
 *   open      device, port, GID, memory kind, size, registration, pins the thread to the rail's
 *             CPUs                          -> "addresses", "keys", "attempts", "registration"...
 *   connect   the peer's addresses and keys
 *   ready     what the peer needs before it begins (receives posted; TCP: listens)
 *   run       op, measure, size, messages, role                        -> what was measured
 *   fill, check   the pattern of a seed, outside of the timed part     -> bytes, wrong, first
 *   negative  one way of asking for what must be refused               -> refused, status
 *   trace     what the kernel shows of other agents' memory: asked of an agent of its own, since
 *             looking forks and one with memory registered may not
 *   link      by which way a software device has carried what was sent  -> "link"
 *   close     deregisters, closes; then another open may follow
 *
 * The table of commands is in agent.c, one file a group of them; what each takes and answers
 * stands beside its function. Numbers from the coordinator are bounded as a stranger's are.
 */
#ifndef PP_BENCH_AGENT_H
#define PP_BENCH_AGENT_H

#include "rdma/channel.h"
#include "trace/evidence.h"

struct pp_agent_options {
	pp_trace_registry_ask *registry; /* of the software device; NULL: nobody asks it */
	/*
	 * By which way the software device carried what process @pid sent: a word of struct
	 * pp_bench_rung's link, static; NULL: it does not say. NULL: nobody asks it.
	 */
	const char *(*link)(pid_t pid);
	/*
	 * Sees each message first; true: it was none of ours, and has been answered. So a node that
	 * listens serves more than traffic. NULL: nobody does.
	 */
	bool (*other)(struct pp_channel *c, const json_t *message, const void *arg);
	const void *other_arg;
};

/*
 * struct pp_party_service's agent; @arg: struct pp_agent_options, or NULL. Exit status: 0 the
 * channel ended.
 */
int pp_agent_serve(struct pp_channel *c, const void *arg);

#endif
