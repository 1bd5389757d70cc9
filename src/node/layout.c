/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a layout file. A key table per kind of section; anything else is refused by its
 * nearest name, since a misspelt expectation that is skipped would look like one that is met.
 */
#include "node/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/ini.h"
#include "base/near.h"
#include "base/parse.h"
#include "base/banned.h"

static const size_t ARENA_LIMIT = (size_t)4 << 20;

struct reader {
	struct pp_layout *l;
	struct pp_layout_rail *rail;
	struct pp_layout_link *link;
	const char *const *keys; /* of the section being read */
	const char *section;
};

static const char *const node_keys[] = {"gpus", "hcas", "numa_nodes", NULL};
static const char *const rail_keys[] = {"gpu", "hca", "distance", NULL};
static const char *const link_keys[] = {"width", "speed", NULL};
static const char *const iommu_keys[] = {"type", NULL};
static const char *const acs_keys[] = {"redirect", NULL};
static const char *const distances[] = {"PIX", "PXB", "PHB", "NODE", "SYS", NULL};
static const char *const iommu_types[] = {"identity", "DMA", "DMA-FQ", "none", NULL};

static bool among(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (!strcmp(*words, word))
			return true;
	return false;
}

static int refuse_word(const char *const *words, const char *what, const char *word,
		       struct pp_error *err)
{
	struct pp_near near = PP_NEAR(word);

