/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the NVIDIA Management Library says of the GPUs, as the answer "nvml".
 *
 * {"library", "driver_version", "nvml_version", "gpus": [{"index", "bdf", "uuid", "name", ...,
 *  "links": [{"link", "active", "remote", "remote_bdf"}]}]}
 *
 * A member that NVML does not give is absent, and "<member>_error" says why.
 */
#ifndef PP_NODE_NVML_H
#define PP_NODE_NVML_H

#include "node/ask.h"
#include "node/dl.h"

/* What is read of an answer, however long it is. */
enum { PP_NVML_GPUS = 256, PP_NVML_LINKS = 36 };

/* As pp_ask(). */
int pp_nvml_ask(struct pp_source *s, const struct pp_dl_options *options, struct pp_answer *ret);

#endif
