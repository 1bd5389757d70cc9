/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounce buffers, their registration, and receives. Receives are all alike, and serve data by SEND,
 * data by WRITE (which uses no buffer of theirs) and credits; there are twice as many as places,
 * since as many data as places, and one credit for each, may be under way.
 *
 *   @in   places 0 to 7: data by WRITE, or what was read    8 to 15: what the peer may read
 *         all 16: data by SEND, whichever receive it meets
 *   @out  what is written and sent from
 *
 * What may be read needs no room of its own: a run has one operation.
 */
#include "bench/staged_state.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"

static int make_buffers(struct pp_staged *s, struct pp_error *err)
{
	int r = pp_bounce_new(s->memory, (size_t)PP_STAGED_RING * PP_STAGED_CHUNK, &s->out, err);

	if (r)
		return r;
	r = pp_bounce_new(s->memory, (size_t)PP_STAGED_RECEIVES * PP_STAGED_CHUNK, &s->in, err);
	for (unsigned int i = 0; !r && i < PP_STAGED_RING; i++)
		r = pp_copy_new(s->memory, &s->ticket_out[i], err);
	for (unsigned int i = 0; !r && i < PP_STAGED_RECEIVES; i++)
		r = pp_copy_new(s->memory, &s->ticket_in[i], err);
	return r;
}

static struct ibv_mr *enroll(struct pp_staged *s, const struct pp_bounce *b, int access,
			     struct pp_error *err)
{
	const struct pp_verbs *v = s->endpoint->verbs;
	struct ibv_mr *mr;
	char name[96];

	errno = 0;
	mr = v->reg_memory(s->endpoint->pd, b->at, b->size, access);
	if (!mr)
		(void)pp_error_set(err, errno ? -errno : -EIO,
				   "ibv_reg_mr of %zu bytes of bounce buffers: %s", b->size,
				   pp_errno_text(errno ? errno : EIO, name, sizeof(name)));
	return mr;
}

int pp_staged_new(struct pp_endpoint *endpoint, struct pp_memory *memory, struct pp_staged **ret,
		  struct pp_error *err)
{
	struct pp_staged *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return pp_error_set(err, -ENOMEM, "out of memory");
	s->endpoint = endpoint;
	s->memory = memory;
	r = make_buffers(s, err);
	if (!r) {
		s->mr_out = enroll(s, &s->out, 0, err);
		r = s->mr_out ? 0 : err->code;
	}
	if (!r) {
		s->mr_in = enroll(s, &s->in,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_READ,
				  err);
		r = s->mr_in ? 0 : err->code;
	}
	if (r) {
		pp_staged_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct pp_staged *pp_staged_free(struct pp_staged *s)
{
	if (!s)
		return NULL;
	if (s->mr_out)
		(void)s->endpoint->verbs->dereg_mr(s->mr_out);
	if (s->mr_in)
		(void)s->endpoint->verbs->dereg_mr(s->mr_in);
	for (unsigned int i = 0; i < PP_STAGED_RING; i++)
		if (s->ticket_out[i])
			pp_copy_free(s->memory, s->ticket_out[i]);
	for (unsigned int i = 0; i < PP_STAGED_RECEIVES; i++)
		if (s->ticket_in[i])
			pp_copy_free(s->memory, s->ticket_in[i]);
	if (s->out.at)
		pp_bounce_free(s->memory, &s->out);
	if (s->in.at)
		pp_bounce_free(s->memory, &s->in);
	free(s);
	return NULL;
}

void pp_staged_place(const struct pp_staged *s, uint64_t *ret_address, uint32_t *ret_key)
{
	*ret_address = (uint64_t)(uintptr_t)s->in.at;
	*ret_key = s->mr_in->rkey;
}

void pp_staged_set_peer(struct pp_staged *s, uint64_t address, uint32_t key)
{
	s->peer = address;
	s->peer_key = key;
	/* a queue pair that was connected anew has no receives */
	s->receives = 0;
}

int pp_staged_receive(struct pp_staged *s, unsigned int buffer, struct pp_error *err)
{
	struct ibv_sge sge = {.addr = (uint64_t)(uintptr_t)s->in.at +
				      (uint64_t)buffer * PP_STAGED_CHUNK,
			      .length = PP_STAGED_CHUNK,
			      .lkey = s->mr_in->lkey};
	struct ibv_recv_wr wr = {.wr_id = PP_STAGED_IN | buffer, .sg_list = &sge, .num_sge = 1};
	struct ibv_recv_wr *bad;
	char name[96];
	int r = ibv_post_recv(s->endpoint->qp[0], &wr, &bad);

	if (r)
		return pp_error_set(err, -r, "ibv_post_recv: %s",
				    pp_errno_text(r, name, sizeof(name)));
	s->receives++;
	return 0;
}

int pp_staged_ready(struct pp_staged *s, const struct pp_staged_run *t, struct pp_error *err)
{
	int r = 0;

	(void)t;
	/* none is missing between two runs: each is posted again before its place is given back */
	for (unsigned int i = s->receives; !r && i < PP_STAGED_RECEIVES; i++)
		r = pp_staged_receive(s, i, err);
	return r;
}
