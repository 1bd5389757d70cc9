/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/efa.h"

#include <string.h>

#include "node/kernel_log.h"
#include "base/banned.h"

static bool is_acquired(const struct pp_kmsg *m)
{
	/* the kernel's own facility: what a program writes to the log has another */
	return m->facility == 0 && !strncmp(m->text, "efa", 3) &&
	       strstr(m->text, ": Acquired peer memory using P2P");
}

static bool has_efa(const struct pp_trace_hcas *hcas)
{
	for (size_t i = 0; i < hcas->n; i++)
		if (!strcmp(hcas->item[i].driver, "efa"))
			return true;
	return false;
}

int pp_efa_ask(struct pp_source *s, const struct pp_trace_hcas *hcas, enum pp_tristate *ret,
	       const char **ret_why)
{
	struct pp_answer a;
	bool whole;
	int r;

	*ret = PP_UNSAID;
	*ret_why = NULL;
	if (!has_efa(hcas))
		return 0;
	r = pp_kernel_log_ask(s, &a);
	if (r)
		return r;
	*ret_why = pp_kernel_log_find(&a, is_acquired, &whole);
	*ret = !*ret_why ? PP_YES : whole ? PP_NO : PP_UNSAID;
	pp_answer_done(&a);
	return 0;
}
