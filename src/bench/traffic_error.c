/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line for a run that failed: which message, how, and what is known to help.
 */
#include <errno.h>
#include <stdio.h>

#include "base/compiler.h"
#include "bench/traffic_run.h"
#include "base/banned.h"

#define STATUS(name, help) [IBV_WC_##name] = {#name, help}

static const struct {
	const char *name, *help;
} statuses[] = {
	STATUS(SUCCESS, NULL),
	STATUS(LOC_LEN_ERR, "the receive is shorter than the message"),
	STATUS(LOC_QP_OP_ERR, NULL),
	STATUS(LOC_EEC_OP_ERR, NULL),
	STATUS(LOC_PROT_ERR, "this end's memory key or range was refused by its own device"),
	STATUS(WR_FLUSH_ERR, "the queue pair had failed before"),
	STATUS(MW_BIND_ERR, NULL),
	STATUS(BAD_RESP_ERR, NULL),
	STATUS(LOC_ACCESS_ERR, "this end's memory is not registered for it"),
	STATUS(REM_INV_REQ_ERR, "the peer's device refused the request: length, or READs at once"),
	STATUS(REM_ACCESS_ERR, "the peer's device refused key, range or right"),
	STATUS(REM_OP_ERR, "the peer's device could not do it: see the peer's kernel log"),
	STATUS(RETRY_EXC_ERR,
	       "the peer did not answer: its process, the link, a firewall (UDP 4791), the path's "
	       "MTU"),
	STATUS(RNR_RETRY_EXC_ERR, "the peer posted no receive"),
	STATUS(LOC_RDD_VIOL_ERR, NULL),
	STATUS(REM_INV_RD_REQ_ERR, NULL),
	STATUS(REM_ABORT_ERR, NULL),
	STATUS(INV_EECN_ERR, NULL),
	STATUS(INV_EEC_STATE_ERR, NULL),
	STATUS(FATAL_ERR, "see the kernel log"),
	STATUS(RESP_TIMEOUT_ERR, NULL),
	STATUS(GENERAL_ERR, NULL),
};

static const char *what_was(const struct pp_run *r, enum pp_request kind)
{
	switch (kind) {
	case PP_REQUEST_RECEIVE:
		return "receive";
	case PP_REQUEST_CREDIT:
	case PP_REQUEST_GRANTED:
		return "credit";
	case PP_REQUEST_MESSAGE:
		break;
	}
	return pp_operation_name(r->t->op);
}

/* Behind the line: what the device said by itself. */
static void add_events(struct pp_run *r, struct pp_error *err)
{
	char events[200];
	size_t used = 0;

	if (!*pp_endpoint_events(r->e, events, sizeof(events)))
		return;
	while (used < sizeof(err->text) && err->text[used])
		used++;
	(void)snprintf(err->text + used, sizeof(err->text) - used, "; the device says: %s", events);
}

int pp_run_failed(struct pp_run *r, const struct ibv_wc *wc, struct pp_error *err)
{
	unsigned int status = (unsigned int)wc->status;
	bool known = status < PP_ARRAY_LEN(statuses) && statuses[status].name;
	const char *help = known ? statuses[status].help : NULL;

	r->failure = (struct pp_traffic_failure){
		.status = (int)wc->status,
		.vendor = wc->vendor_err,
		.qp = pp_request_qp(wc->wr_id),
	};
	r->failure.message = pp_request_number(wc->wr_id) * r->qps + r->failure.qp;
	(void)pp_error_set(err, -EIO,
			   "%s: %s %llu (%u bytes, queue pair %u): %s (%u), vendor 0x%x%s%s",
			   r->e->options.device, what_was(r, pp_request_kind(wc->wr_id)),
			   (unsigned long long)r->failure.message, r->t->size, r->failure.qp,
			   known ? statuses[status].name : "unknown status", status, wc->vendor_err,
			   help ? ": " : "", help ? help : "");
	add_events(r, err);
	return -EIO;
}

int pp_run_silent(struct pp_run *r, struct pp_error *err)
{
	uint64_t done = 0, outstanding = 0, received = 0, expected = 0;

	for (unsigned int q = 0; q < r->qps; q++) {
		done += r->flow[q].done;
		outstanding += r->flow[q].posted - r->flow[q].done;
		received += r->flow[q].received;
		expected += r->flow[q].to_receive;
	}
	if (expected)
		(void)pp_error_set(err, -ETIMEDOUT,
				   "%s: nothing came for %.1f s, %llu of %llu messages of %u bytes "
				   "had: does the peer send?",
				   r->e->options.device, (double)r->silence / 1e9,
				   (unsigned long long)received, (unsigned long long)expected,
				   r->t->size);
	else
		(void)pp_error_set(err, -ETIMEDOUT,
				   "%s: nothing completed for %.1f s, with %llu %ss of %u bytes "
				   "outstanding and %llu done",
				   r->e->options.device, (double)r->silence / 1e9,
				   (unsigned long long)outstanding, pp_operation_name(r->t->op),
				   r->t->size, (unsigned long long)done);
	add_events(r, err);
	return -ETIMEDOUT;
}
