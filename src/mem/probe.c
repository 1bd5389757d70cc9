/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One question per hca and method, so that a call that blocks costs its own row only; after an
 * hca's first unanswered question no other of it is asked. One question per GPU, whose context
 * takes longest, with all hcas that answered. BUDGET bounds all of them.
 */
#include "mem/probe.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/node.h"
#include "mem/probe_call.h"
#include "mem/probe_pairs.h"
#include "rdma/users.h"
#include "base/banned.h"

enum { MAX_ROWS = 1 << 16 };

static const pp_ns BUDGET = 60 * PP_SECOND;

static const char *const methods[] = {
	[PP_PROBE_HOST] = "host",
	[PP_PROBE_DMABUF_FD] = "dmabuf-fd-1",
	[PP_PROBE_GPU_DMABUF] = "gpu-dmabuf",
	[PP_PROBE_GPU_PEERMEM] = "gpu-peermem",
};

struct run {
	struct pp_node *node;
	const struct pp_probe_options *options;
	struct pp_answer users;
	struct pp_probe *probe;
	pp_ns end;
	size_t n_hcas; /* that have rows */
};

const char *pp_probe_method_name(enum pp_probe_method method)
{
	return methods[method];
}

struct pp_probe *pp_probe_free(struct pp_probe *p)
{
	if (!p)
		return NULL;
	free(p->row);
	free(p);
	return NULL;
}

enum pp_verdict pp_probe_judge_dmabuf(int error, const char **ret_note)
{
	static const struct {
		int error;
		enum pp_verdict verdict;
		const char *note;
	} classes[] = {
		{EBADF, PP_PASS, "supported: the driver looked for the DMA-BUF"},
		{EOPNOTSUPP, PP_FAIL, "not supported by the provider library or the driver"},
		{EPROTONOSUPPORT, PP_FAIL, "not supported: the kernel has no such method"},
		{EINVAL, PP_UNKNOWN, "inconclusive: refused before the descriptor was looked at"},
		{0, PP_UNKNOWN, "inconclusive: a descriptor that does not exist was registered"},
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(classes); i++) {
		if (classes[i].error != error)
			continue;
		*ret_note = classes[i].note;
		return classes[i].verdict;
	}
	*ret_note = "inconclusive: an errno that this probe has no meaning for";
	return PP_UNKNOWN;
}

static enum pp_verdict judge_host(int error, const char **ret_note)
{
	switch (error) {
	case 0:
		*ret_note = "one page registered and deregistered";
		return PP_PASS;
	case ENOMEM:
		*ret_note = "refused: RLIMIT_MEMLOCK without CAP_IPC_LOCK, or the device is out of "
			    "keys";
		return PP_FAIL;
	case EPERM:
		*ret_note = "refused: this process may not lock memory";
		return PP_FAIL;
	default:
		*ret_note = "refused";
		return PP_FAIL;
	}
}

/* The deciding call's record; NULL when it was not reached or the answer is not well-formed. */
static const json_t *deciding(const json_t *data, int *ret_error, pp_ns *ret_took)
{
	const json_t *call;
	int64_t i, error, took;

	if (pp_answer_i64(data, "decided", &i) || i < 0)
		return NULL;
	call = json_array_get(json_object_get(data, "calls"), (size_t)i);
	if (pp_answer_i64(call, "errno", &error) || error < 0 || error > 4095 ||
	    pp_answer_i64(call, "took_ns", &took) || took < 0)
		return NULL;
	*ret_error = (int)error;
	*ret_took = took;
	return call;
}

static void judge(struct pp_probe_result *row, const struct pp_answer *a)
{
	const char *note = NULL;
	char name[96];
	bool exported = true;

	(void)pp_answer_bool(a->data, "exported", &exported);
	if (!a->answered) {
		(void)snprintf(row->note, sizeof(row->note), "%s", a->detail);
		return;
	}
	if (!exported) {
		row->verdict = PP_FAIL;
		(void)snprintf(row->note, sizeof(row->note),
			       "libibverbs does not export ibv_reg_dmabuf_mr (rdma-core 34 does)");
		return;
	}
	if (!deciding(a->data, &row->error, &row->took)) {
		(void)snprintf(row->note, sizeof(row->note), "the answer names no deciding call");
		return;
	}
	row->verdict = row->method == PP_PROBE_HOST ? judge_host(row->error, &note)
						    : pp_probe_judge_dmabuf(row->error, &note);
	if (row->error)
		(void)snprintf(row->note, sizeof(row->note), "%s: %s",
			       pp_errno_text(row->error, name, sizeof(name)), note);
	else
		(void)snprintf(row->note, sizeof(row->note), "%s", note);
}

