/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/error.h"

#include <signal.h>
#include <string.h>

#include "base/compiler.h"
#include "base/banned.h"

static const struct status {
	uint32_t status;
	enum pp_nccl_nature nature;
	const char *name, *cause;
} STATUSES[] = {
	{1, PP_NCCL_NATURE_MEMORY, "IBV_WC_LOC_LEN_ERR",
	 "a message did not fit the buffer that was posted for it"},
	{2, PP_NCCL_NATURE_MEMORY, "IBV_WC_LOC_QP_OP_ERR",
	 "the local NIC could not carry out the operation on its queue pair"},
	{4, PP_NCCL_NATURE_MEMORY, "IBV_WC_LOC_PROT_ERR",
	 "the local NIC may not access the registered address: IOMMU or ACS in the way, memory "
	 "freed "
	 "while registered, or a virtual machine without ATS"},
	{5, PP_NCCL_NATURE_CONSEQUENCE, "IBV_WC_WR_FLUSH_ERR",
	 "a consequence: the queue pair was already broken by an earlier error, perhaps of another "
	 "rank"},
	{9, PP_NCCL_NATURE_MEMORY, "IBV_WC_REM_INV_REQ_ERR",
	 "the peer's NIC refused the request as invalid"},
	{10, PP_NCCL_NATURE_MEMORY, "IBV_WC_REM_ACCESS_ERR",
	 "the peer's NIC may not access the address it was given: its GPU memory"},
	{11, PP_NCCL_NATURE_MEMORY, "IBV_WC_REM_OP_ERR",
	 "the peer's NIC could not complete the operation: its GPU memory"},
	{12, PP_NCCL_NATURE_NETWORK, "IBV_WC_RETRY_EXC_ERR",
	 "the peer did not answer: it died, or port, route, GID, MTU or PFC are wrong"},
	{13, PP_NCCL_NATURE_NETWORK, "IBV_WC_RNR_RETRY_EXC_ERR",
	 "the peer posted no receive in time: it is stuck or gone"},
};

/* Errors of ibv_reg_*mr by their text; the call decides between memory and driver. */
static const struct {
	const char *text, *cause;
} REGISTRATIONS[] = {
	{"Bad address", "no peer-memory client took the GPU address: nvidia-peermem is not loaded, "
			"or not registered with ib_core"},
	{"Cannot allocate memory", "no room: of GPU memory in BAR1 or in the IOMMU, of the host's "
				   "under its limit (ulimit -l)"},
	{"Operation not supported", "the NIC's kernel driver registers no DMA-BUF"},
	{"Invalid argument", "the driver refused the range or its flags"},
	{"524", "ENOTSUPP: the exporter refuses DMA between these two PCIe devices"},
};

static const struct status *status_of(const struct pp_nccl_error *e)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(STATUSES); i++)
		if (e->key.kind == PP_NCCL_COMPLETION && STATUSES[i].status == e->key.status)
			return &STATUSES[i];
	return NULL;
}

const char *pp_nccl_error_status(const struct pp_nccl_error *e)
{
	const struct status *s = status_of(e);

	return s ? s->name : NULL;
}

