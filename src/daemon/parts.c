/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/parts.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "base/banned.h"

static const char HCAS[] = "/sys/class/infiniband";
static const char GPUS[] = "/proc/driver/nvidia/gpus";

enum { INFORMATION = 4096, FACTS = 65536 };

/* A GUID of zeros and a UUID of question marks are of a device that does not know its own yet. */
static bool is_told(const char *id)
{
	return strlen(id) < sizeof(((struct pp_part *)0)->id) &&
	       strpbrk(id, "123456789abcdefABCDEF") && !strchr(id, '?');
}

static void add(struct pp_parts *p, enum pp_part_kind kind, const char *id)
{
	struct pp_part *to = &p->part[p->n];

	if (p->n == PP_PARTS_MOST || !is_told(id))
		return;
	to->kind = kind;
	(void)snprintf(to->id, sizeof(to->id), "%s", id);
	p->n++;
}

static void add_hca(struct pp_source *s, const char *dir, struct pp_parts *ret)
{
	char path[PP_PATH_MAX], text[64];

	if (!pp_path_join(dir, "node_guid", path) && !pp_source_text(s, path, text, sizeof(text)))
		add(ret, PP_PART_HCA, text);
}

/* A line "GPU UUID: \t GPU-71c53c3d-...". */
static void add_gpu(struct pp_source *s, const char *dir, struct pp_parts *ret)
{
	static const char KEY[] = "GPU UUID:";
	char path[PP_PATH_MAX], text[INFORMATION + 1];
	size_t len = 0;
	char *at;

	if (pp_path_join(dir, "information", path) ||
	    pp_source_read(s, path, text, INFORMATION, &len))
		return;
	text[len] = '\0';
	at = strstr(text, KEY);
	if (!at)
		return;
	at += sizeof(KEY) - 1;
	at[strcspn(at, "\n")] = '\0';
	add(ret, PP_PART_GPU, pp_trim(at));
}

static void read_all(struct pp_source *s, const char *dir,
		     void (*one)(struct pp_source *s, const char *dir, struct pp_parts *ret),
		     struct pp_parts *ret)
{
	struct pp_names names = {0};
	char path[PP_PATH_MAX];

	if (pp_source_list(s, dir, &names))
		return;
	for (size_t i = 0; i < names.n && i < PP_PARTS_MOST; i++)
		if (!pp_path_join(dir, names.name[i], path))
			one(s, path, ret);
	pp_names_done(&names);
}

void pp_parts_read(struct pp_source *s, struct pp_parts *ret)
{
	*ret = (struct pp_parts){0};
	read_all(s, GPUS, add_gpu, ret);
	read_all(s, HCAS, add_hca, ret);
}

void pp_parts_of_result(const json_t *node, struct pp_parts *ret)
{
	const json_t *facts = json_object_get(node, "facts"), *row;
	size_t i;

	*ret = (struct pp_parts){0};
	json_array_foreach(facts, i, row)
	{
		const char *fact = json_string_value(json_object_get(row, "fact"));
		const char *value = json_string_value(json_object_get(row, "value"));

		if (i == FACTS)
			break;
		if (fact && value && !strcmp(fact, "gpu.uuid"))
			add(ret, PP_PART_GPU, value);
		else if (fact && value && !strcmp(fact, "hca.node_guid"))
			add(ret, PP_PART_HCA, value);
	}
}

enum pp_parts_like pp_parts_compare(const struct pp_parts *a, const struct pp_parts *b)
{
	bool comparable = false;

	for (size_t i = 0; i < a->n; i++) {
		for (size_t k = 0; k < b->n; k++) {
			if (a->part[i].kind != b->part[k].kind)
				continue;
			comparable = true;
			if (!strcmp(a->part[i].id, b->part[k].id))
				return PP_PARTS_SAME;
		}
	}
	return comparable ? PP_PARTS_OTHER : PP_PARTS_UNKNOWN;
}
