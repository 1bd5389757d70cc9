/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are watched. Each has a few functions in front of it, one for each real function
 * that the name is bound to in this process (another version of the symbol, a second library): a
 * call always goes on to the very function that the program would have reached.
 */
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <string.h>

#include "plugin/observe/observe.h"

#include "base/compiler.h"
#include "base/banned.h"

/* The header's macros choose between functions; here the functions are meant. */
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

enum { SLOTS = 4 };

enum call {
	REG_MR,
	REG_MR_IOVA,
	REG_MR_IOVA2,
	REG_MR_EX,
	REG_DMABUF_MR,
	DV_REG_DMABUF_MR,
	DEREG_MR,
	CREATE_QP,
	DV_CREATE_QP,
	CALLS
};

static const char *const names[CALLS] = {
	[REG_MR] = "ibv_reg_mr",
	[REG_MR_IOVA] = "ibv_reg_mr_iova",
	[REG_MR_IOVA2] = "ibv_reg_mr_iova2",
	[REG_MR_EX] = "ibv_reg_mr_ex",
	[REG_DMABUF_MR] = "ibv_reg_dmabuf_mr",
	[DV_REG_DMABUF_MR] = "mlx5dv_reg_dmabuf_mr",
	[DEREG_MR] = "ibv_dereg_mr",
	[CREATE_QP] = "ibv_create_qp",
	[DV_CREATE_QP] = "mlx5dv_create_qp",
};

static _Atomic uintptr_t real[CALLS][SLOTS];

#define REAL(call, slot, type) ((type)atomic_load_explicit(&real[call][slot], memory_order_acquire))

/* One call under watch. */
struct watch {
	struct observe_line line;
	uint64_t start;
	int error; /* the program's errno behind the call */
};

static void begin(struct watch *w, enum call call, const struct ibv_context *context)
{
	observe_line_start(&w->line, names[call]);
	if (context && context->device)
		observe_line_text(&w->line, "device", context->device->name);
	w->start = observe_now();
}

/* Right behind the real call: nothing of ours may come between it and errno. */
static void end(struct watch *w, bool failed)
{
	w->error = failed ? observe_base_errno() : 0;
	observe_line_number(&w->line, "took_ns", (int64_t)(observe_now() - w->start));
	if (failed)
		observe_line_number(&w->line, "errno", w->error);
}

static void write_mr(struct watch *w, const struct ibv_mr *mr)
{
	if (!mr)
		return;
	observe_line_hex(&w->line, "lkey", mr->lkey);
	observe_line_hex(&w->line, "rkey", mr->rkey);
}

/* Registration of an address: of the host, or of a GPU by peer memory. */
static void finish_address(struct watch *w, const struct ibv_mr *mr, const void *address,
			   size_t length, unsigned int access)
{
	end(w, !mr);
	write_mr(w, mr);
	observe_line_hex(&w->line, "address", (uint64_t)(uintptr_t)address);
	observe_line_number(&w->line, "length", (int64_t)length);
	observe_line_hex(&w->line, "access", access);
	observe_memory_kind(&w->line, address);
	observe_line_write(&w->line);
}

static struct ibv_mr *reg_mr(unsigned int slot, struct ibv_pd *pd, void *address, size_t length,
			     int access)
{
	__typeof__(&ibv_reg_mr) go = REAL(REG_MR, slot, __typeof__(&ibv_reg_mr));
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, REG_MR, pd ? pd->context : NULL);
	mr = go(pd, address, length, access);
	finish_address(&w, mr, address, length, (unsigned int)access);
	return mr;
}

static struct ibv_mr *reg_mr_iova(unsigned int slot, struct ibv_pd *pd, void *address,
				  size_t length, uint64_t iova, int access)
{
	__typeof__(&ibv_reg_mr_iova) go = REAL(REG_MR_IOVA, slot, __typeof__(&ibv_reg_mr_iova));
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, REG_MR_IOVA, pd ? pd->context : NULL);
	mr = go(pd, address, length, iova, access);
	finish_address(&w, mr, address, length, (unsigned int)access);
	return mr;
}

static struct ibv_mr *reg_mr_iova2(unsigned int slot, struct ibv_pd *pd, void *address,
				   size_t length, uint64_t iova, unsigned int access)
{
	__typeof__(&ibv_reg_mr_iova2) go = REAL(REG_MR_IOVA2, slot, __typeof__(&ibv_reg_mr_iova2));
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, REG_MR_IOVA2, pd ? pd->context : NULL);
	mr = go(pd, address, length, iova, access);
	finish_address(&w, mr, address, length, access);
	return mr;
}

