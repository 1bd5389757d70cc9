/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of verbs and of the options that every verb takes.
 */
#include "cli/verb.h"

#include <limits.h>
#include <string.h>

#include "cli/bench_options.h"
#include "cli/exit_style.h"
#include "cli/fleet_options.h"
#include "cli/nccl_options.h"
#include "base/banned.h"

static const char *const color_words[] = {"auto", "always", "never", NULL};

#define JSON                                                                 \
	{                                                                    \
		"json", 'j', NULL, "one JSON document instead of text", NULL \
	}
#define COLOR                                                     \
	{                                                         \
		"color", 0, "WHEN", "color verdicts", color_words \
	}
#define HELP                                         \
	{                                            \
		"help", 'h', NULL, "this text", NULL \
	}

const struct pp_option pp_common_options[] = {
	JSON,
	{"root", 0, "DIR", "read files of the live tree DIR (a container's /host)", NULL},
	{"replay", 0, "PATH", "read a capture, a bundle or a bare tree; ask nothing live", NULL},
	COLOR,
	HELP,
	{NULL},
};
const struct pp_option pp_output_options[] = {JSON, COLOR, HELP, {NULL}};
const struct pp_option pp_help_options[] = {HELP, {NULL}};

static const struct pp_option identity_options[] = {
	{"facts", 0, NULL, "every fact with its source instead", NULL},
	{NULL},
};

static const struct pp_option topo_options[] = {
	{"device", 'd', "BDF", "add a PCI function to the matrix; may be repeated", NULL},
	{"smi", 0, "FILE", "read a pasted matrix of nvidia-smi instead; - is standard input", NULL},
	{"nccl-xml", 0, "FILE", "judge an NCCL topology file by NCCL's rules; - is standard input",
	 NULL},
	{"svg", 0, "FILE", "draw the machine as SVG into FILE; - is standard output", NULL},
	{"expect", 0, "FILE", "compare with the planned layout in FILE", NULL},
	{"expect-write", 0, "FILE", "write this machine's layout, to be expected elsewhere", NULL},
	{"force", 0, NULL, "replace an existing file", NULL},
	{NULL},
};

static const char *const fail_on_words[] = {"degraded", "fail", NULL};

/* Of verbs whose verdict others act on. */
#define EXIT_STYLE                                                                             \
	{"exit-style", 0, "STYLE", "one line, and the exit status as others expect it",        \
	 pp_exit_style_words},                                                                 \
		{"on-unknown", 0, "WORD", "slurm: what a verdict of unknown counts as (pass)", \
		 pp_on_unknown_words},                                                         \
	{                                                                                      \
		"max-output", 0, "BYTES", "of that line (npd: 80)", NULL                       \
	}

