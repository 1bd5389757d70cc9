/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `check --probe`: does memory really register on each hca? One host page, a DMA-BUF descriptor
 * that does not exist (-1), whose refusal tells how far the call got, and 64 KiB of each GPU by
 * DMA-BUF and by peermem.
 *
 * Each hca, and then each GPU with all hcas, is probed in a helper process with a deadline; every
 * call, its arguments, what it came to and its time are in the answers "probe-<method>-<bdf>", so
 * that a recording replays the probe. An hca that another process has open, and a GPU that another
 * one computes on, is refused unless @busy_ok.
 *
 * A row's verdict is about its way of registering only: `fail` says that this way is not
 * available, not that the node is bad.
 */
#ifndef PP_MEM_PROBE_H
#define PP_MEM_PROBE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/words.h"

struct pp_node;

struct pp_probe_options {
	bool busy_ok;	/* probe an hca that is in use by others; the caller records it */
	pp_ns deadline; /* of one hca; 0 = 5 s */
};

enum pp_probe_method {
	PP_PROBE_HOST,	      /* ibv_reg_mr of one host page */
	PP_PROBE_DMABUF_FD,   /* ibv_reg_dmabuf_mr with descriptor -1: EBADF = supported */
	PP_PROBE_GPU_DMABUF,  /* GPU memory by a descriptor of CUDA's */
	PP_PROBE_GPU_PEERMEM, /* ibv_reg_mr of GPU memory */
};

struct pp_probe_result {
	char hca[64];  /* BDF, or virtual/<name> */
	char name[64]; /* mlx5_0 */
	char gpu[32];  /* BDF for the GPU methods, else "" */
	enum pp_probe_method method;
	enum pp_verdict verdict;
	bool simulated; /* with the software device: it says nothing of hardware */
	int error;	/* errno of the deciding call, positive, 0 none; of CUDA's the like */
	pp_ns took;	/* of the deciding call */
	char note[256]; /* what the verdict means, or why it is unknown */
};

struct pp_probe {
	struct pp_probe_result *row; /* owned */
	size_t n;
	unsigned int busy;	/* hcas that another process has open */
	unsigned int busy_gpus; /* GPUs that another process computes on */
	bool users_known;	/* every process's descriptors could be read */
	char users_note[256];	/* who, or what could not be read; "" when nobody */
};

/*
 * Rows of all hcas, in the order of the node's objects; no hca gives 0 rows, nor does a function
 * that another hca's bond serves or that a guest has. -ENOMEM, -EFBIG: what cannot be probed is a
 * row with verdict unknown.
 */
int pp_probe_run(struct pp_node *n, const struct pp_probe_options *options, struct pp_probe **ret,
		 struct pp_error *err);
struct pp_probe *pp_probe_free(struct pp_probe *p); /* returns NULL */

/* "host", "dmabuf-fd-1", "gpu-dmabuf", "gpu-peermem". */
const char *pp_probe_method_name(enum pp_probe_method method);

/*
 * What errno @error of ibv_reg_dmabuf_mr() with descriptor -1 says; @error 0 is a region that must
 * not exist. Pure.
 */
enum pp_verdict pp_probe_judge_dmabuf(int error, const char **ret_note);

#endif
