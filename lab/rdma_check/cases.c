/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ops, and the walk through them that both ends make in step. */
#include "case.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static const struct pp_op pp_ops[] = {
	{"write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0},
	{"write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, PP_IMM},
	{"read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0},
	{"send", IBV_WR_SEND, IBV_WC_SEND, 0},
	{"send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, PP_IMM},
	{"fetch_add", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, 0},
	{"cmp_swap", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, 0},
	{"cmp_swap_miss", IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WC_COMP_SWAP, PP_MISS},
	{"ud_send", IBV_WR_SEND, IBV_WC_SEND, PP_UD},
	{"ud_send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, PP_UD | PP_IMM},
	{"uc_write_imm", IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE, PP_UC | PP_IMM},
	{"uc_send", IBV_WR_SEND, IBV_WC_SEND, PP_UC},
	{"uc_send_imm", IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, PP_UC | PP_IMM},
	{"window_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, PP_WINDOW},
	{"window_read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, PP_WINDOW},
	{"send_inv", IBV_WR_SEND_WITH_INV, IBV_WC_SEND, PP_WINDOW | PP_INVALIDATE},
	{"bad_key_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, PP_BAD_KEY},
	{"bad_key_read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, PP_BAD_KEY},
	{"bad_key_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, PP_BAD_KEY},
	{"bad_range_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, PP_BAD_RANGE},
	{"bad_range_read", IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, PP_BAD_RANGE},
	{"read_only_write", IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, PP_READ_ONLY},
	{"read_only_atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_FETCH_ADD, PP_READ_ONLY},
};

enum { PP_OPS = sizeof(pp_ops) / sizeof(pp_ops[0]), PP_UNPACED = 20 };

uint64_t pp_cases_op(const char *name, size_t len)
{
	for (size_t i = 0; i < PP_OPS; i++)
		if (strlen(pp_ops[i].name) == len && !memcmp(pp_ops[i].name, name, len))
			return UINT64_C(1) << i;
	return 0;
}

uint64_t pp_cases_all(void)
{
	return (UINT64_C(1) << PP_OPS) - 1;
}

/* One walk: which end requests, and what has been counted. */
struct pp_walk {
	struct pp_end *end;
	const struct pp_plan *plan;
	const char *who;
	struct pp_count *count;
	uint64_t number;
	int fd;
	bool requester;
};

static void __attribute__((format(printf, 2, 3)))
pp_count_bad(struct pp_count *count, const char *format, ...)
{
	char line[PP_BAD_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	printf("BAD  %s\n", line);
	if (count->bad < PP_BAD_KEPT)
		memcpy(count->first_bad[count->bad], line, sizeof(line));
	count->bad++;
}

static int pp_walk_case(struct pp_walk *walk, const struct pp_op *op, size_t size, bool *ret_usable)
{
	const struct pp_case now = {op, size, walk->number++, walk->plan->seed};
	struct pp_verdict verdict;
	int err = pp_case_run(walk->end, walk->fd, &now, walk->requester, &verdict, ret_usable);

	if (err)
		return err;
	if (verdict.text[0]) {
		pp_count_bad(walk->count, "%s %s %zu: %s", walk->who, op->name, size, verdict.text);
	} else {
		printf("ok   %s %s %zu\n", walk->who, op->name, size);
		walk->count->ok++;
	}
	fflush(stdout);
	return 0;
}

static int pp_walk_sizes(struct pp_walk *walk, const struct pp_op *op)
{
	const size_t mtu = 128u << walk->end->mtu;
	bool fixed = pp_op_atomic(op) || pp_op_refused(op) || op->traits & PP_INVALIDATE;
	bool usable = true;
	size_t len = fixed ? 1 : walk->plan->sizes_len;
	int err = 0;

	for (size_t i = 0; i < len && usable && !err; i++) {
		size_t size = pp_op_atomic(op) ? 8 : fixed ? 64 : walk->plan->sizes[i];

		if ((op->traits & PP_UD) && size > mtu) {
			printf("skip %s %s %zu: above the path MTU, %zu\n", walk->who, op->name,
			       size, mtu);
			walk->count->skipped++;
			continue;
		}
		/* Nobody paces a sender that hears nothing: no more than any queue on the way
		 * holds. */
		if ((op->traits & PP_UC) && size > PP_UNPACED * mtu) {
			printf("skip %s %s %zu: above %d packets\n", walk->who, op->name, size,
			       PP_UNPACED);
			walk->count->skipped++;
			continue;
		}
		err = pp_walk_case(walk, op, size, &usable);
		if (!err && !usable && i + 1 < len)
			pp_count_bad(walk->count, "%s %s: the sizes above %zu were not tried",
				     walk->who, op->name, size);
	}
	return err;
}

static enum ibv_qp_type pp_walk_type(const struct pp_op *op)
{
	return op->traits & PP_UD ? IBV_QPT_UD : op->traits & PP_UC ? IBV_QPT_UC : IBV_QPT_RC;
}

int pp_cases_run(struct pp_end *end, int fd, const struct pp_plan *plan, bool requester,
		 const char *who, struct pp_count *count)
{
	struct pp_walk walk = {end, plan, who, count, 0, fd, requester};
	int err = 0;

	for (uint64_t round = 0; round < plan->rounds; round++)
		for (uint64_t i = 0; i < PP_OPS && !err; i++) {
			uint64_t word = pp_pattern_word(plan->seed, i, round << 1 | requester);

			if (!(plan->ops >> i & 1))
				continue;
			/* Every other op's sequence numbers wrap within a few packets. */
			err = pp_end_join(end, fd, pp_walk_type(&pp_ops[i]),
					  i % 2 ? word & 0xffffff : 0xfffffd + (requester ? 1 : 0));
			if (!err && pp_ops[i].traits & PP_WINDOW)
				err = pp_windows_bind(end, fd);
			if (!err)
				err = pp_talk_meet(fd);
			if (!err)
				err = pp_walk_sizes(&walk, &pp_ops[i]);
			pp_end_part(end);
		}
	return err;
}