static const struct pp_option prove_options[] = {
	{"quick", 0, NULL, "gates 0 and 1 alone, within 5 s whatever hangs; no bundle", NULL},
	{"peer", 0, "HOST", "the other node, where 'peerpath bench --listen' waits; repeatable",
	 NULL},
	{"simulate", 0, NULL, "on the software device; nothing is proven by it", NULL},
	{"nccl", 0, "FILE", "gate 3 by this document of 'nccl run --controls'", NULL},
	{"nccl-logs", 0, "DIR", "its logs, as 'nccl run --keep-logs' left them, into the bundle",
	 NULL},
	{"canary", 0, "FILE", "gate 4: what COMMAND is measured by, as 'canary -f'", NULL},
	{"before", 0, "PATH", "gate 4 beside this result of before a change; repeatable", NULL},
	{"after-reboot", 0, "BUNDLE", "compare gate 2 with that of an earlier bundle", NULL},
	{"token-file", 0, "FILE", "the run's shared secret; else PEERPATH_TOKEN", NULL},
	{"port", 'p', "PORT", "of the control channel (18516)", NULL},
	{"device", 'd', "HCA", "BDF or name of the hca for gate 2; else each GPU's rail", NULL},
	{"gpu", 0, "BDF", "GPU for gate 2", NULL},
	{"size", 's', "LIST", "bytes of a message in gates 2 and 3: the job's sizes", NULL},
	{"duration", 'D', "TIME", "of one repeat of bandwidth", NULL},
	{"repeats", 0, "N", "of each figure", NULL},
	{"busy-ok", 0, NULL, "gates 2 and 3 though others use the hca or the GPU (recorded)", NULL},
	{"no-probes", 0, NULL, "gate 2 puts no probe into the kernel", NULL},
	{"through", 0, "GATE",
	 "how far to go: a gate's name or number; 4 with --canary, 3 with --nccl or a peer, else 1",
	 NULL},
	{"keep-going", 0, NULL, "go on behind a failed gate (recorded)", NULL},
	{"output", 'o', "PATH", "where the bundle goes: a directory, or NAME.tar.zst", NULL},
	{"no-bundle", 0, NULL, "write no bundle", NULL},
	{"scrub", 0, NULL,
	 "the bundle for strangers: names, serial numbers, GUIDs, addresses replaced", NULL},
	{"force", 0, NULL, "replace an existing bundle", NULL},
	{"deadline", 0, "TIME", "ask no driver anything after this time (30, 30s, 2m)", NULL},
	{"nfd", 0, "FILE", "write labels for Kubernetes' node feature discovery", NULL},
	{"nfd-expires", 0, "TIME", "after which the labels of --nfd are void (1h)", NULL},
	{"rules", 0, "DIR", "take rules from DIR alone", NULL},
	{"policy", 0, "FILE", "fixes that the site forbids", NULL},
	{"fail-on", 0, "VERDICT", "verdict from which on the exit status is 1", fail_on_words},
	EXIT_STYLE,
	{NULL},
};

static const struct pp_option capture_options[] = {
	{"output", 'o', "PATH", "a directory, or an archive when it ends in .tar.zst", NULL},
	{"scrub", 0, NULL, "replace names, serial numbers, GUIDs and addresses", NULL},
	{"force", 0, NULL, "replace an existing bundle", NULL},
	{NULL},
};

static const struct pp_option check_options[] = {
	{"probe", 0, NULL, "register one page, and one of each GPU, with each hca", NULL},
	{"busy-ok", 0, NULL, "probe an hca or a GPU that others use too (recorded)", NULL},
	{"details", 0, NULL, "cause, how to decide, fix, its reverse and source of each finding",
	 NULL},
	{"deadline", 0, "TIME", "ask no driver anything after this time (30, 30s, 2m)", NULL},
	{"rules", 0, "DIR", "take rules from DIR alone", NULL},
	{"policy", 0, "FILE", "fixes that the site forbids", NULL},
	{"fail-on", 0, "VERDICT", "verdict from which on the exit status is 1", fail_on_words},
	EXIT_STYLE,
	{NULL},
};

static const struct pp_option explain_options[] = {
	{"check", 0, NULL, "show what the facts say, run checks that only read", NULL},
	{"here", 0, NULL, "this process has the failing one's limits and settings", NULL},
	{"no-node", 0, NULL, "judge by the text alone", NULL},
	{"all", 'a', NULL, "every cause in full, not the first three", NULL},
	{"rules", 0, "DIR", "take known problems from DIR alone", NULL},
	{"policy", 0, "FILE", "fixes that the site forbids", NULL},
	{NULL},
};

static const struct pp_option soft_options[] = {
	{"config", 'c', "CONFIG", "the devices: a file, or text such as name=soft0,address=::1",
	 NULL},
	{"sysfs", 0, "DIR", "show CMD a made /sys/class/infiniband in DIR, with counters", NULL},
	{"beside", 0, "BDF,...", "--sysfs: the i-th device beside the i-th PCI function", NULL},
	{"replay", 0, "PATH", "--sysfs: of the machine that PATH has recorded", NULL},
	{"no-nccl", 0, NULL, "set no variable of NCCL for CMD", NULL},
	{"all", 'a', NULL, "show: every queue pair, not the first 32", NULL},
	{"pid", 'p', "PID", "fault: of this process alone", NULL},
	{"device", 'd', "NAME", "fault: of this device alone", NULL},
	{NULL},
};

