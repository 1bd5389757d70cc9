/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded under rdma_check, puts one fault between it and the device: WRONG names it. The control
 * of rdma_check itself: what these do must be found. One process has one context, so the state is
 * global.
 */
#include <dlfcn.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

typedef int (*pp_post)(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

static pp_post pp_true_post;

/* A byte of the message is another one; where a gathered message has it, too. */
static void pp_wrong_byte(struct ibv_send_wr *wr)
{
	uint32_t at = 2000;

	for (int i = 0; i < wr->num_sge; i++) {
		if (at < wr->sg_list[i].length) {
			((unsigned char *)(uintptr_t)wr->sg_list[i].addr)[at] ^= 0x10;
			return;
		}
		at -= wr->sg_list[i].length;
	}
}

static void pp_wrong_short(struct ibv_send_wr *wr)
{
	wr->sg_list[wr->num_sge - 1].length--;
}

static void pp_wrong_beyond(struct ibv_send_wr *wr)
{
	wr->sg_list[wr->num_sge - 1].length++;
}

static void pp_wrong_empty(struct ibv_send_wr *wr)
{
	wr->num_sge = 0;
}

static void pp_wrong_twice(struct ibv_send_wr *wr)
{
	wr->wr.atomic.compare_add *= 2;
}

static void pp_wrong_imm(struct ibv_send_wr *wr)
{
	wr->imm_data ^= 1;
}

/* The key that was made wrong on purpose is right again. */
static void pp_wrong_key(struct ibv_send_wr *wr)
{
	wr->wr.rdma.rkey ^= 0x80000000u;
}

static const struct {
	const char *name;
	void (*apply)(struct ibv_send_wr *wr);
} pp_wrongs[] = {
	{"byte", pp_wrong_byte},   {"short", pp_wrong_short}, {"beyond", pp_wrong_beyond},
	{"empty", pp_wrong_empty}, {"twice", pp_wrong_twice}, {"imm", pp_wrong_imm},
	{"key", pp_wrong_key},
};

static int pp_wrong_post(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const char *name = getenv("WRONG");

	for (size_t i = 0; name && i < sizeof(pp_wrongs) / sizeof(pp_wrongs[0]); i++)
		if (!strcmp(name, pp_wrongs[i].name)) {
			pp_wrongs[i].apply(wr);
			return pp_true_post(qp, wr, bad);
		}
	return EINVAL;
}

__attribute__((visibility("default"))) struct ibv_context *
ibv_open_device(struct ibv_device *device);

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct ibv_context *(*next)(struct ibv_device *);
	struct ibv_context *context;
	void *found = dlvsym(RTLD_NEXT, "ibv_open_device", "IBVERBS_1.1");

	if (!found)
		return NULL;
	memcpy(&next, &found, sizeof(next));
	context = next(device);
	if (context) {
		pp_true_post = context->ops.post_send;
		context->ops.post_send = pp_wrong_post;
	}
	return context;
}