/* "probe-host-0000-3b-00-0": letters, digits and '-' only. */
static void question_name(const struct pp_probe_result *row, char *name, size_t size)
{
	(void)snprintf(name, size, "probe-%s-%s", row->method == PP_PROBE_HOST ? "host" : "dmabuf",
		       row->hca);
	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) ? (char)tolower((unsigned char)*p) : '-';
}

/* 0 asked and answered; the row says why it was not. */
static int ask(struct run *run, struct pp_probe_result *row)
{
	const struct pp_probe_call call = {.device = row->name, .method = row->method};
	pp_ns deadline = run->options->deadline ? run->options->deadline : 5 * PP_SECOND;
	struct pp_answer answer;
	char name[80];
	struct pp_question q = {
		.name = name, .run = pp_probe_call_run, .arg = &call, .deadline = deadline};
	int r;

	if (pp_clock_monotonic() > run->end) {
		(void)snprintf(row->note, sizeof(row->note),
			       "not asked: the probe's time is used up");
		return -ETIME;
	}
	question_name(row, name, sizeof(name));
	r = pp_ask(run->node->src, &q, &answer);
	if (r)
		return r;
	judge(row, &answer);
	r = answer.answered ? 0 : -EIO;
	pp_answer_done(&answer);
	return r;
}

static struct pp_probe_result *add(struct run *run, const struct pp_object *hca,
				   enum pp_probe_method method)
{
	struct pp_probe_result *row = &run->probe->row[run->probe->n++];

	*row = (struct pp_probe_result){
		.method = method, .verdict = PP_UNKNOWN, .simulated = pp_object_simulated(hca)};
	(void)snprintf(row->hca, sizeof(row->hca), "%s", hca->id);
	(void)snprintf(row->name, sizeof(row->name), "%s", pp_fact_str_or(hca, PP_F_HCA_NAME, ""));
	return row;
}

/* Is it free to be probed? If not, the reason. */
static bool may_probe(struct run *run, const struct pp_object *hca, char *why, size_t size)
{
	const char *uverbs = pp_fact_str_or(hca, PP_F_HCA_UVERBS, "");
	int64_t pid = *uverbs ? pp_users_pid(&run->users, uverbs) : 0;

	if (!pp_fact_is(hca, PP_F_HCA_HAS_DEVICE) || !pp_fact_get(hca, PP_F_HCA_NAME)) {
		(void)snprintf(why, size, "no RDMA device on this function");
		return false;
	}
	if (pid) {
		run->probe->busy++;
		(void)snprintf(why, size,
			       "not probed: process %lld has %s open (--busy-ok probes it)",
			       (long long)pid, uverbs);
		return run->options->busy_ok;
	}
	if (!run->probe->users_known && !run->options->busy_ok) {
		(void)snprintf(why, size,
			       "not probed: whether others use it is not known (--busy-ok probes "
			       "it)");
		return false;
	}
	return true;
}

/* Lacks nothing, and has nothing to probe: another's bond serves it, or a guest has it. */
static bool needs_no_device(const struct pp_object *hca)
{
	const struct pp_fact *device = pp_fact_get(hca, PP_F_HCA_HAS_DEVICE);

	return device && device->known && !device->i64 &&
	       (pp_fact_get(hca, PP_F_HCA_BOND_DEVICE) ||
		!strcmp(pp_fact_str_or(hca, PP_F_HCA_DRIVER, ""), "vfio-pci"));
}