static const char *const bundle_words[] = {"show", "verify", "html", NULL};

static const struct pp_option bundle_options[] = {
	{"output", 'o', "FILE", "html: where the page goes; - is standard output", NULL},
	{"force", 0, NULL, "html: replace an existing page", NULL},
	{NULL},
};

static const char *const nccl_words[] = {"judge", "run", "perf", NULL};

static const struct pp_option trace_options[] = {
	{"pid", 0, "PID", "regions of this process alone", NULL},
	{"watch", 0, "[SECONDS]", "one line for each change, until Ctrl-C; looks every second",
	 NULL},
	{"traffic", 0, "[SECONDS]", "count for 2 s what ports, GPUs and memory controllers carry",
	 NULL},
	{"log", 0, "FILE", "an NCCL log to compare with what the kernel shows; repeatable", NULL},
	{"no-probes", 0, NULL, "put no probe into the kernel", NULL},
	{NULL},
};

static const struct pp_option canary_options[] = {
	{"file", 'f', "FILE", "what is measured, and by how much it may move; needed", NULL},
	{"repeats", 0, "N", "runs, whatever the file says", NULL},
	{"evidence", 0, "FILE", "the job's path: a document of nccl run --controls, in this state",
	 NULL},
	{"output", 'o', "PATH", "write a bundle, with this node beside the result", NULL},
	{"force", 0, NULL, "replace an existing bundle", NULL},
	{NULL},
};

static const struct pp_option compare_options[] = {
	{"before", 0, "PATH", "more of before the change; may be repeated", NULL},
	{"after", 0, "PATH", "more of after the change; may be repeated", NULL},
	{"html", 0, "FILE", "a page with every run; - is standard output", NULL},
	{"force", 0, NULL, "replace an existing page", NULL},
	{NULL},
};

static const char *const profile_words[] = {"list",   "show",  "render",   "diff",
					    "verify", "apply", "rollback", NULL};
static const char *const render_words[] = {"files", "ansible", "image", "kubernetes", NULL};

static const struct pp_option profile_options[] = {
	{"for", 0, "TOOL", "render: the text for it", render_words},
	{"dry-run", 0, NULL, "apply, rollback: say what would change, change nothing", NULL},
	{"after-reboot", 0, NULL, "verify: also beside what verify saw last", NULL},
	{"rules", 0, "DIR", "verify: take rules from DIR alone", NULL},
	{"policy", 0, "FILE", "apply, verify: fixes that the site forbids", NULL},
	{"fail-on", 0, "VERDICT", "verdict from which on the exit status is 1", fail_on_words},
	{NULL},
};

static const char *const rollout_words[] = {"plan", "status", NULL};

static const struct pp_option rollout_options[] = {
	{"from", 0, "PROFILE", "plan: the profile in effect", NULL},
	{"to", 0, "PROFILE", "plan: the one that comes", NULL},
	{"pool", 0, "N", "plan: nodes of the pool", NULL},
	{"cluster", 0, "N", "plan: nodes of the cluster", NULL},
	{"force", 0, NULL, "plan: replace an existing file", NULL},
	{"fail-on", 0, "VERDICT", "verdict from which on the exit status is 1", fail_on_words},
	{NULL},
};

static const char *const level_words[] = {"early", "alarm", NULL};

