/* SPDX-License-Identifier: Apache-2.0 */
#include "nccl/judge.h"

#include "base/banned.h"

const char *pp_nccl_path_name(enum pp_nccl_path p)
{
	static const char *const names[] = {
		[PP_NCCL_PATH_UNDETERMINED] = "undetermined",
		[PP_NCCL_PATH_GDR] = "gdr",
		[PP_NCCL_PATH_STAGED] = "host-staged",
		[PP_NCCL_PATH_SOCKET] = "socket",
		[PP_NCCL_PATH_NVLINK] = "nvlink",
		[PP_NCCL_PATH_MIXED] = "mixed",
	};

	return names[p];
}

const char *pp_nccl_mechanism_name(enum pp_nccl_mechanism m)
{
	static const char *const names[] = {
		[PP_NCCL_MECHANISM_UNDETERMINED] = "undetermined",
		[PP_NCCL_MECHANISM_DMABUF] = "dmabuf",
		[PP_NCCL_MECHANISM_PEERMEM] = "peermem",
		[PP_NCCL_MECHANISM_FAILED] = "failed",
		[PP_NCCL_MECHANISM_NONE] = "n/a",
	};

	return names[m];
}

const char *pp_nccl_claim_name(enum pp_nccl_claim c)
{
	static const char *const names[] = {
		[PP_NCCL_REFUTED] = "refuted",
		[PP_NCCL_UNPROVEN] = "unproven",
		[PP_NCCL_PROVEN] = "proven",
	};

	return names[c];
}

const char *pp_nccl_coverage_name(enum pp_nccl_coverage c)
{
	static const char *const names[] = {
		[PP_NCCL_COVER_NONE] = "none",	   [PP_NCCL_COVER_EXCERPT] = "excerpt",
		[PP_NCCL_COVER_ONE] = "one-rank",  [PP_NCCL_COVER_SOME] = "some-ranks",
		[PP_NCCL_COVER_ALL] = "all-ranks",
	};

	return names[c];
}
