/* SPDX-License-Identifier: Apache-2.0 */
#include "node/gpu_side.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "node/nvml.h"
#include "base/banned.h"

enum { TEXT_BYTES = 256 };

void pp_gpu_side_init(struct pp_gpu_side *s, const char *name, struct pp_answer answer,
		      const char *member)
{
	char key[64];

	*s = (struct pp_gpu_side){.name = name, .answer = answer};
	s->list = json_object_get(answer.data, member);
	if (json_is_array(s->list))
		return;
	s->list = NULL;
	(void)snprintf(key, sizeof(key), "%s_error", member);
	s->why = answer.answered ? pp_answer_str(answer.data, key) : s->answer.detail;
	s->why = s->why ? s->why : "the answer holds no list of GPUs";
}

void pp_gpu_side_done(struct pp_gpu_side *s)
{
	pp_answer_done(&s->answer);
	*s = (struct pp_gpu_side){0};
}

const char *pp_gpu_text(struct pp_node *n, const json_t *from, const char *member)
{
	const char *text = pp_answer_str(from, member);
	char clean[TEXT_BYTES];

	if (!text || strlen(text) >= sizeof(clean))
		return NULL;
	memcpy(clean, text, strlen(text) + 1);
	pp_sanitize(clean, false);
	text = pp_trim(clean);
	return *text ? pp_arena_str(&n->arena, text) : NULL;
}

int pp_gpu_number(const json_t *from, const char *member, int64_t max, int64_t *ret)
{
	int64_t v;

	if (pp_answer_i64(from, member, &v) || v < 0 || v > max)
		return -ENOENT;
	*ret = v;
	return 0;
}

bool pp_gpu_unsupported(const json_t *from, const char *member)
{
	char key[64];
	const char *error;

	(void)snprintf(key, sizeof(key), "%s_error", member);
	error = pp_answer_str(from, key);
	return error && strstr(error, "_NOT_SUPPORTED") != NULL;
}

/* The reason why a member is absent: its own, the GPU's, the library's. */
static const char *why_absent(struct pp_node *n, const struct pp_gpu_side *s, unsigned int i,
			      const char *member)
{
	char key[64];
	const char *why;

	if (!s->of[i])
		return s->why_not[i];
	(void)snprintf(key, sizeof(key), "%s_error", member);
	why = pp_gpu_text(n, s->of[i], key);
	return why ? why : "its answer does not hold it";
}

void pp_gpu_absent(struct pp_node *n, struct pp_object *o, enum pp_fact_id id,
		   const struct pp_gpu_side *s, unsigned int i, const char *member,
		   const char *source)
{
	pp_fact_unknown(&n->facts, o, id, source, "%s", why_absent(n, s, i, member));
}

/* What the PCI tree would have said. */
static void set_no_pci(struct pp_node *n, struct pp_object *o)
{
	static const enum pp_fact_id ids[] = {PP_F_GPU_DRIVER, PP_F_GPU_NUMA, PP_F_GPU_CPUS,
					      PP_F_GPU_IOMMU, PP_F_GPU_BAR_LARGEST};

	for (size_t i = 0; i < PP_ARRAY_LEN(ids); i++)
		pp_fact_unknown(&n->facts, o, ids[i], "/sys/bus/pci/devices",
				"the PCI tree does not list it");
}

void pp_gpu_side_add(struct pp_node *n, const struct pp_gpu_side *s)
{
	char id[PP_BDF_TEXT];
	struct pp_object *o;
	struct pp_bdf bdf;
	const char *at;

	for (size_t i = 0; i < json_array_size(s->list) && i < PP_NVML_GPUS; i++) {
		at = pp_answer_str(json_array_get(s->list, i), "bdf");
		if (!at || pp_bdf_parse(at, &bdf) ||
		    pp_object_find(&n->facts, PP_GPU, pp_bdf_format(&bdf, id)))
			continue;
		o = pp_object_add(&n->facts, PP_GPU, id);
		if (!o)
			return;
		o->pci = pp_pci_find(&n->pci, &bdf);
		set_no_pci(n, o);
	}
}

/* The library's entry of a GPU object. */
static const json_t *entry_of(const struct pp_gpu_side *s, const struct pp_object *o)
{
	char id[PP_BDF_TEXT];
	struct pp_bdf bdf;
	const char *at;

	for (size_t i = 0; i < json_array_size(s->list) && i < PP_NVML_GPUS; i++) {
		at = pp_answer_str(json_array_get(s->list, i), "bdf");
		if (at && !pp_bdf_parse(at, &bdf) && !strcmp(pp_bdf_format(&bdf, id), o->id))
			return json_array_get(s->list, i);
	}
	return NULL;
}

/* "NVML does not list it", and what NVML said of a GPU whose address it did not give. */
static const char *not_listed(struct pp_node *n, const struct pp_gpu_side *s,
			      const struct pp_object *o)
{
	const json_t *entry;
	const char *error;

	if (s->why)
		return s->why;
	if (!strcmp(s->name, "CUDA") && !strcmp(pp_fact_str_or(o, PP_F_GPU_MIG, ""), "on"))
		return "CUDA does not list it: with MIG on, a process sees one instance only";
	for (size_t i = 0; i < json_array_size(s->list) && i < PP_NVML_GPUS; i++) {
		entry = json_array_get(s->list, i);
		error = pp_answer_str(entry, "bdf") ? NULL : pp_gpu_text(n, entry, "bdf_error");
		if (error)
			return pp_arena_printf(&n->arena,
					       "%s does not list it; of its GPU %zu it says: %s",
					       s->name, i, error);
	}
	return pp_arena_printf(&n->arena, "%s does not list it", s->name);
}

int pp_gpu_side_match(struct pp_node *n, struct pp_gpu_side *s)
{
	unsigned int n_gpus = n->facts.count[PP_GPU], i = 0;
	const struct pp_object *o = NULL;

	s->of = pp_arena_array(&n->arena, n_gpus + 1, sizeof(*s->of));
	s->why_not = pp_arena_array(&n->arena, n_gpus + 1, sizeof(*s->why_not));
	if (!s->of || !s->why_not)
		return -ENOMEM;
	for (; (o = pp_object_next(&n->facts, PP_GPU, o)) && i < n_gpus; i++) {
		s->of[i] = entry_of(s, o);
		if (!s->of[i])
			s->why_not[i] = not_listed(n, s, o);
	}
	return 0;
}