/* Up to 2.22 every event was a warning; these are of a network that works. */
static bool is_harmless_event(const char *text)
{
	static const char *const words[] = {
		"port active",
		"client reregistration",
		"GID table change",
		"LID change",
		"P_Key change",
		"SM change",
		"communication established",
	};

	for (size_t i = 0; i < PP_ARRAY_LEN(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/*
 * A process that gives up aborts itself, also by a fault while it does so, or is asked to end by
 * its launcher; those signals say nothing of what came first.
 */
static bool is_own_end(uint32_t signal)
{
	return signal != SIGKILL && signal != SIGBUS;
}

enum pp_nccl_nature pp_nccl_error_nature(const struct pp_nccl_error *e)
{
	const struct status *s = status_of(e);

	switch (e->key.kind) {
	case PP_NCCL_COMPLETION:
		return s ? s->nature : PP_NCCL_NATURE_NETWORK;
	case PP_NCCL_PROCESS_ENDED:
		return is_own_end(e->key.status) ? PP_NCCL_NATURE_CONSEQUENCE
						 : PP_NCCL_NATURE_PROCESS;
	case PP_NCCL_REGISTER_FAILED:
		return PP_NCCL_NATURE_REGISTRATION;
	case PP_NCCL_SETUP_FAILED:
	case PP_NCCL_UNLIKE_DEVICES:
		return PP_NCCL_NATURE_SETUP;
	case PP_NCCL_ASYNC:
		return is_harmless_event(e->text) ? PP_NCCL_NATURE_WARNING : PP_NCCL_NATURE_NETWORK;
	case PP_NCCL_VERB_FAILED:
		return PP_NCCL_NATURE_NETWORK;
	default:
		return PP_NCCL_NATURE_WARNING;
	}
}

const char *pp_nccl_error_name(const struct pp_nccl_error *e)
{
	switch (e->key.kind) {
	case PP_NCCL_COMPLETION:
		return "completion";
	case PP_NCCL_REGISTER_FAILED:
		return "registration";
	case PP_NCCL_VERB_FAILED:
		return "verb";
	case PP_NCCL_ASYNC:
		return "async-event";
	case PP_NCCL_FAILOVER:
		return "failover";
	case PP_NCCL_PROCESS_ENDED:
		return "process-ended";
	case PP_NCCL_UNLIKE_DEVICES:
	case PP_NCCL_SETUP_FAILED:
		return "setup";
	default:
		return "warning";
	}
}

const char *pp_nccl_error_cause(const struct pp_nccl_error *e)
{
	const struct status *s = status_of(e);

	if (s)
		return s->cause;
	switch (e->key.kind) {
	case PP_NCCL_COMPLETION:
		return "the NIC reported a status without a known meaning";
	case PP_NCCL_REGISTER_FAILED:
		for (size_t i = 0; i < PP_ARRAY_LEN(REGISTRATIONS); i++)
			if (strstr(e->text, REGISTRATIONS[i].text))
				return REGISTRATIONS[i].cause;
		return "memory could not be registered; the library does not fall back from this";
	case PP_NCCL_VERB_FAILED:
		return strstr(e->text, "modify_qp")
			       ? "the queue pairs could not be connected: peer unreachable by this "
				 "port, route or GID"
			       : "a verbs call failed";
	case PP_NCCL_ASYNC:
		return is_harmless_event(e->text)
			       ? "the NIC reported a change of a port that works: harmless"
			       : "the NIC reported a fault of a port, queue or device";
	case PP_NCCL_FAILOVER:
		return "a port was lost and another carries its traffic: the same memory, by "
		       "another "
		       "NIC than the connection lines name";
	case PP_NCCL_PROCESS_ENDED:
		return is_own_end(e->key.status) ? "the process of a rank ended by a signal, as "
						   "one does that gives up"
						 : "the process of a rank was killed; that its "
						   "peers then had no answer "
						   "follows from it";
	case PP_NCCL_UNLIKE_DEVICES:
		return "the two ends are InfiniBand and RoCE: they cannot connect";
	case PP_NCCL_SETUP_FAILED:
		return "the communicator was set up wrongly";
	default:
		return "a warning without a known meaning: it may be harmless";
	}
}

bool pp_nccl_error_is_silence(const struct pp_nccl_error *e)
{
	return e->key.kind == PP_NCCL_COMPLETION && (e->key.status == 12 || e->key.status == 13);
}

/* Which of two causes came first; equal or unknown times keep the order of the input. */
static bool before(const struct pp_nccl_error *a, const struct pp_nccl_error *b)
{
	enum pp_nccl_nature x = pp_nccl_error_nature(a), y = pp_nccl_error_nature(b);

	if (a->stamp[0] && b->stamp[0] && strcmp(a->stamp, b->stamp) != 0)
		return strcmp(a->stamp, b->stamp) < 0;
	/* without times: memory that was not registered explains what follows, */
	if (x == PP_NCCL_NATURE_REGISTRATION)
		return y != x;
	/* and a process that is gone explains that it did not answer */
	return x == PP_NCCL_NATURE_PROCESS && y == PP_NCCL_NATURE_NETWORK &&
	       pp_nccl_error_is_silence(b);
}

uint32_t pp_nccl_error_root(const struct pp_nccl_job *job)
{
	const struct pp_nccl_error *e, *best = NULL;
	uint32_t root = PP_NCCL_NONE;

	for (uint32_t i = 0; i < job->errors.n; i++) {
		e = pp_nccl_table_at(&job->errors, i);
		if (pp_nccl_error_nature(e) >= PP_NCCL_NATURE_CONSEQUENCE)
			continue;
		if (best && !before(e, best))
			continue;
		best = e;
		root = i;
	}
	return root;
}