static const struct pp_option monitor_options[] = {
	{"baseline", 0, "PATH", "a bundle, or a directory: the newest in it that passed", NULL},
	{"policy", 0, "FILE", "thresholds: section monitor of the site's policy", NULL},
	{"state", 0, "FILE", "database (monitor.db in $STATE_DIRECTORY, /var/lib/peerpath)", NULL},
	{"events", 0, "FILE", "append what is told to FILE, one JSON object a line", NULL},
	{"log", 0, "GLOB", "logs of jobs, for errors of NCCL; may be repeated", NULL},
	{"slo", 0, "WHERE", "the application's metrics: a file, or http://127.0.0.1:PORT/metrics",
	 NULL},
	{"listen", 0, "ADDRESS:PORT", "metrics for Prometheus there (a port alone: 127.0.0.1)",
	 NULL},
	{"textfile", 0, "FILE", "metrics into FILE, for node_exporter", NULL},
	{"period", 0, "TIME", "how often each watcher looks, instead of its own period", NULL},
	{"once", 0, NULL, "one round, then say what is known", NULL},
	{"for", 0, "TIME", "stop after this time", NULL},
	{"show", 0, NULL, "say what the database holds, and look at nothing", NULL},
	{"simulate", 0, NULL, "take a bundle of a simulation for the baseline", NULL},
	{"any-node", 0, NULL, "take a bundle of another node for the baseline", NULL},
	{"fail-on", 0, "LEVEL", "level from which on the exit status is 1 (early)", level_words},
	{NULL},
};

/* No recording: a profile is about files that can be changed. */
static const struct pp_option profile_common[] = {
	JSON,	{"root", 0, "DIR", "the root of an image, or of a tree elsewhere", NULL},
	COLOR,	HELP,
	{NULL},
};

