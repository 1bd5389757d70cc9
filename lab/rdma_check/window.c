/* SPDX-License-Identifier: Apache-2.0 */
/* Memory windows of type 2: a key of its own for each QP, given away by the QP that it is bound
 * through. */
#include "check.h"

#include <errno.h>
#include <time.h>

#include "base/banned.h"

enum { PP_BIND_WAIT_S = 20 };

static int pp_window_wait(struct pp_end *end)
{
	struct timespec start, at;
	struct ibv_wc wc;
	int n = 0;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		n = ibv_poll_cq(end->sent, 1, &wc);
		clock_gettime(CLOCK_MONOTONIC, &at);
	} while (n == 0 && at.tv_sec - start.tv_sec < PP_BIND_WAIT_S);
	if (n != 1)
		return -ETIMEDOUT;
	return wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_BIND_MW ? 0 : -EPROTO;
}

static int pp_window_bind(struct pp_end *end, unsigned int i)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_BIND_MW};
	int err;

	end->window[i] = ibv_alloc_mw(end->pd, IBV_MW_TYPE_2);
	if (!end->window[i])
		return -errno;
	end->my_window[i] = ibv_inc_rkey(end->window[i]->rkey);
	wr.bind_mw.mw = end->window[i];
	wr.bind_mw.rkey = (uint32_t)end->my_window[i];
	wr.bind_mw.bind_info =
		(struct ibv_mw_bind_info){end->mr, (uintptr_t)end->memory, end->len,
					  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	err = pp_post(end, i, &wr);
	return err ? err : pp_window_wait(end);
}

int pp_windows_bind(struct pp_end *end, int fd)
{
	for (unsigned int i = 0; i < end->qps; i++) {
		int err = pp_window_bind(end, i);

		if (err)
			return err;
	}
	return pp_talk_words(fd, end->my_window, end->far_window, PP_QPS_MAX);
}

void pp_windows_free(struct pp_end *end)
{
	for (unsigned int i = 0; i < end->qps; i++) {
		if (end->window[i])
			ibv_dealloc_mw(end->window[i]);
		end->window[i] = NULL;
	}
}
