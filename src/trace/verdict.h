/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the joined table proves. Pure. The rules, strongest first (docs/internals/trace.md has what
 * must hold besides each):
 *
 *   dmabuf    B says is_dmabuf with an exporter and a device that is the hca; or A saw the attach
 *             return for that process's region; or bufinfo has as many attachments as there are
 *             regions that they can be of
 *   peermem   B says is_peer; or A saw ib_peer_umem_get() return 0 with a p2p call inside; or a
 *             peer client has as many regions as the only process, and VmPin their bytes
 *   efa-p2p   a p2p call inside a registration with EFA where there is no peer symbol
 *   host      B says neither, or A saw only ib_umem_get() from the start
 *   unknown   all else: the surfaces that are missing are named
 *
 * A removed surface only ever weakens a verdict. Kernel against log: the kernel is believed.
 */
#ifndef PP_TRACE_VERDICT_H
#define PP_TRACE_VERDICT_H

#include "base/json.h"
#include "trace/table.h"

/* Fills the verdicts of every region and process of @t. -ENOMEM. */
int pp_trace_judge(const struct pp_trace_input *in, struct pp_trace_table *t);

/* pass: every region known and proven; unknown else (also when a surface hid regions). */
enum pp_verdict pp_trace_verdict(const struct pp_trace_table *t);

/*
 * Evidence records, one a region and one a process: {"about": "registration", "witness": "kernel",
 * "scope": "mr" | "process", "registration", "state", "pid", "hca", ..., "raw", "simulated"}.
 */
void pp_trace_write(struct pp_json *j, const char *key, const struct pp_trace_table *t);
/* Each surface: {"surface", "state", "why", "how"}. */
void pp_trace_write_surfaces(struct pp_json *j, const char *key, const struct pp_trace_table *t);

const char *pp_mix_name(enum pp_mix m); /* "none", "one", "mixed", "unknown" */

#endif