static void probe_hca(struct run *run, const struct pp_object *hca)
{
	struct pp_probe_result *host = add(run, hca, PP_PROBE_HOST),
			       *dmabuf = add(run, hca, PP_PROBE_DMABUF_FD);
	char why[sizeof(host->note)];
	const struct pp_object *gpu = NULL;
	struct pp_probe_result *row;
	bool may = may_probe(run, hca, why, sizeof(why));

	if (!may) {
		memcpy(host->note, why, sizeof(why));
		memcpy(dmabuf->note, why, sizeof(why));
	} else if (ask(run, host)) {
		(void)snprintf(why, sizeof(why), "not asked: the host page was not answered");
		memcpy(dmabuf->note, why, sizeof(why));
		may = false;
	} else {
		(void)ask(run, dmabuf);
	}
	while ((gpu = pp_object_next(&run->node->facts, PP_GPU, gpu))) {
		for (int m = PP_PROBE_GPU_DMABUF; m <= PP_PROBE_GPU_PEERMEM; m++) {
			row = add(run, hca, (enum pp_probe_method)m);
			(void)snprintf(row->gpu, sizeof(row->gpu), "%s", gpu->id);
			if (!may)
				memcpy(row->note, why, sizeof(why));
		}
	}
	run->n_hcas++;
}

/* Is the GPU free to be probed? If not, the reason. */
static bool may_probe_gpu(struct run *run, const struct pp_object *gpu, char *why, size_t size)
{
	const struct pp_fact *processes = pp_fact_get(gpu, PP_F_GPU_PROCESSES);

	if (processes && processes->known && processes->i64 > 0) {
		run->probe->busy_gpus++;
		(void)snprintf(why, size,
			       "not probed: %lld processes compute on it (--busy-ok probes it)",
			       (long long)processes->i64);
		return run->options->busy_ok;
	}
	if ((!processes || !processes->known) && !run->options->busy_ok) {
		(void)snprintf(why, size,
			       "not probed: whether others compute on it is not known (--busy-ok "
			       "probes it)");
		return false;
	}
	return true;
}

/* The rows of one GPU: those that have no note yet are asked for. */
static void probe_gpu(struct run *run, const struct pp_object *gpu)
{
	struct pp_probe_pairs pairs = {.gpu = gpu->id,
				       .source = run->node->src,
				       .deadline = run->options->deadline ? run->options->deadline
									  : 5 * PP_SECOND,
				       .end = run->end};
	char why[sizeof(run->probe->row->note)] = "";
	bool may = may_probe_gpu(run, gpu, why, sizeof(why));

	pairs.row = calloc(run->n_hcas ? 2 * run->n_hcas : 1, sizeof(*pairs.row));
	for (size_t i = 0; i < run->probe->n; i++) {
		struct pp_probe_result *row = &run->probe->row[i];

		if (strcmp(row->gpu, gpu->id) != 0 || row->note[0])
			continue;
		if (!may)
			memcpy(row->note, why, sizeof(why));
		else if (!pairs.row)
			(void)snprintf(row->note, sizeof(row->note), "not asked: out of memory");
		else
			pairs.row[pairs.n++] = row;
	}
	if (pairs.n)
		pp_probe_pairs_ask(&pairs);
	free(pairs.row);
}

int pp_probe_run(struct pp_node *n, const struct pp_probe_options *options, struct pp_probe **ret,
		 struct pp_error *err)
{
	size_t hcas = n->facts.count[PP_HCA], each = 2 + 2 * (size_t)n->facts.count[PP_GPU], rows;
	struct run run = {.node = n, .options = options, .end = pp_clock_monotonic() + BUDGET};
	const struct pp_object *hca = NULL, *gpu = NULL;

	if (__builtin_mul_overflow(hcas, each, &rows) || rows > MAX_ROWS)
		return pp_error_set(err, -EFBIG, "%zu hcas and %u GPUs are too many to probe", hcas,
				    n->facts.count[PP_GPU]);
	run.probe = calloc(1, sizeof(*run.probe));
	if (run.probe)
		run.probe->row = calloc(rows ? rows : 1, sizeof(*run.probe->row));
	if (!run.probe || !run.probe->row || pp_users_ask(n->src, &run.users)) {
		pp_probe_free(run.probe);
		return pp_error_set(err, -ENOMEM, "out of memory");
	}
	run.probe->users_known =
		pp_users_whole(&run.users, run.probe->users_note, sizeof(run.probe->users_note));
	while ((hca = pp_object_next(&n->facts, PP_HCA, hca)))
		if (!needs_no_device(hca))
			probe_hca(&run, hca);
	while (run.n_hcas && (gpu = pp_object_next(&n->facts, PP_GPU, gpu)))
		probe_gpu(&run, gpu);
	pp_answer_done(&run.users);
	*ret = run.probe;
	return 0;
}
