/* SPDX-License-Identifier: Apache-2.0 */
/* One arm of a job on this node: started, watched, its logs read and judged. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/interrupt.h"
#include "cli/nccl_run.h"
#include "cli/soft_program.h"
#include "cli/trace_soft.h"
#include "nccl/run_judge.h"
#include "nccl/run_logs.h"
#include "nccl/run_watch.h"
#include "node/module.h"
#include "base/banned.h"

enum { ENVIRONMENT_MOST = 8 << 20, ROOM_LEAST = 64 << 10 };

/*
 * The terminal goes to the command where we have it and where nobody else of our group reads from
 * it: a pager behind us would lose it.
 */
static int open_terminal(bool *ret_same_group)
{
	struct stat out;
	int fd;

	*ret_same_group = false;
	if (!isatty(STDIN_FILENO))
		return -1;
	if (!fstat(STDOUT_FILENO, &out) && (S_ISFIFO(out.st_mode) || S_ISSOCK(out.st_mode))) {
		*ret_same_group = true;
		return -1;
	}
	fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
	if (fd >= 0 && tcgetpgrp(fd) != getpgrp())
		pp_cleanup_close(&fd), fd = -1;
	return fd;
}

/* The words, as a shell would be given them. */
static void write_command(char *const *argv, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (; *argv && len < size - 1; argv++)
		len += (size_t)snprintf(ret + len, size - len, "%s%s", len ? " " : "", *argv);
	pp_sanitize(ret, false);
}

static void name_node(struct pp_nccl_run_node *n)
{
	if (gethostname(n->host, sizeof(n->host) - 1) || !n->host[0] || n->host[0] == '(')
		(void)snprintf(n->host, sizeof(n->host), "localhost");
	pp_sanitize(n->host, false);
	(void)snprintf(n->id, sizeof(n->id), "%.*s", (int)strcspn(n->host, "."), n->host);
}

static unsigned int active_port(struct pp_node *node, const struct pp_object *hca)
{
	const struct pp_object *port = NULL;

	while ((port = pp_object_next(&node->facts, PP_PORT, port)))
		if (port->parent == hca &&
		    !strcmp(pp_fact_str_or(port, PP_F_PORT_STATE, ""), "ACTIVE"))
			return (unsigned int)pp_fact_int_or(port, PP_F_PORT_NUMBER, 0);
	return 0;
}

/* The hcas that are rails of GPUs, each once; of the first its first port that is ACTIVE. */
static void name_rails(const struct pp_nccl_running *c, struct pp_nccl_run_node *n)
{
	struct pp_node *node = c->session.node;
	const struct pp_object *pair = NULL;

	while (node && (pair = pp_object_next(&node->facts, PP_PAIR, pair))) {
		const char *name = pair->peer ? pp_fact_str_or(pair->peer, PP_F_HCA_NAME, "") : "";
		size_t len = strlen(n->expected_hca), room = sizeof(n->expected_hca) - len;

		if (!*name || !pp_fact_is(pair, PP_F_PAIR_RAIL) || pp_nccl_run_expects(n, name) ||
		    strlen(name) + 2 > room)
			continue;
		(void)snprintf(n->expected_hca + len, room, "%s%.60s", len ? "," : "", name);
		if (!len)
			n->expected_port = active_port(node, pair->peer);
	}
}

/*
 * The software device's counters are files of a made /sys. Without one there are none, and those of
 * this machine's own hcas count what is not the job's.
 */
static void forget_ports(struct pp_nccl_running *c, struct pp_nccl_run_node *n)
{
	static const char why[] = "the software device has no port counters without a made /sys: "
				  "'peerpath soft --sysfs DIR --' in front, or 'nccl run "
				  "--simulate'";

	for (unsigned int i = 0; i < n->traffic.n_ports; i++)
		if (n->traffic.port[i].simulated)
			return;
	if (!n->simulated || !c->ranks.wide)
		return;
	n->traffic.n_ports = 0;
	(void)snprintf(n->traffic.why_ports, sizeof(n->traffic.why_ports), "%s", why);
	if (!c->said_ports && !pp_args_has(c->args, "quiet"))
		(void)pp_complain(c->args, 0, "%s", why);
	c->said_ports = true;
}

