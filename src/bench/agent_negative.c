/* SPDX-License-Identifier: Apache-2.0 */
/*
 * restrict, negative: what a device must refuse.
 *
 * restrict registers the memory once more, with fewer rights, the rung's way, and answers its
 * "keys". negative posts one WRITE or READ with the key and address that it is told, waits for its
 * completion, and answers "status" (a name) and "refused": true only when the peer's device said
 * that the access is not allowed. No completion, or one that says something else, decides nothing
 * ("decided": false). The queue pair is in error then: reset, and connect again.
 */
#include <errno.h>
#include <string.h>

#include "bench/agent_state.h"
#include "base/banned.h"

static const pp_ns WAIT = 5 * PP_SECOND;

int pp_agent_restrict(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		      struct pp_error *err)
{
	struct pp_part part[PP_SLOTS_PARTS];
	int access = IBV_ACCESS_LOCAL_WRITE, r;
	unsigned int n = 0;

	if (!a->has_registered)
		return pp_error_set(err, -EINVAL, "restrict: nothing is registered");
	if (a->has_restricted)
		(void)pp_unregister(&a->restricted, err);
	a->has_restricted = false;
	access |= c->restricted.writable ? IBV_ACCESS_REMOTE_WRITE : 0;
	access |= c->restricted.readable ? IBV_ACCESS_REMOTE_READ : 0;
	r = pp_agent_register(a, access, &a->restricted, err);
	if (r)
		return r;
	a->has_restricted = true;
	for (; n < a->restricted.n && n < PP_SLOTS_PARTS; n++)
		part[n] = (struct pp_part){.start = a->restricted.key[n].start,
					   .length = a->restricted.key[n].length,
					   .address = a->restricted.key[n].address,
					   .key = a->restricted.key[n].rkey};
	pp_parts_write(out, "keys", part, n);
	return 0;
}

static const char *status_name(int status)
{
	static const char *const names[] = {
		[IBV_WC_SUCCESS] = "IBV_WC_SUCCESS",
		[IBV_WC_LOC_LEN_ERR] = "IBV_WC_LOC_LEN_ERR",
		[IBV_WC_LOC_QP_OP_ERR] = "IBV_WC_LOC_QP_OP_ERR",
		[IBV_WC_LOC_PROT_ERR] = "IBV_WC_LOC_PROT_ERR",
		[IBV_WC_WR_FLUSH_ERR] = "IBV_WC_WR_FLUSH_ERR",
		[IBV_WC_BAD_RESP_ERR] = "IBV_WC_BAD_RESP_ERR",
		[IBV_WC_LOC_ACCESS_ERR] = "IBV_WC_LOC_ACCESS_ERR",
		[IBV_WC_REM_INV_REQ_ERR] = "IBV_WC_REM_INV_REQ_ERR",
		[IBV_WC_REM_ACCESS_ERR] = "IBV_WC_REM_ACCESS_ERR",
		[IBV_WC_REM_OP_ERR] = "IBV_WC_REM_OP_ERR",
		[IBV_WC_RETRY_EXC_ERR] = "IBV_WC_RETRY_EXC_ERR",
		[IBV_WC_RNR_RETRY_EXC_ERR] = "IBV_WC_RNR_RETRY_EXC_ERR",
		[IBV_WC_FATAL_ERR] = "IBV_WC_FATAL_ERR",
	};
	const char *name = NULL;

	if (status >= 0 && (size_t)status < PP_ARRAY_LEN(names))
		name = names[status];
	return name ? name : "another status";
}

static int wait_one(struct pp_agent *a, struct ibv_wc *ret, struct pp_error *err)
{
	pp_ns end = pp_clock_monotonic() + WAIT;
	int n;

	do {
		n = ibv_poll_cq(a->endpoint.cq, 1, ret);
		if (n < 0)
			return pp_error_set(err, -EIO, "ibv_poll_cq failed");
		if (!n && pp_agent_left())
			return pp_error_set(err, -EINTR, "interrupted");
	} while (!n && pp_clock_monotonic() < end);
	return n ? 0
		 : pp_error_set(err, -ETIMEDOUT, "no completion in %d s", (int)(WAIT / PP_SECOND));
}

int pp_agent_negative(struct pp_agent *a, const struct pp_command *c, struct pp_json *out,
		      struct pp_error *err)
{
	const struct pp_negative_command *n = &c->negative;
	const struct pp_part *own;
	struct ibv_sge sge;
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = n->op == PP_READ ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		      .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc = {.status = IBV_WC_SUCCESS};
	char name[96];
	int r;

	own = pp_part_of(a->own, a->n_own, (uint64_t)n->from, (uint64_t)n->size);
	if (!a->has_registered || !own)
		return pp_error_set(err, -EINVAL, "negative: no memory of one's own there");
	sge = (struct ibv_sge){.addr = own->address + ((uint64_t)n->from - own->start),
			       .length = (uint32_t)n->size,
			       .lkey = own->key};
	wr.wr.rdma.remote_addr = (uint64_t)n->address;
	wr.wr.rdma.rkey = (uint32_t)n->key;
	r = ibv_post_send(a->endpoint.qp[0], &wr, &bad);
	if (r) {
		a->call = "ibv_post_send";
		return pp_error_set(err, -r, "ibv_post_send: %s",
				    pp_errno_text(r, name, sizeof(name)));
	}
	r = wait_one(a, &wc, err);
	if (r)
		return r;
	pp_json_str(out, "status_name", status_name(wc.status));
	pp_json_bool(out, "refused",
		     wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR ||
			     wc.status == IBV_WC_REM_OP_ERR);
	pp_json_bool(out, "decided",
		     wc.status == IBV_WC_SUCCESS || wc.status == IBV_WC_REM_ACCESS_ERR ||
			     wc.status == IBV_WC_REM_INV_REQ_ERR || wc.status == IBV_WC_REM_OP_ERR);
	return 0;
}
