/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users to objects. A BDF is one in any form that people write; a second device of the
 * same function has its directory behind the BDF.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "rdma/choose_parts.h"
#include "base/banned.h"

void pp_choose_append(char *text, size_t size, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text + used, size - used, fmt, ap);
	va_end(ap);
}

const char *const *pp_choose_listed(const struct pp_node *n, const struct pp_choose_options *o)
{
	const struct pp_fact *fact = pp_fact_get(n->self, PP_F_IBVERBS_DEVICES);

	return o->listed ? o->listed : fact && fact->known ? fact->list : NULL;
}

bool pp_choose_only_software(const struct pp_node *n)
{
	bool simulated = false, bare = false;
	const struct pp_object *hca = NULL;

	while ((hca = pp_object_next(&n->facts, PP_HCA, hca))) {
		if (pp_object_simulated(hca))
			simulated = true;
		else if (strncmp(hca->id, "virtual/", 8) != 0 && hca->name)
			return false;
		else if (strncmp(hca->id, "virtual/", 8) != 0)
			bare = true;
	}
	/* A made /sys keeps the functions of the machine's hcas and takes their RDMA devices. */
	return simulated || !bare;
}

const struct pp_object *pp_choose_by_name(const struct pp_node *n, const char *name)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_HCA, o)))
		if (o->name && !strcmp(o->name, name))
			return o;
	return NULL;
}

/* Its function is @bdf, or its identity begins with it. */
static bool is_at(const struct pp_object *o, const char *bdf)
{
	size_t len = strlen(bdf);

	return !strncmp(o->id, bdf, len) && (!o->id[len] || o->id[len] == '/');
}

static const struct pp_object *by_bdf(const struct pp_node *n, const char *text,
				      unsigned int *ret_n)
{
	const struct pp_object *o = NULL, *found = NULL;
	char canonical[PP_BDF_TEXT];
	struct pp_bdf bdf;

	*ret_n = 0;
	if (pp_bdf_parse(text, &bdf))
		return NULL;
	(void)pp_bdf_format(&bdf, canonical);
	while ((o = pp_object_next(&n->facts, PP_HCA, o))) {
		if (!is_at(o, canonical))
			continue;
		found = found ? found : o;
		++*ret_n;
	}
	return found;
}

static void list_hcas(const struct pp_node *n, const char *const *listed, struct pp_error *err)
{
	const struct pp_object *o = NULL;
	bool any = false;

	while ((o = pp_object_next(&n->facts, PP_HCA, o))) {
		pp_choose_append(err->text, sizeof(err->text), "%s %s (%s)", any ? "," : "", o->id,
				 o->name ? o->name : "no RDMA device");
		any = true;
	}
	for (size_t i = 0; listed && listed[i]; i++) {
		if (pp_choose_by_name(n, listed[i]))
			continue;
		pp_choose_append(err->text, sizeof(err->text), "%s virtual/%s", any ? "," : "",
				 listed[i]);
		any = true;
	}
	if (!any)
		pp_choose_append(err->text, sizeof(err->text), " none");
}

static const char *unseen_by_kernel(const char *const *listed, const char *name)
{
	if (!strncmp(name, "virtual/", 8))
		name += 8;
	for (size_t i = 0; listed && listed[i]; i++)
		if (!strcmp(listed[i], name))
			return listed[i];
	return NULL;
}

int pp_choose_device(const struct pp_node *n, const struct pp_choose_options *o,
		     const struct pp_object **ret, const char **ret_unseen, struct pp_error *err)
{
	const struct pp_object *found = pp_object_find(&n->facts, PP_HCA, o->device);
	const char *const *listed = pp_choose_listed(n, o);
	unsigned int several = 0;

	if (!found)
		found = pp_choose_by_name(n, o->device);
	if (!found)
		found = by_bdf(n, o->device, &several);
	if (several > 1) {
		(void)pp_error_set(err, -EINVAL, "%s has %u RDMA devices: say which of", o->device,
				   several);
		list_hcas(n, NULL, err);
		return -EINVAL;
	}
	if (!found)
		*ret_unseen = unseen_by_kernel(listed, o->device);
	if (!found && !*ret_unseen) {
		(void)pp_error_set(err, -ENODEV, "no RDMA device '%s'; there is:", o->device);
		list_hcas(n, listed, err);
		return -ENODEV;
	}
	*ret = found;
	return 0;
}

int pp_choose_gpu(const struct pp_node *n, const char *name, const struct pp_object **ret,
		  struct pp_error *err)
{
	const struct pp_object *o = NULL;
	char canonical[PP_BDF_TEXT] = "";
	struct pp_bdf bdf;
	bool any = false;

	if (!pp_bdf_parse(name, &bdf))
		(void)pp_bdf_format(&bdf, canonical);
	while ((o = pp_object_next(&n->facts, PP_GPU, o))) {
		if (!strcmp(o->id, name) || !strcmp(o->id, canonical) ||
		    !strcasecmp(pp_fact_str_or(o, PP_F_GPU_UUID, ""), name)) {
			*ret = o;
			return 0;
		}
	}
	(void)pp_error_set(err, -ENODEV, "no gpu '%s'; there is:", name);
	while ((o = pp_object_next(&n->facts, PP_GPU, o))) {
		pp_choose_append(err->text, sizeof(err->text), "%s %s", any ? "," : "", o->id);
		any = true;
	}
	if (!any)
		pp_choose_append(err->text, sizeof(err->text), " none");
	return -ENODEV;
}

const struct pp_object *pp_choose_pair(const struct pp_node *n, const struct pp_object *gpu,
				       const struct pp_object *hca)
{
	const struct pp_object *o = NULL;

	while ((o = pp_object_next(&n->facts, PP_PAIR, o)))
		if (o->parent == gpu && o->peer == hca)
			return o;
	return NULL;
}