static int watch(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r,
		 const struct pp_nccl_environment *e)
{
	char copy[PATH_MAX], error_copy[PATH_MAX], why[128];
	bool same_group;
	int PP_AUTO_CLOSE terminal = open_terminal(&same_group);
	struct pp_error err = {0};
	const struct pp_nccl_watch_options o = {
		.src = c->session.src,
		.command = {.argv = c->argv,
			    .environment = e->at,
			    .out = pp_args_has(c->args, "json") ? STDERR_FILENO : STDOUT_FILENO,
			    .copy = copy,
			    .copy_most = PP_NCCL_RUN_LOG / 4,
			    .error_copy = error_copy,
			    .terminal = terminal,
			    .same_group = same_group,
			    .mask = &c->mask},
		.timeout = c->timeout,
		.stopped = pp_interrupted,
		.node_wide = c->ranks.wide,
		/* Its siblings on this node have the launcher's process for a parent. */
		.top = pp_nccl_ranks_many(&c->ranks) && getppid() > 1 ? getppid() : 0,
		.module_absent = pp_source_probe(c->session.src, "/sys/module/nvidia") == 0,
		.blind = c->blind,
		.registry = pp_trace_soft_ask,
	};
	int bad;

	(void)snprintf(copy, sizeof(copy), "%s/%s", dir, PP_NCCL_LOG_STDOUT);
	(void)snprintf(error_copy, sizeof(error_copy), "%s/%s", dir, PP_NCCL_LOG_STDERR);
	bad = pp_nccl_watch(&o, r, &r->node[0], &err);
	if (bad)
		return pp_complain(c->args, bad == -ENOMEM ? PP_EXIT_INTERNAL : PP_EXIT_USAGE,
				   "'%s': %s", c->argv[0],
				   pp_soft_program_why(c->argv[0], -bad, why, sizeof(why)));
	forget_ports(c, &r->node[0]);
	return 0;
}

/* The user's own file has what it would have had. */
static void give_back(struct pp_nccl_running *c, const char *dir, const struct pp_nccl_run *r)
{
	const char *mine = NULL, *keep = pp_args_get(c->args, "keep-logs");
	struct pp_error err = {0};
	unsigned int failed = 0;

	for (uint32_t i = 0; i < r->n_settings; i++)
		if (!strcmp(r->setting[i].name, "NCCL_DEBUG_FILE") &&
		    r->setting[i].from == PP_NCCL_FROM_LOGGING && r->setting[i].was[0])
			mine = r->setting[i].was;
	if (mine)
		failed = pp_nccl_logs_return(dir, mine, &err);
	if (failed)
		(void)pp_complain(c->args, 0, "NCCL_DEBUG_FILE: %u logs could not be copied: %s",
				  failed, err.text);
	else if (mine && !pp_args_has(c->args, "quiet"))
		(void)fprintf(stderr,
			      "peerpath nccl run: NCCL's logs are where NCCL_DEBUG_FILE "
			      "wants them: %s\n",
			      mine);
	if (keep && pp_nccl_logs_keep(dir, keep, pp_nccl_arm_name(r->arm), &err))
		(void)pp_complain(c->args, 0, "--keep-logs: %s", err.text);
}

/* Where ranks have no directory in common, rank 0's has all that was judged. */
static void keep_others(struct pp_nccl_running *c, const char *dir, const struct pp_nccl_run *r)
{
	const char *keep = pp_args_get(c->args, "keep-logs");
	char from[PATH_MAX], name[64];
	struct pp_error err = {0};

	(void)snprintf(from, sizeof(from), "%s/" PP_NCCL_OTHERS, dir);
	(void)snprintf(name, sizeof(name), "%s-others", pp_nccl_arm_name(r->arm));
	if (keep && pp_nccl_logs_keep(from, keep, name, &err))
		(void)pp_complain(c->args, 0, "--keep-logs: %s", err.text);
}