	for (size_t i = 0; words[i]; i++)
		pp_near_offer(&near, words[i]);
	return pp_error_set(err, -EINVAL, "unknown %s '%s'%s%s%s", what, word,
			    near.best ? ", did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

static int open_rail(struct reader *r, const char *name, unsigned int line, struct pp_error *err)
{
	struct pp_layout *l = r->l;

	for (unsigned int i = 0; i < l->n_rails; i++)
		if (!strcmp(l->rails[i].name, name))
			return pp_error_set(err, -EINVAL, "rail '%s' stands here twice", name);
	if (l->n_rails == PP_LAYOUT_MAX)
		return pp_error_set(err, -EINVAL, "more than %d rails", PP_LAYOUT_MAX);
	r->rail = &l->rails[l->n_rails++];
	*r->rail = (struct pp_layout_rail){.name = pp_arena_str(&l->arena, name), .line = line};
	return 0;
}

static int open_link(struct reader *r, const char *name, struct pp_error *err)
{
	struct pp_layout *l = r->l;

	if (l->n_links == PP_LAYOUT_MAX)
		return pp_error_set(err, -EINVAL, "more than %d links", PP_LAYOUT_MAX);
	r->link = &l->links[l->n_links];
	*r->link = (struct pp_layout_link){.width = -1, .speed_mts = -1};
	if (pp_bdf_parse(name, &r->link->bdf))
		return pp_error_set(err, -EINVAL, "'%s' is no PCI address", name);
	r->link->name = pp_arena_str(&l->arena, name);
	l->n_links++;
	return 0;
}

static int open_section(struct reader *r, const char *section, unsigned int line,
			struct pp_error *err)
{
	static const char *const names[] = {"node", "rail", "link", "iommu", "acs", NULL};
	static const char *const *const keys[] = {node_keys, rail_keys, link_keys, iommu_keys,
						  acs_keys};
	char kind[16] = "";
	size_t len = strcspn(section, " ");
	const char *name = section + len + strspn(section + len, " ");

	if (len < sizeof(kind))
		memcpy(kind, section, len);
	r->rail = NULL;
	r->link = NULL;
	r->section = NULL;
	for (size_t i = 0; names[i]; i++) {
		if (strcmp(names[i], kind) != 0)
			continue;
		r->section = names[i];
		r->keys = keys[i];
	}
	if (!r->section)
		return refuse_word(names, "section", section, err);
	if (r->keys == rail_keys || r->keys == link_keys) {
		if (!*name)
			return pp_error_set(err, -EINVAL, "[%s] needs a name", kind);
		return r->keys == rail_keys ? open_rail(r, name, line, err)
					    : open_link(r, name, err);
	}
	return *name ? pp_error_set(err, -EINVAL, "[%s] takes no name", kind) : 0;
}

static int take_count(struct pp_layout *l, const char *key, const char *value, struct pp_error *err)
{
	int64_t *to = !strcmp(key, "gpus")   ? &l->gpus
		      : !strcmp(key, "hcas") ? &l->hcas
					     : &l->numa_nodes;

	if (pp_parse_i64(value, 0, 65535, to))
		return pp_error_set(err, -EINVAL, "%s: '%s' is no count", key, value);
	return 0;
}

static int take_rail(struct reader *r, const char *key, const char *value, struct pp_error *err)
{
	struct pp_arena *a = &r->l->arena;

	if (!strcmp(key, "gpu")) {
		r->rail->gpu = pp_arena_str(a, value);
	} else if (!strcmp(key, "hca")) {
		r->rail->hca = pp_arena_str(a, value);
	} else {
		if (strcmp(value, "nearest") != 0 &&
		    !among(distances, strncmp(value, "<=", 2) ? value : value + 2))
			return refuse_word(distances, "distance", value, err);
		r->rail->distance = pp_arena_str(a, value);
	}
	return 0;
}

/* "x16" and "32GT/s" are how people write what sysfs calls 16 and "32.0 GT/s PCIe". */
static int link_number(const char *key, const char *value)
{
	size_t digits = strspn(value, "0123456789.");
	char text[32];

	if (!strcmp(key, "width"))
		return pp_pci_width_parse(*value == 'x' ? value + 1 : value);
	if (!strncmp(value + digits, "GT/s", 4) && digits < 8) {
		memcpy(text, value, digits);
		memcpy(text + digits, " GT/s", sizeof(" GT/s"));
		return value[digits + 4] ? -1 : pp_pci_speed_parse(text);
	}
	return pp_pci_speed_parse(value);
}

static int take_link(struct reader *r, const char *key, const char *value, struct pp_error *err)
{
	int n = link_number(key, value);

	if (n <= 0)
		return pp_error_set(err, -EINVAL,
				    "%s: '%s' is none; e.g. width = 16, speed = 32GT/s", key,
				    value);
	if (!strcmp(key, "width"))
		r->link->width = n;
	else
		r->link->speed_mts = n;
	return 0;
}

static int take(void *arg, const char *section, const char *key, const char *value,
		unsigned int line, struct pp_error *err)
{
	struct reader *r = arg;
	bool yes;

	if (!key)
		return open_section(r, section, line, err);
	if (!among(r->keys, key))
		return refuse_word(r->keys, "key", key, err);
	if (!*value)
		return pp_error_set(err, -EINVAL, "%s: no value", key);
	if (r->keys == node_keys)
		return take_count(r->l, key, value, err);
	if (r->keys == rail_keys)
		return take_rail(r, key, value, err);
	if (r->keys == link_keys)
		return take_link(r, key, value, err);
	if (r->keys == iommu_keys) {
		if (!among(iommu_types, value))
			return refuse_word(iommu_types, "type", value, err);
		r->l->iommu_type = pp_arena_str(&r->l->arena, value);
		return 0;
	}
	if (pp_parse_bool(value, &yes))
		return pp_error_set(err, -EINVAL, "redirect: '%s' is neither yes nor no", value);
	r->l->acs_redirect = yes;
	return 0;
}

/* What no single line shows. */
static int check(const struct pp_layout *l, const char *name, struct pp_error *err)
{
	for (unsigned int i = 0; i < l->n_rails; i++)
		if (!l->rails[i].gpu || !l->rails[i].hca)
			return pp_error_set(err, -EINVAL, "%s:%u: rail '%s' needs gpu and hca",
					    name, l->rails[i].line, l->rails[i].name);
	if (!l->n_rails && !l->n_links && !l->iommu_type && l->acs_redirect < 0 && l->gpus < 0 &&
	    l->hcas < 0 && l->numa_nodes < 0)
		return pp_error_set(err, -EINVAL, "%s: expects nothing", name);
	return 0;
}

int pp_layout_parse(const char *name, const char *text, size_t len, struct pp_layout **ret,
		    struct pp_error *err)
{
	struct pp_layout *l = calloc(1, sizeof(*l));
	struct reader r = {.l = l};
	int e;

	if (!l)
		return pp_error_set(err, -ENOMEM, "out of memory");
	*l = (struct pp_layout){.arena = PP_ARENA(ARENA_LIMIT),
				.gpus = -1,
				.hcas = -1,
				.numa_nodes = -1,
				.acs_redirect = -1};
	l->rails = pp_arena_array(&l->arena, PP_LAYOUT_MAX, sizeof(*l->rails));
	l->links = pp_arena_array(&l->arena, PP_LAYOUT_MAX, sizeof(*l->links));
	e = l->arena.failed ? pp_error_set(err, -ENOMEM, "out of memory")
			    : pp_ini_parse(name, text, len, take, &r, err);
	if (!e)
		e = check(l, name, err);
	if (!e && l->arena.failed)
		e = pp_error_set(err, -EINVAL, "%s: too long", name);
	if (e) {
		pp_layout_free(l);
		return e;
	}
	*ret = l;
	return 0;
}

struct pp_layout *pp_layout_free(struct pp_layout *l)
{
	if (!l)
		return NULL;
	pp_arena_done(&l->arena);
	free(l);
	return NULL;
}
