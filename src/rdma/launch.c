/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/launch.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "rdma/hostlist.h"
#include "base/banned.h"

enum { RANKS = 1 << 20, FIRST_PORT = 20000, PORTS = 12000 };

/*
 * What each launcher sets. The order decides where several are there: what starts processes by
 * another launcher (mpirun by srun) leaves that one's variables in them, with other numbers.
 */
static const struct launcher {
	const char *by, *rank;
	const char *size[2]; /* the first that is set */
	const char *local_rank, *local_size;
	const char *nodes; /* how many: with one, all are local */
	/* What tells its runs apart; some may be missing. */
	const char *job[3];
} launchers[] = {
	{.by = "peerpath",
	 .rank = "PEERPATH_RANK",
	 .size = {"PEERPATH_SIZE"},
	 .job = {"PEERPATH_JOB"}},
	{.by = "Open MPI",
	 .rank = "OMPI_COMM_WORLD_RANK",
	 .size = {"OMPI_COMM_WORLD_SIZE"},
	 .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
	 .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
	 .job = {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "SLURM_JOB_ID"}},
	{.by = "PMI",
	 .rank = "PMI_RANK",
	 .size = {"PMI_SIZE"},
	 .local_rank = "MPI_LOCALRANKID",
	 .local_size = "MPI_LOCALNRANKS",
	 .job = {"PMI_JOBID", "SLURM_JOB_ID", "PBS_JOBID"}},
	{.by = "Slurm",
	 .rank = "SLURM_PROCID",
	 .size = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
	 .local_rank = "SLURM_LOCALID",
	 .nodes = "SLURM_STEP_NUM_NODES",
	 .job = {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEP_LAUNCHER_PORT"}},
	{.by = "PMIx", .rank = "PMIX_RANK", .size = {"PEERPATH_SIZE"}, .job = {"PMIX_NAMESPACE"}},
};

typedef const char *getter(const char *name);

/* NULL for a name that is NULL, unset or empty. */
static const char *value(getter *get, const char *name)
{
	const char *v = name ? get(name) : NULL;

	return v && *v ? v : NULL;
}

static int bad(const char *name, const char *text, const char *why, struct pp_error *err)
{
	char shown[64];

	(void)snprintf(shown, sizeof(shown), "%.60s", text);
	pp_sanitize(shown, false);
	return pp_error_set(err, -EINVAL, "%s is \"%s\": %s", name, shown, why);
}

/* @ret is left alone where the variable is not set. */
static int number(getter *get, const char *name, unsigned int *ret, struct pp_error *err)
{
	const char *text = value(get, name);
	uint64_t n;

	if (!name || !text)
		return 0;
	if (pp_parse_u64(text, 0, RANKS, &n))
		return bad(name, text, "no number of a process", err);
	*ret = (unsigned int)n;
	return 0;
}

/*
 * A step of Slurm, not the shell of an allocation: 'salloc' sets the job's variables only, and a
 * batch script has SLURM_PROCID 0 and the job's number of tasks, but is one process (seen with
 * Slurm 22.05).
 */
static bool is_step(getter *get)
{
	const char *step = value(get, "SLURM_STEP_ID");

	return step && value(get, "SLURM_STEP_NODELIST") && value(get, "SLURM_STEP_NUM_TASKS");
}

static bool is_equal(getter *get, const char *a, const char *b)
{
	const char *x = value(get, a), *y = value(get, b);

	return x && y && strcmp(x, y) == 0;
}

/* Slurm speaks PMI as well ('srun --mpi=pmi2'); its own variables tell more. */
static bool is_slurms_pmi(getter *get)
{
	return is_step(get) && is_equal(get, "PMI_RANK", "SLURM_PROCID") &&
	       is_equal(get, "PMI_SIZE", "SLURM_STEP_NUM_TASKS");
}

static const struct launcher *which(getter *get)
{
	for (unsigned int i = 0; i < PP_ARRAY_LEN(launchers); i++) {
		const struct launcher *l = &launchers[i];

		if (!value(get, l->rank) || (strcmp(l->by, "Slurm") == 0 && !is_step(get)) ||
		    (strcmp(l->by, "PMI") == 0 && is_slurms_pmi(get)))
			continue;
		return l;
	}
	return NULL;
}

/* Two variables of one quantity that differ come from two launchers, one inside the other. */
static int agree(getter *get, const char *a, const char *b, struct pp_error *err)
{
	unsigned int x = 0, y = 0;
	int r = number(get, a, &x, err);

	if (!r)
		r = number(get, b, &y, err);
	if (r || !value(get, a) || !value(get, b) || x == y)
		return r;
	return pp_error_set(err, -EINVAL,
			    "%s is %u and %s is %u: two launchers, one inside the other; set "
			    "PEERPATH_RANK, PEERPATH_SIZE and PEERPATH_COORDINATOR",
			    a, x, b, y);
}

static int too_large(const char *a, unsigned int x, const char *b, unsigned int y,
		     struct pp_error *err)
{
	return pp_error_set(err, -EINVAL, "%s is %u, but %s is %u", a, x, b, y);
}

static int fit(getter *get, const struct launcher *l, const char *size, const struct pp_launch *n,
	       struct pp_error *err)
{
	if (n->rank >= n->size)
		return too_large(l->rank, n->rank, size, n->size, err);
	if (n->local_size > n->size)
		return too_large(l->local_size, n->local_size, size, n->size, err);
	if (n->local_rank > n->rank)
		return too_large(l->local_rank, n->local_rank, l->rank, n->rank, err);
	if (value(get, l->local_size) && n->local_rank >= n->local_size)
		return too_large(l->local_rank, n->local_rank, l->local_size, n->local_size, err);
	return 0;
}

static int numbers(getter *get, const struct launcher *l, struct pp_launch *ret,
		   struct pp_error *err)
{
	const char *size = value(get, l->size[0]) ? l->size[0] : l->size[1];
	unsigned int nodes = 0;
	int r = number(get, l->rank, &ret->rank, err);

	if (!r && !value(get, size))
		return pp_error_set(
			err, -EINVAL,
			"%s is set, but %s is not: set PEERPATH_RANK, PEERPATH_SIZE and "
			"PEERPATH_COORDINATOR",
			l->rank, l->size[0]);
	if (!r)
		r = number(get, size, &ret->size, err);
	if (!r)
		r = number(get, l->local_rank, &ret->local_rank, err);
	if (!r)
		r = number(get, l->local_size, &ret->local_size, err);
	if (!r)
		r = number(get, l->nodes, &nodes, err);
	if (r)
		return r;
	if (nodes == 1)
		ret->local_size = ret->size;
	return fit(get, l, size, ret, err);
}

static bool first_name(void *arg, const char *name)
{
	(void)snprintf(arg, PP_HOSTLIST_NAME + 1, "%s", name);
	return false;
}

static int first_host(getter *get, const char *name, struct pp_launch *ret, struct pp_error *err)
{
	int r = pp_hostlist_expand(value(get, name), first_name, ret->coordinator, err);

	if (!r)
		ret->coordinator_by = name;
	return r ? pp_error_prefix(err, "%s", name), r : 0;
}

/* "2466119680.0;tcp://10.0.0.1,192.168.0.1:43971": the address of mpirun, rank 0's as a rule. */
static int open_mpi_host(getter *get, const char *name, struct pp_launch *ret, struct pp_error *err)
{
	const char *uri = value(get, name), *host = strstr(uri, "://");
	size_t len = host ? strcspn(host + 3, ",:;") : 0;

	if (!len || len >= sizeof(ret->coordinator))
		return bad(name, uri, "no address in it; set PEERPATH_COORDINATOR", err);
	memcpy(ret->coordinator, host + 3, len);
	ret->coordinator[len] = '\0';
	ret->coordinator_by = name;
	return 0;
}

/* Where rank 0 is need not be on the first host then. */
static bool is_arbitrary(getter *get)
{
	const char *d = value(get, "SLURM_DISTRIBUTION");

	return d && strncmp(d, "arbitrary", strlen("arbitrary")) == 0;
}

static int coordinator(getter *get, const struct launcher *l, struct pp_launch *ret,
		       struct pp_error *err)
{
	static const char *const lists[] = {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"};
	static const char own[] = "PEERPATH_COORDINATOR", hnp[] = "OMPI_MCA_orte_hnp_uri";
	const char *text = value(get, own);

	if (text) {
		if (strlen(text) >= sizeof(ret->coordinator))
			return bad(own, text, "too long", err);
		(void)snprintf(ret->coordinator, sizeof(ret->coordinator), "%s", text);
		ret->coordinator_by = own;
		return 0;
	}
	if (ret->local_size == ret->size) {
		(void)snprintf(ret->coordinator, sizeof(ret->coordinator), "127.0.0.1");
		return 0;
	}
	for (unsigned int i = 0; i < PP_ARRAY_LEN(lists) && !is_arbitrary(get); i++)
		if (value(get, lists[i]) && strcmp(l->by, "peerpath") != 0)
			return first_host(get, lists[i], ret, err);
	if (value(get, hnp) && strcmp(l->by, "Open MPI") == 0)
		return open_mpi_host(get, hnp, ret, err);
	return pp_error_set(err, -EINVAL,
			    "%s says nothing of rank 0's host: set PEERPATH_COORDINATOR=HOST",
			    l->by);
}

static void job(getter *get, const struct launcher *l, struct pp_launch *ret)
{
	size_t len = 0;

	for (unsigned int i = 0; i < PP_ARRAY_LEN(l->job); i++) {
		const char *text = value(get, l->job[i]);

		if (text && len < sizeof(ret->job))
			len += (size_t)snprintf(ret->job + len, sizeof(ret->job) - len, "%s%s",
						len ? "." : "", text);
	}
	pp_sanitize(ret->job, false);
}

int pp_launch_read(getter *get, struct pp_launch *ret, struct pp_error *err)
{
	const struct launcher *l = which(get);
	struct pp_launch found = {0};
	int r = 0;

	if (!l) {
		*ret = found;
		return 0;
	}
	found.by = l->by;
	if (strcmp(l->by, "Slurm") == 0)
		r = agree(get, "SLURM_PROCID", "PMIX_RANK", err);
	if (!r)
		r = numbers(get, l, &found, err);
	if (!r && found.size == 1) {
		*ret = (struct pp_launch){0};
		return 0;
	}
	if (!r)
		r = coordinator(get, l, &found, err);
	if (r)
		return r;
	job(get, l, &found);
	*ret = found;
	return 0;
}

uint16_t pp_launch_port(const struct pp_launch *launch, unsigned int attempt)
{
	/* FNV-1a: every process computes the same, and nothing depends on its quality. */
	uint32_t hash = 2166136261U;

	for (const char *s = launch->job; *s; s++)
		hash = (hash ^ (uint8_t)*s) * 16777619U;
	return (uint16_t)(FIRST_PORT + (hash % PORTS + attempt * 2999U) % PORTS);
}