/* Logs that had no room were cut by the system, and nobody counted what is missing. */
static void say_full(struct pp_nccl_running *c, const char *dir)
{
	struct statvfs fs;

	if (statvfs(dir, &fs) || (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_LEAST)
		return;
	(void)pp_complain(
		c->args, 0,
		"%s is full: what the job wrote is cut there, and judged as far as it goes; "
		"TMPDIR names another place",
		dir);
}

/* Ours, and those that other ranks have sent. */
static int read_logs(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r,
		     struct pp_nccl_feed *feed)
{
	struct pp_nccl_run_node *n = &r->node[0];
	struct pp_nccl_log_count own = {0}, others = {0};
	uint64_t most = PP_NCCL_RUN_LOG;
	char folder[PATH_MAX];

	(void)pp_nccl_logs_read(dir, PP_NCCL_RUN_LOG, pp_nccl_log_to_feed, feed, &own);
	n->log_bytes += own.bytes;
	n->log_dropped += own.dropped;
	(void)snprintf(folder, sizeof(folder), "%s/" PP_NCCL_OTHERS, dir);
	if (pp_nccl_ranks_many(&c->ranks))
		(void)pp_nccl_logs_read(folder, most * c->ranks.launch.size, pp_nccl_log_to_feed,
					feed, &others);
	pp_nccl_feed_end(feed);
	return 0;
}

static bool went_wrong(const struct pp_nccl_run *r)
{
	for (uint32_t i = 0; i < r->n_nodes; i++)
		if (r->node[i].status)
			return true;
	return r->missing > 0;
}

static int judge(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r)
{
	char line[PP_NCCL_TEXT];
	struct pp_nccl_feed feed;
	int bad = pp_nccl_feed_init(&feed);

	if (!bad)
		bad = read_logs(c, dir, r, &feed);
	if (!bad)
		bad = pp_nccl_run_judge(&feed, r, line, sizeof(line));
	pp_nccl_feed_done(&feed);
	if (bad)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	for (uint32_t i = 0; i < r->n_nodes; i++)
		r->simulated = r->simulated || r->node[i].simulated;
	return went_wrong(r) || line[0] ? pp_nccl_running_root(c, dir, line, r) : 0;
}

static void ignore(void *ctx, const char *name, const char *bytes, size_t len)
{
	(void)ctx;
	(void)name;
	(void)bytes;
	(void)len;
}

/* Who ended between two looks has left a log all the same. */
static void count_ranks(const char *dir, struct pp_nccl_run_node *n)
{
	struct pp_nccl_log_count count = {0};

	(void)pp_nccl_logs_read(dir, /* most= */ 0, ignore, NULL, &count);
	if (n->ranks < count.files)
		n->ranks = count.files;
}

/* It has run here; of several ranks the first judges all of it, and the others tell it. */
static int finish(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r)
{
	int code;

	say_full(c, dir);
	give_back(c, dir, r);
	pp_nccl_logs_observed(dir, &r->node[0]);
	count_ranks(dir, &r->node[0]);
	if (c->ranks.launch.rank)
		return pp_nccl_ranks_report(c, dir, r);
	code = pp_nccl_ranks_collect(c, dir, r);
	if (!code)
		code = judge(c, dir, r);
	if (!code && pp_nccl_ranks_many(&c->ranks))
		keep_others(c, dir, r);
	return code;
}

int pp_nccl_running_arm(struct pp_nccl_running *c, enum pp_nccl_arm arm)
{
	struct pp_arena arena = PP_ARENA(ENVIRONMENT_MOST);
	struct pp_nccl_environment e;
	struct pp_nccl_run *r = NULL;
	struct pp_error err = {0};
	struct pp_place place;
	int code;

	if (pp_place_make(PP_PLACE_LOGS, &place, &err))
		return pp_complain(c->args, PP_EXIT_INTERNAL, "%s", err.text);
	code = pp_nccl_run_new(arm, 1, &r) ? pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory")
					   : 0;
	if (!code) {
		write_command(c->argv, r->command, sizeof(r->command));
		name_node(&r->node[0]);
		name_rails(c, &r->node[0]);
		code = pp_nccl_running_environment(c, place.path, r, &e, &arena);
	}
	if (!code)
		code = pp_nccl_ranks_join(c, place.path);
	if (!code)
		code = watch(c, place.path, r, &e);
	if (!code)
		code = finish(c, place.path, r);
	pp_nccl_ranks_leave(c);
	if (!code)
		c->run[arm] = pp_take(r);
	r = pp_nccl_run_free(r);
	pp_arena_done(&arena);
	pp_place_done(&place);
	return code;
}
