/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the CUDA driver says of the GPUs' capabilities, as the answer "cuda".
 *
 * {"library", "driver_api", "devices": [{"ordinal", "bdf", "uuid", "name", "dmabuf", ...}]}
 *
 * A member that CUDA does not give is absent, and "<member>_error" says why. No context is made
 * on any GPU.
 */
#ifndef PP_NODE_CUDA_H
#define PP_NODE_CUDA_H

#include "node/ask.h"
#include "node/dl.h"

/* As pp_ask_ahead(): cuInit takes longest of all that is asked. */
void pp_cuda_ahead(struct pp_source *s, const struct pp_dl_options *options);
/* As pp_ask(). */
int pp_cuda_ask(struct pp_source *s, const struct pp_dl_options *options, struct pp_answer *ret);

#endif