const struct pp_verb pp_verbs[] = {
	{"identity", "", "who this node is: GPUs, hcas, software, two digests",
	 "Lists GPUs by UUID and BDF, hcas by BDF, port, GUID and netdev, the software tuple, and\n"
	 "two digests: the software fingerprint, and the topology class, which is equal for\n"
	 "machines wired alike though bus numbers differ. Read-only.",
	 "0 listed", identity_options, pp_common_options, NULL, 0, 0, pp_cmd_identity},
	{"prove", "[--canary FILE -- COMMAND]",
	 "gates in order -> verdict and bundle (the main job)",
	 "Runs the gates in order, prints for each its verdict, what may be claimed, the "
	 "strongest\n"
	 "evidence, what would raise it and the next command, and leaves a bundle that verifies\n"
	 "and replays. Read-only for the machine.",
	 NULL, prove_options, pp_common_options, NULL, 0, UINT_MAX, pp_cmd_prove},
	{"bench", "[HOST...]", "host and GPU memory over RDMA, paired and verified",
	 "Moves the same messages between the same ends in every way there is: a TCP socket, host\n"
	 "memory, GPU memory by DMA-BUF, by peermem, through the host. Interleaved, repeated, "
	 "every\n"
	 "byte compared. Then says which link is slow or broken. HOST runs 'bench --listen'; under "
	 "a\n"
	 "launcher (srun, mpirun) each rank is a node.",
	 NULL, pp_bench_options_table, pp_output_options, NULL, 0, PP_PARTY_NODES - 1,
	 pp_cmd_bench},
	{"topo", "", "how it is wired: matrix, rails, routes, links",
	 "Prints the rails and why they were chosen, the matrix as nvidia-smi draws it, the route "
	 "of\n"
	 "each GPU and NIC pair, and links below their possible width. Read-only; ACS bits need\n"
	 "root.",
	 "0 shown; --expect: 0 as planned, 1 it differs, 2 no verdict; --nccl-xml: "
	 "1 NCCL makes bad use of it, 2 no GPU or NIC in it; 2 no PCI tree",
	 topo_options, pp_common_options, NULL, 0, 0, pp_cmd_topo},
	{"capture", "", "write a recording of this node",
	 "Writes what the facts were made of (files, links, errors, answers of drivers and\n"
	 "libraries) and the facts themselves, so that --replay gives the same answers elsewhere.\n"
	 "--scrub makes a copy fit for strangers.",
	 "0 written", capture_options, pp_common_options, NULL, 0, 0, pp_cmd_capture},
	{"bundle", "show|verify|html PATH", "show or verify a bundle, or make a page of it",
	 "show says what a bundle is and what it found; verify says whether every file of it is\n"
	 "there and as it was written (exit 0), or which is not (exit 65). html writes one page\n"
	 "that needs nothing else: gates, the machine's picture, plots, and the text behind each.",
	 "0 shown, whole, or written", bundle_options, pp_output_options, bundle_words, 2, 2,
	 pp_cmd_bundle},
	{"check", "", "what is missing or wrong (gate 1), and what repairs it",
	 "Applies the rules to the facts of this node: what is wrong, where, why, and the next\n"
	 "command. What could not be read is unknown, never good. Read-only unless --probe.",
	 NULL, check_options, pp_common_options, NULL, 0, 0, pp_cmd_check},
	{"nccl", "judge LOG... | run [-- CMD...] | perf [NAME...]",
	 "which path NCCL took: from its logs, or watched (gate 3)",
	 "judge reads the logs of one job: all ranks together, any NCCL from 2.12 on, - is\n"
	 "standard input. Proven needs the connection lines of every rank and checked results of\n"
	 "large messages; everything else is refuted or unproven, with file and line. run starts\n"
	 "CMD under observation, and with --controls once more for each control that must fail.\n"
	 "perf times all_reduce (reduce_scatter, all_gather, all_to_all, send_recv) by the NCCL\n"
	 "that a job here would load, as nccl-tests does, and compares every result whole.",
	 "judge: 0 proven, 1 refuted, 2 unproven or no line of NCCL; run: the usual; perf: 0 all "
	 "right, 1 wrong or failed, 2 could not begin, or not verified",
	 pp_nccl_options_table, pp_output_options, nccl_words, 1, UINT_MAX, pp_cmd_nccl},
	{"explain", "[FILE...|WORDS...]", "error text -> cause, how to decide, fix",
	 "Reads a log (files, or standard input) or words such as: errno 524 from\n"
	 "ibv_reg_dmabuf_mr. Names known problems, the most certain first, each with the check\n"
	 "that decides, the fix and its reverse. Facts of this node narrow it; nothing is\n"
	 "changed, and a command is run only by --check, where it only reads.",
	 "0 nothing or only harmless lines found, 1 a known problem found, 2 not "
	 "known: no rule fits, or lines that read like errors are not explained",
	 explain_options, pp_common_options, NULL, 0, 4096, pp_cmd_explain},
	{"trace", "[-- CMD [ARG]...]",
	 "who registered what memory, by which path: the kernel's word",
	 "Lists the memory regions of every process, and by which path each is registered:\n"
	 "DMA-BUF, peermem, data-direct, EFA's P2P or host memory. It asks the kernel, not the\n"
	 "program: RDMA netlink, dma-buf's bufinfo, VmPin, peer clients' counters, and probes for\n"
	 "the length of the look. With CMD it watches from the start, its libibverbs too. What\n"
	 "cannot be seen is unknown, with what would show it.",
	 "0 every region is known and proven, 1 a log or the program's call is refuted, or a "
	 "region's path changed, 2 unknown",
	 trace_options, pp_common_options, NULL, 0, UINT_MAX, pp_cmd_trace},
	{"canary", "-f FILE -- CMD [ARG]...",
	 "measure an application, to compare it after a change",
	 "Runs CMD several times, and takes from what it prints the figures that FILE declares,\n"
	 "with the cost to the host beside them. A run that failed, was throttled or lacks a\n"
	 "figure is void. compare sets two such results beside each other.",
	 "0 measured, 2 no run counts", canary_options, pp_output_options, NULL, 1, UINT_MAX,
	 pp_cmd_canary},
	{"compare", "BEFORE AFTER", "an application before a change beside itself after it",
	 "BEFORE and AFTER are results of canary, bundles that hold one, or directories of these.\n"
	 "Per metric: medians, the shift with its interval at 95 %, and whether that is more than\n"
	 "the margin declared. What is unlike and was not declared to change is refused, each\n"
	 "difference named. The verdict follows what was proven of the mechanism.",
	 "0 better, or the same with the mechanism proven, 1 worse, 2 not told: unlike, too few "
	 "runs, or the mechanism unproven",
	 compare_options, pp_output_options, NULL, 2, 2, pp_cmd_compare},
	{"soft", "show | fault [SPEC...] | -- CMD [ARG]...",
	 "a software RDMA device for any verbs program",
	 "Runs CMD on a RoCE v2 device in software: no NIC, no kernel module, no root. CMD finds\n"
	 "the device's libibverbs before any other. show lists what running programs hold: "
	 "devices,\n"
	 "queue pairs, registered memory, counters. fault lets things go wrong for them, as\n"
	 "reg_mr=ENOMEM@3 or loss=1%; fault list, fault clear. What runs there is simulated: it\n"
	 "proves nothing about hardware.",
	 "CMD's own, 126 CMD cannot be run, 127 no CMD; show: 0 shown; fault: 0 changed or "
	 "listed, 1 a process did not change, 2 no process to change",
	 soft_options, pp_output_options, NULL, 1, UINT_MAX, pp_cmd_soft},
	{"profile", "ACTION [PROFILE...]",
	 "the registration path as a whole profile: apply, roll back",
	 "list, show, render, diff, verify, apply, rollback. A profile is the software that a\n"
	 "registration path needs and the files that say so. apply puts its files there, all or\n"
	 "nothing, and keeps what was; rollback gives that back byte for byte. What must be\n"
	 "installed, reloaded or rebooted is said, never done. A change that was cut short is\n"
	 "completed or undone by the next start.",
	 "0 done, or as declared; 1 refused (nothing touched), diff: it differs, verify: not as "
	 "declared; 2 verify: unknown",
	 profile_options, profile_common, profile_words, 1, 3, pp_cmd_profile},
	{"rollout", "plan|status FILE", "a change of profile from a pair to the cluster",
	 "pair -> the same after a reboot -> a small pool -> the cluster. plan writes FILE, into\n"
	 "which people put the paths of bundles; status reads them and says how far it is, what\n"
	 "is missing, and what forbids to go on. No step is skipped; unlike nodes stop it.",
	 "0 done or on its way, 1 stopped or skipped, 2 unknown", rollout_options,
	 pp_output_options, rollout_words, 2, 2, pp_cmd_rollout},
	{"fleet", "add|serve|prune|VIEW ...", "results of many nodes in one database",
	 "add FILE... takes bundles and JSON documents; views list, show NODE, classes, diff A B "
	 "look at\n"
	 "nodes; odd says who is unlike its like and since when, rails which are slow everywhere;\n"
	 "serve takes results by HTTP and shows one page; prune lets old results go.",
	 "0 shown, added or pruned, 1 odd ones or slow rails", pp_fleet_options_table,
	 pp_output_options, pp_fleet_words, 1, 100000, pp_cmd_fleet},
	{"history", "[NODE]", "what the direct path gained, by class, software and size",
	 "Every gain in the fleet's database: the direct path beside the one through the host, or\n"
	 "beside the same job with it off; with NODE also what changed on it and was measured.",
	 "0 shown", pp_history_options_table, pp_output_options, NULL, 0, 1, pp_cmd_history},
	{"monitor", "", "keep it proven: a service that watches for changes",
	 "Looks at the node again and again, without traffic and without a CUDA context, compares\n"
	 "with the baseline, and tells each change once: info, early or alarm. Nothing is an "
	 "alarm\n"
	 "unless the site's policy says so. State survives restarts; SIGHUP reads policy\n"
	 "and baseline anew. docs/monitor.md has what is watched.",
	 "--once, --for, --show: 0 nothing is open, 1 a signal is that is early or an alarm "
	 "(--fail-on), 2 nothing can be read; 0 told to stop, by Ctrl-C too, 64 usage, 65 "
	 "unreadable or tampered input, 70 internal.",
	 monitor_options, pp_common_options, NULL, 0, 0, pp_cmd_monitor},
	{"completion", "", "print the bash completion", "Prints the bash completion script.",
	 "0 printed", NULL, pp_help_options, NULL, 0, 0, pp_cmd_completion},
	{"help", "[VERB]", "help on a verb", "Prints help.", "0 printed", NULL, pp_help_options,
	 NULL, 0, 1, pp_cmd_help},
	{NULL},
};

const struct pp_verb *pp_verb_find(const char *name)
{
	for (const struct pp_verb *v = pp_verbs; v->name; v++)
		if (!strcmp(v->name, name))
			return v;
	return NULL;
}
