/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking completions, many a call, and counting what they say is done.
 */
#include <errno.h>

#include "bench/traffic_run.h"
#include "base/banned.h"

/*
 * A flushed request only says that its queue pair had failed before; what failed first may come
 * behind it when it is of the other queue. @wc: the rest of what was taken.
 */
static int __attribute__((cold, noinline))
failed(struct pp_run *r, const struct ibv_wc *wc, int n, struct pp_error *err)
{
	struct ibv_wc first = *wc, more[PP_POLL];

	for (int rounds = 0; first.status == IBV_WC_WR_FLUSH_ERR && n > 0 && rounds < 4096;
	     rounds++) {
		for (int i = 0; i < n; i++) {
			if (wc[i].status != IBV_WC_SUCCESS && wc[i].status != IBV_WC_WR_FLUSH_ERR) {
				first = wc[i];
				break;
			}
		}
		n = ibv_poll_cq(r->e->cq, PP_POLL, more);
		wc = more;
	}
	return pp_run_failed(r, &first, err);
}

static int __attribute__((cold))
other_size(struct pp_run *r, const struct ibv_wc *wc, struct pp_error *err)
{
	r->failure.qp = pp_request_qp(wc->wr_id);
	r->failure.message = pp_request_number(wc->wr_id) * r->qps + r->failure.qp;
	return pp_error_set(err, -EPROTO, "message %llu has %u bytes, not %u",
			    (unsigned long long)r->failure.message, wc->byte_len, r->t->size);
}

static int count(struct pp_run *r, const struct ibv_wc *wc, struct pp_error *err)
{
	unsigned int q = pp_request_qp(wc->wr_id);
	struct pp_flow *f = &r->flow[q];

	if (q >= r->qps)
		return pp_error_set(err, -EPROTO, "%s: a completion of no request of this run",
				    r->e->options.device);
	switch (pp_request_kind(wc->wr_id)) {
	case PP_REQUEST_MESSAGE:
		f->done = pp_request_number(wc->wr_id) + 1;
		return 0;
	case PP_REQUEST_RECEIVE:
		f->received++;
		return r->t->op == PP_SEND && wc->byte_len != r->t->size ? other_size(r, wc, err)
									 : 0;
	case PP_REQUEST_CREDIT:
		f->credits_done++;
		return 0;
	case PP_REQUEST_GRANTED:
		f->granted++;
		f->credits_done++;
		return f->grants_posted < f->credits ? pp_post_grants(r, q, 1, err) : 0;
	}
	return 0;
}

int pp_poll(struct pp_run *r, unsigned int *ret_n, struct pp_error *err)
{
	struct ibv_wc wc[PP_POLL];
	int n = ibv_poll_cq(r->e->cq, PP_POLL, wc), e;

	if (__builtin_expect(n < 0, 0))
		return pp_error_set(err, -EIO, "%s: ibv_poll_cq failed: %s", r->e->options.device,
				    "the completion queue overflowed, or the device is gone");
	for (int i = 0; i < n; i++) {
		if (__builtin_expect(wc[i].status != IBV_WC_SUCCESS, 0))
			return failed(r, wc + i, n - i, err);
		e = count(r, &wc[i], err);
		if (e)
			return e;
	}
	r->events += (unsigned int)n;
	*ret_n = (unsigned int)n;
	return 0;
}
