/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access is proven by an open that worked, and by nothing less: access(2) asks the permission bits
 * of the node, and a device cgroup refuses the open alone. A node that is absent or forbidden by
 * its bits disproves it.
 */
#include "node/hca_verbs.h"

#include <errno.h>
#include <string.h>

#include "node/device_access.h"
#include "base/banned.h"

enum { MAX_ERRNO = 4095 };

static const char NODES[] = "access(/dev/infiniband)", OPEN[] = "ibv_open_device";

int pp_hca_listed(const struct pp_node *n, const char *name)
{
	const struct pp_fact *devices = pp_fact_get(n->self, PP_F_IBVERBS_DEVICES);

	if (!devices || !devices->known)
		return -1;
	for (size_t i = 0; devices->list[i]; i++)
		if (!strcmp(devices->list[i], name))
			return 1;
	return 0;
}

/* Why the open proves nothing; NULL when it worked. */
static const char *open_why(const struct pp_hca *h)
{
	int64_t error;

	if (!h->verbs)
		return h->verbs_why;
	if (pp_hca_listed(h->node, h->name) <= 0)
		return "libibverbs does not list this device";
	if (pp_answer_i64(h->verbs, "open_errno", &error) || error < 0 || error > MAX_ERRNO)
		return "the answer does not say whether it opened";
	return error ? pp_source_why((int)-error) : NULL;
}

void pp_hca_set_access(struct pp_hca *h, const struct pp_answer *access, const char *uverbs)
{
	struct pp_facts *f = &h->node->facts;
	int error = pp_device_access_uverbs(access, uverbs);
	const char *why = open_why(h);
	int64_t opened = 0;

	if (!pp_answer_i64(h->verbs, "open_errno", &opened) &&
	    (opened == EPERM || opened == EACCES))
		pp_fact_bool(f, h->object, PP_F_HCA_UVERBS_ACCESS, false, OPEN);
	else if (error == ENOENT || error == EACCES || error == EPERM || error == EROFS)
		pp_fact_bool(f, h->object, PP_F_HCA_UVERBS_ACCESS, false,
			     error == ENOENT ? "absent from /dev/infiniband"
					     : "access(/dev/infiniband): permission denied");
	else if (error)
		pp_fact_unknown(f, h->object, PP_F_HCA_UVERBS_ACCESS, NODES, "%s",
				error > 0	  ? pp_source_why(-error)
				: *access->detail ? access->detail
				: access->data	  ? "the answer does not name this device"
						  : h->verbs_why);
	else if (why)
		pp_fact_unknown(f, h->object, PP_F_HCA_UVERBS_ACCESS, OPEN, "%s: %s", OPEN, why);
	else
		pp_fact_bool(f, h->object, PP_F_HCA_UVERBS_ACCESS, true, OPEN);
}
