/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel that copies: 16 bytes at a time where both addresses allow it. It has a stream's order
 * and an event's end like any copy, and needs a few of the GPU's multiprocessors for a moment.
 */
#include "soft/copy/cuda_parts.h"

#include "base/banned.h"

enum { THREADS = 256, BLOCKS_MAX = 64, VECTOR = 16 };

static const char ptx[] = ".version 6.0\n"
			  ".target sm_60\n"
			  ".address_size 64\n"
			  ".visible .entry soft_copy(.param .u64 to, .param .u64 from, "
			  ".param .u64 len)\n"
			  "{\n"
			  ".reg .pred %p<4>;\n"
			  ".reg .b32 %r<12>;\n"
			  ".reg .b64 %rd<16>;\n"
			  "ld.param.u64 %rd1, [to];\n"
			  "ld.param.u64 %rd2, [from];\n"
			  "ld.param.u64 %rd3, [len];\n"
			  "mov.u32 %r1, %ctaid.x;\n"
			  "mov.u32 %r2, %ntid.x;\n"
			  "mov.u32 %r3, %tid.x;\n"
			  "mov.u32 %r4, %nctaid.x;\n"
			  "mad.lo.u32 %r5, %r1, %r2, %r3;\n"
			  "mul.lo.u32 %r6, %r2, %r4;\n"
			  "cvt.u64.u32 %rd4, %r5;\n"
			  "cvt.u64.u32 %rd5, %r6;\n"
			  "or.b64 %rd6, %rd1, %rd2;\n"
			  "and.b64 %rd6, %rd6, 15;\n"
			  "mov.u64 %rd7, 0;\n"
			  "setp.ne.u64 %p1, %rd6, 0;\n"
			  "@%p1 bra BYTES;\n"
			  "and.b64 %rd7, %rd3, -16;\n"
			  "shl.b64 %rd8, %rd4, 4;\n"
			  "shl.b64 %rd9, %rd5, 4;\n"
			  "VECTORS:\n"
			  "setp.ge.u64 %p2, %rd8, %rd7;\n"
			  "@%p2 bra BYTES;\n"
			  "add.u64 %rd10, %rd2, %rd8;\n"
			  "add.u64 %rd11, %rd1, %rd8;\n"
			  "ld.volatile.global.v4.u32 {%r7, %r8, %r9, %r10}, [%rd10];\n"
			  "st.volatile.global.v4.u32 [%rd11], {%r7, %r8, %r9, %r10};\n"
			  "add.u64 %rd8, %rd8, %rd9;\n"
			  "bra VECTORS;\n"
			  "BYTES:\n"
			  "add.u64 %rd12, %rd7, %rd4;\n"
			  "ONE:\n"
			  "setp.ge.u64 %p3, %rd12, %rd3;\n"
			  "@%p3 bra END;\n"
			  "add.u64 %rd10, %rd2, %rd12;\n"
			  "add.u64 %rd11, %rd1, %rd12;\n"
			  "ld.volatile.global.u8 %r7, [%rd10];\n"
			  "st.volatile.global.u8 [%rd11], %r7;\n"
			  "add.u64 %rd12, %rd12, %rd5;\n"
			  "bra ONE;\n"
			  "END:\n"
			  "ret;\n"
			  "}\n";

struct soft_cuda_function *soft_cuda_kernel_load(const struct soft_cuda_driver *cuda)
{
	struct soft_cuda_function *function;
	struct soft_cuda_module *module;

	if (cuda->module_load(&module, ptx) ||
	    cuda->module_function(&function, module, "soft_copy"))
		return NULL;
	return function;
}

int soft_cuda_kernel_copy(struct soft_cuda_device *d, uint64_t to, uint64_t from, size_t len,
			  soft_cuda_stream stream)
{
	uint64_t bytes = len;
	void *arguments[] = {&to, &from, &bytes};
	size_t blocks = len / (THREADS * VECTOR) + 1;

	return d->cuda->launch(d->kernel, blocks < BLOCKS_MAX ? (unsigned int)blocks : BLOCKS_MAX,
			       1, 1, THREADS, 1, 1, /* shared= */ 0, stream, arguments,
			       /* more= */ NULL);
}
