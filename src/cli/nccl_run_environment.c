/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command of a job is started with: the user's environment, what the needed lines of the
 * logs want, and what makes the arm. Each variable is said, with its reason and its reverse.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "cli/nccl_run.h"
#include "nccl/run_logging.h"
#include "nccl/run_logs.h"
#include "base/banned.h"

struct making {
	struct pp_nccl_running *c;
	const char *dir;
	struct pp_nccl_run *r;
	struct pp_nccl_environment *e;
};

static int set(struct making *m, enum pp_nccl_origin from, const char *name, const char *value,
	       const char *why)
{
	return pp_nccl_run_set(m->r, m->e, from, name, value, why);
}

/* What NCCL would see: the environment, else its files. */
static const char *seen(const struct making *m, const char *name)
{
	const char *value = pp_nccl_environment_get(m->e, name);

	return value ? value : pp_nccl_run_setting_value(m->r, name);
}

static int add_logging(struct making *m)
{
	char file[PATH_MAX], list[1024];
	int r = 0;

	if (!pp_nccl_logs_enough(seen(m, "NCCL_DEBUG")))
		r = set(m, PP_NCCL_FROM_LOGGING, "NCCL_DEBUG", "INFO",
			"connections and the network are printed at INFO only");
	if (!r && pp_nccl_log_subsystems(seen(m, "NCCL_DEBUG_SUBSYS"), list, sizeof(list)))
		r = set(m, PP_NCCL_FROM_LOGGING, "NCCL_DEBUG_SUBSYS", list,
			"NET, GRAPH and REG hold whether an hca may read GPU memory, and why not");
	(void)snprintf(file, sizeof(file), "%s/%s", m->dir, PP_NCCL_LOG_PATTERN);
	if (!r)
		r = set(m, PP_NCCL_FROM_LOGGING, "NCCL_DEBUG_FILE", file,
			seen(m, "NCCL_DEBUG_FILE")
				? "each process has a file of its own; it is copied to yours at "
				  "the end"
				: "lines of several processes in one stream tear each other; "
				  "--keep-logs keeps the files");
	return r;
}

static int add_observer(struct making *m)
{
	const char *auditors = pp_nccl_environment_get(m->e, "LD_AUDIT");
	char list[PATH_MAX + 1024], folder[PATH_MAX];
	int r;

	if (m->c->blind)
		return 0;
	(void)snprintf(folder, sizeof(folder), "%s/%s", m->dir, PP_NCCL_LOG_OBSERVED);
	(void)snprintf(list, sizeof(list), "%s%s%s", m->c->observer,
		       auditors && *auditors ? ":" : "", auditors ? auditors : "");
	r = set(m, PP_NCCL_FROM_LOGGING, "LD_AUDIT", list,
		"the observer sees each registration of memory, and changes none");
	return r ? r
		 : set(m, PP_NCCL_FROM_LOGGING, "PEERPATH_OBSERVE", folder,
		       "where the observer writes");
}

static int add_arm(struct making *m)
{
	static const struct {
		const char *name, *value, *why;
	} arms[PP_NCCL_ARMS] = {
		[PP_NCCL_ARM_A] = {"NCCL_NET_GDR_LEVEL", "LOC",
				   "control A: without GDR its marker and registrations of GPU "
				   "memory must be gone"},
		[PP_NCCL_ARM_B] = {"NCCL_DMABUF_ENABLE", "0",
				   "control B: without DMA-BUF only peer memory can carry GDR"},
		[PP_NCCL_ARM_C] = {"NCCL_NET_GDR_READ", "0",
				   "control C: only the sending side must lose the marker"},
		[PP_NCCL_ARM_PINNED] = {"NCCL_NET", NULL,
					"pinned: with another network the job fails instead of "
					"falling back"},
	};
	const char *value = arms[m->r->arm].value;

	if (!arms[m->r->arm].name)
		return 0;
	return set(m, PP_NCCL_FROM_ARM, arms[m->r->arm].name,
		   value ? value : pp_args_get(m->c->args, "net"), arms[m->r->arm].why);
}

static void say(const struct pp_nccl_running *c, const struct pp_nccl_run *r)
{
	if (pp_args_has(c->args, "quiet"))
		return;
	for (uint32_t i = 0; i < r->n_settings; i++) {
		const struct pp_nccl_run_setting *s = &r->setting[i];

		if (s->from != PP_NCCL_FROM_ARM && s->from != PP_NCCL_FROM_LOGGING)
			continue;
		(void)fprintf(stderr, "peerpath nccl run: %s=%s: %s; without: %s\n", s->name,
			      s->value, s->why, s->undo);
	}
	if (c->blind)
		(void)pp_complain(c->args, 0, "unobserved: %s", c->blind);
}

int pp_nccl_running_environment(struct pp_nccl_running *c, const char *dir, struct pp_nccl_run *r,
				struct pp_nccl_environment *e, struct pp_arena *arena)
{
	struct making m = {.c = c, .dir = dir, .r = r, .e = e};
	char folder[PATH_MAX];
	int bad;

	(void)snprintf(folder, sizeof(folder), "%s/%s", dir, PP_NCCL_LOG_OBSERVED);
	if (mkdir(folder, 0700) && errno != EEXIST)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "%s: %s", folder, strerror(errno));
	bad = pp_nccl_run_settings_read(r, c->session.src, environ);
	bad = bad ? bad : pp_nccl_environment_copy(e, arena, environ);
	bad = bad ? bad : add_logging(&m);
	bad = bad ? bad : add_observer(&m);
	bad = bad ? bad : add_arm(&m);
	bad = bad ? bad : pp_nccl_running_meet(c, e);
	if (bad)
		return pp_complain(c->args, PP_EXIT_INTERNAL, "out of memory");
	say(c, r);
	return 0;
}