/* Its arguments are a structure that grows (rdma-core 59): only the call and its result are told.
 */
static struct ibv_mr *reg_mr_ex(unsigned int slot, struct ibv_pd *pd, void *attributes)
{
	struct ibv_mr *(*go)(struct ibv_pd *, void *) =
		REAL(REG_MR_EX, slot, struct ibv_mr * (*)(struct ibv_pd *, void *));
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, REG_MR_EX, pd ? pd->context : NULL);
	mr = go(pd, attributes);
	end(&w, !mr);
	write_mr(&w, mr);
	observe_line_text(&w.line, "memory", "unknown");
	observe_line_write(&w.line);
	return mr;
}

/*
 * With descriptor -1 or no bytes it is a question whether the call exists, as NCCL, UCX and
 * libfabric ask it: no registration.
 */
static void finish_dmabuf(struct watch *w, const struct ibv_mr *mr, uint64_t offset, size_t length,
			  uint64_t iova, int fd)
{
	end(w, !mr);
	write_mr(w, mr);
	observe_line_number(&w->line, "offset", (int64_t)offset);
	observe_line_number(&w->line, "length", (int64_t)length);
	observe_line_hex(&w->line, "iova", iova);
	observe_line_number(&w->line, "fd", fd);
	if (fd < 0 || !length)
		observe_line_true(&w->line, "probe");
	else
		observe_memory_dmabuf(&w->line, fd);
	observe_line_write(&w->line);
}

static struct ibv_mr *reg_dmabuf_mr(unsigned int slot, struct ibv_pd *pd, uint64_t offset,
				    size_t length, uint64_t iova, int fd, int access)
{
	__typeof__(&ibv_reg_dmabuf_mr) go =
		REAL(REG_DMABUF_MR, slot, __typeof__(&ibv_reg_dmabuf_mr));
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, REG_DMABUF_MR, pd ? pd->context : NULL);
	mr = go(pd, offset, length, iova, fd, access);
	observe_line_hex(&w.line, "access", (unsigned int)access);
	finish_dmabuf(&w, mr, offset, length, iova, fd);
	return mr;
}

/* Flag 1 of @kind is MLX5DV_REG_DMABUF_ACCESS_DATA_DIRECT (rdma-core 54). */
static struct ibv_mr *dv_reg_dmabuf_mr(unsigned int slot, struct ibv_pd *pd, uint64_t offset,
				       size_t length, uint64_t iova, int fd, int access, int kind)
{
	typedef struct ibv_mr *function(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int, int);
	function *go = REAL(DV_REG_DMABUF_MR, slot, function *);
	struct watch w;
	struct ibv_mr *mr;

	begin(&w, DV_REG_DMABUF_MR, pd ? pd->context : NULL);
	mr = go(pd, offset, length, iova, fd, access, kind);
	observe_line_hex(&w.line, "access", (unsigned int)access);
	if (kind & 1)
		observe_line_true(&w.line, "data_direct");
	finish_dmabuf(&w, mr, offset, length, iova, fd);
	return mr;
}

static int dereg_mr(unsigned int slot, struct ibv_mr *mr)
{
	__typeof__(&ibv_dereg_mr) go = REAL(DEREG_MR, slot, __typeof__(&ibv_dereg_mr));
	uint32_t lkey = mr ? mr->lkey : 0; /* gone behind the call */
	struct watch w;
	int r;

	begin(&w, DEREG_MR, mr ? mr->context : NULL);
	r = go(mr);
	observe_line_number(&w.line, "took_ns", (int64_t)(observe_now() - w.start));
	if (r)
		observe_line_number(&w.line, "errno", r); /* it returns it */
	observe_line_hex(&w.line, "lkey", lkey);
	observe_line_write(&w.line);
	return r;
}

static void finish_qp(struct watch *w, const struct ibv_qp *qp)
{
	end(w, !qp);
	if (qp) {
		observe_line_number(&w->line, "qpn", qp->qp_num);
		observe_line_number(&w->line, "type", qp->qp_type);
	}
	observe_line_write(&w->line);
}

static struct ibv_qp *create_qp(unsigned int slot, struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	__typeof__(&ibv_create_qp) go = REAL(CREATE_QP, slot, __typeof__(&ibv_create_qp));
	struct watch w;
	struct ibv_qp *qp;

	begin(&w, CREATE_QP, pd ? pd->context : NULL);
	qp = go(pd, attr);
	finish_qp(&w, qp);
	return qp;
}

