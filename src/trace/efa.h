/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EFA's own way to a GPU's memory: its driver says so in the kernel log, once a boot, for the whole
 * machine. A hint beside a probe's proof; its absence proves nothing where the log is not whole.
 */
#ifndef PP_TRACE_EFA_H
#define PP_TRACE_EFA_H

#include "node/ask.h"
#include "trace/hca.h"

/*
 * "efa: Acquired peer memory using P2P". The log is read only where an hca is EFA's. @ret_why says
 * why it is not PP_YES (static text). -ENOMEM.
 */
int pp_efa_ask(struct pp_source *s, const struct pp_trace_hcas *hcas, enum pp_tristate *ret,
	       const char **ret_why);

#endif