static struct ibv_qp *dv_create_qp(unsigned int slot, struct ibv_context *context, void *attr,
				   void *more)
{
	typedef struct ibv_qp *function(struct ibv_context *, void *, void *);
	function *go = REAL(DV_CREATE_QP, slot, function *);
	struct watch w;
	struct ibv_qp *qp;

	begin(&w, DV_CREATE_QP, context);
	qp = go(context, attr, more);
	finish_qp(&w, qp);
	return qp;
}

/* The functions that are bound: they only know which slot they are. */
#define BOUND(slot)                                                                                \
	static struct ibv_mr *reg_mr_##slot(struct ibv_pd *pd, void *a, size_t n, int access)      \
	{                                                                                          \
		return reg_mr(slot, pd, a, n, access);                                             \
	}                                                                                          \
	static struct ibv_mr *reg_mr_iova_##slot(struct ibv_pd *pd, void *a, size_t n, uint64_t v, \
						 int access)                                       \
	{                                                                                          \
		return reg_mr_iova(slot, pd, a, n, v, access);                                     \
	}                                                                                          \
	static struct ibv_mr *reg_mr_iova2_##slot(struct ibv_pd *pd, void *a, size_t n,            \
						  uint64_t v, unsigned int access)                 \
	{                                                                                          \
		return reg_mr_iova2(slot, pd, a, n, v, access);                                    \
	}                                                                                          \
	static struct ibv_mr *reg_mr_ex_##slot(struct ibv_pd *pd, void *attributes)                \
	{                                                                                          \
		return reg_mr_ex(slot, pd, attributes);                                            \
	}                                                                                          \
	static struct ibv_mr *reg_dmabuf_mr_##slot(struct ibv_pd *pd, uint64_t o, size_t n,        \
						   uint64_t v, int fd, int access)                 \
	{                                                                                          \
		return reg_dmabuf_mr(slot, pd, o, n, v, fd, access);                               \
	}                                                                                          \
	static struct ibv_mr *dv_reg_dmabuf_mr_##slot(struct ibv_pd *pd, uint64_t o, size_t n,     \
						      uint64_t v, int fd, int access, int kind)    \
	{                                                                                          \
		return dv_reg_dmabuf_mr(slot, pd, o, n, v, fd, access, kind);                      \
	}                                                                                          \
	static int dereg_mr_##slot(struct ibv_mr *mr)                                              \
	{                                                                                          \
		return dereg_mr(slot, mr);                                                         \
	}                                                                                          \
	static struct ibv_qp *create_qp_##slot(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)   \
	{                                                                                          \
		return create_qp(slot, pd, attr);                                                  \
	}                                                                                          \
	static struct ibv_qp *dv_create_qp_##slot(struct ibv_context *c, void *attr, void *more)   \
	{                                                                                          \
		return dv_create_qp(slot, c, attr, more);                                          \
	}

BOUND(0)
BOUND(1)
BOUND(2)
BOUND(3)

#define EACH(name)                                                              \
	{                                                                       \
		(uintptr_t) name##_0, (uintptr_t)name##_1, (uintptr_t)name##_2, \
			(uintptr_t)name##_3                                     \
	}

uintptr_t observe_call_bind(const char *symbol, uintptr_t to)
{
	const uintptr_t bound[CALLS][SLOTS] = {
		[REG_MR] = EACH(reg_mr),
		[REG_MR_IOVA] = EACH(reg_mr_iova),
		[REG_MR_IOVA2] = EACH(reg_mr_iova2),
		[REG_MR_EX] = EACH(reg_mr_ex),
		[REG_DMABUF_MR] = EACH(reg_dmabuf_mr),
		[DV_REG_DMABUF_MR] = EACH(dv_reg_dmabuf_mr),
		[DEREG_MR] = EACH(dereg_mr),
		[CREATE_QP] = EACH(create_qp),
		[DV_CREATE_QP] = EACH(dv_create_qp),
	};
	unsigned int call;

	for (call = 0; call < CALLS; call++)
		if (!strcmp(names[call], symbol))
			break;
	for (unsigned int slot = 0; call < CALLS && slot < SLOTS; slot++) {
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&real[call][slot], &none, to) || none == to)
			return bound[call][slot];
	}
	return to;
}
