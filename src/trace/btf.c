/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libbpf reads the format; here members are found and turned into fetch arguments.
 */
#include "trace/btf.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { MODULES = 64, DEPTH = 16, NAME = 64, BITS = 8, SEEN = 64 };

static const char FOLDER[] = "/sys/kernel/btf";

/* A file of BTF, and the types that were looked for: the kernel's own has more than 10^5, without
 * an index. */
struct pp_btf_file {
	struct btf *btf; /* NULL: there is none */
	char name[NAME];
	struct pp_btf_file *base; /* of a module: the kernel's own */
	uint32_t first;		  /* its own types begin here */
	struct {
		char name[NAME];
		uint32_t kind, id; /* 0: it has none of its own */
	} seen[SEEN];
	unsigned int n_seen;
};

struct pp_btf {
	struct pp_btf_file kernel, module[MODULES];
	unsigned int n;
};

/* libbpf writes to stderr unless told. */
static int silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
	(void)level;
	(void)format;
	(void)arguments;
	return 0;
}

int pp_btf_open(struct pp_btf **ret, struct pp_error *err)
{
	struct pp_btf *b = calloc(1, sizeof(*b));
	char path[sizeof(FOLDER) + 16];

	if (!b)
		return pp_error_set(err, -ENOMEM, "no memory");
	(void)libbpf_set_print(silent);
	(void)snprintf(path, sizeof(path), "%s/vmlinux", FOLDER);
	b->kernel.first = 1;
	b->kernel.btf = access(path, R_OK) ? NULL : btf__parse_raw(path);
	if (!b->kernel.btf) {
		int error = errno ? errno : ENOENT;

		free(b);
		return pp_error_set(err, -error, "%s: %s", path, pp_errno_name(error));
	}
	*ret = b;
	return 0;
}

struct pp_btf *pp_btf_free(struct pp_btf *b)
{
	for (unsigned int i = 0; b && i < b->n; i++)
		btf__free(b->module[i].btf);
	if (b)
		btf__free(b->kernel.btf);
	free(b);
	return NULL;
}

struct pp_btf_file *pp_btf_of(struct pp_btf *b, const char *module)
{
	char path[sizeof(FOLDER) + NAME];
	struct pp_btf_file *f;

	if (!strcmp(module, "vmlinux"))
		return &b->kernel;
	for (unsigned int i = 0; i < b->n; i++)
		if (!strcmp(b->module[i].name, module))
			return b->module[i].btf ? &b->module[i] : NULL;
	if (b->n == MODULES || strlen(module) >= NAME || strchr(module, '/'))
		return NULL;
	f = &b->module[b->n++];
	f->base = &b->kernel;
	f->first = btf__type_cnt(b->kernel.btf);
	(void)snprintf(path, sizeof(path), "%s/%s", FOLDER, module);
	(void)snprintf(f->name, sizeof(f->name), "%s", module);
	if (!access(path, R_OK))
		f->btf = btf__parse_raw_split(path, b->kernel.btf);
	return f->btf ? f : NULL;
}

static const char *name_of(const struct btf *btf, uint32_t offset)
{
	const char *name = btf__name_by_offset(btf, offset);

	return name ? name : "";
}

/* Among the file's own types; 0 none. */
static uint32_t own_type(struct pp_btf_file *f, const char *name, uint32_t kind)
{
	uint32_t n = btf__type_cnt(f->btf), id;

	for (unsigned int i = 0; i < f->n_seen; i++)
		if (f->seen[i].kind == kind && !strcmp(f->seen[i].name, name))
			return f->seen[i].id;
	for (id = f->first; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(f->btf, id);

		if (t && btf_kind(t) == kind && !strcmp(name_of(f->btf, t->name_off), name))
			break;
	}
	id = id < n ? id : 0;
	if (f->n_seen < SEEN && strlen(name) < NAME) {
		(void)snprintf(f->seen[f->n_seen].name, NAME, "%s", name);
		f->seen[f->n_seen].kind = kind;
		f->seen[f->n_seen++].id = id;
	}
	return id;
}

/* A type of the file or of what it stands on; NULL none. */
static const struct btf_type *find(struct pp_btf_file *f, const char *name, uint32_t kind)
{
	uint32_t id = f ? own_type(f, name, kind) : 0;

	if (f && !id && f->base)
		id = own_type(f->base, name, kind);
	return id ? btf__type_by_id(f->btf, id) : NULL;
}

/* Behind typedefs and qualifiers. */
static const struct btf_type *bare(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (int i = 0; t && i < DEPTH && (btf_is_mod(t) || btf_is_typedef(t)); i++)
		t = btf__type_by_id(btf, t->type);
	return t;
}

struct member {
	uint32_t bit;	/* from the beginning of the outermost structure */
	uint32_t width; /* of a bitfield, else 0 */
	uint32_t type;
};

/* A member by its name, through members that have none. */
static bool find_member(const struct btf *btf, const struct btf_type *t, const char *name,
			uint32_t base, int depth, struct member *ret)
{
	const struct btf_member *m = btf_members(t);

	for (uint32_t i = 0; depth && i < btf_vlen(t); i++) {
		uint32_t bit = base + btf_member_bit_offset(t, i);
		const struct btf_type *inner;

		if (!strcmp(name_of(btf, m[i].name_off), name)) {
			*ret = (struct member){bit, btf_member_bitfield_size(t, i), m[i].type};
			return true;
		}
		inner = m[i].name_off ? NULL : bare(btf, m[i].type);
		if (inner && btf_is_composite(inner) &&
		    find_member(btf, inner, name, bit, depth - 1, ret))
			return true;
	}
	return false;
}

/* One step of a path: "umem" of "umem->is_dmabuf". */
struct step {
	char name[NAME];
	bool pointer; /* "->" follows */
	bool last;
};

static int take_step(const char **path, struct step *ret)
{
	size_t len = strcspn(*path, ".-");

	if (!len || len >= sizeof(ret->name))
		return -ENOENT;
	memcpy(ret->name, *path, len);
	ret->name[len] = '\0';
	*path += len;
	ret->last = !**path;
	ret->pointer = !strncmp(*path, "->", 2);
	if (!ret->last)
		*path += ret->pointer ? 2 : 1;
	return 0;
}

static bool is_char(const struct btf *btf, uint32_t id)
{
	const struct btf_type *t = bare(btf, id);

	return t && btf_is_int(t) && t->size == 1;
}

/* The last step: the value itself. */
static int write_value(const struct btf *btf, const struct member *m, long bytes, const char *base,
		       char *ret, size_t size)
{
	const struct btf_type *t = bare(btf, m->type);
	unsigned int bit = m->bit % BITS, container = BITS;
	int n;

	if (!t)
		return -ENOENT;
	if (m->width) {
		while (container < bit + m->width)
			container *= 2;
		n = snprintf(ret, size, "%+ld(%s):b%u@%u/%u", bytes, base, m->width, bit,
			     container);
	} else if (btf_is_ptr(t) && is_char(btf, t->type)) {
		n = snprintf(ret, size, "+0(%+ld(%s)):string", bytes, base);
	} else if (btf_is_array(t) && is_char(btf, btf_array(t)->type)) {
		n = snprintf(ret, size, "%+ld(%s):string", bytes, base);
	} else if (btf_is_ptr(t)) {
		n = snprintf(ret, size, "%+ld(%s):x64", bytes, base);
	} else if ((btf_is_int(t) || btf_is_any_enum(t)) && t->size <= 8) {
		n = snprintf(ret, size, "%+ld(%s):u%u", bytes, base, t->size * BITS);
	} else {
		return -ENOENT;
	}
	return n < 0 || (size_t)n >= size ? -ENOSPC : 0;
}

int pp_btf_fetch(struct pp_btf_file *f, const char *type, long start, const char *path,
		 const char *base, char *ret, size_t size)
{
	const struct btf_type *t = find(f, type, BTF_KIND_STRUCT);
	const struct btf *btf = f ? f->btf : NULL;
	char expression[256], next[sizeof(expression) + 32];
	struct member m = {0};
	long bytes = start;
	struct step step;
	int n;

	if (!t || snprintf(expression, sizeof(expression), "%s", base) >= (int)sizeof(expression))
		return -ENOENT;
	for (int i = 0; i < DEPTH; i++) {
		if (!t || !btf_is_composite(t) || take_step(&path, &step) ||
		    !find_member(btf, t, step.name, 0, DEPTH, &m))
			return -ENOENT;
		bytes += m.bit / BITS;
		if (step.last)
			return write_value(btf, &m, bytes, expression, ret, size);
		t = bare(btf, m.type);
		if (!step.pointer)
			continue;
		if (!t || !btf_is_ptr(t))
			return -ENOENT;
		t = bare(btf, t->type);
		n = snprintf(next, sizeof(next), "%+ld(%s)", bytes, expression);
		if (n < 0 || (size_t)n >= sizeof(expression))
			return -ENOSPC;
		memcpy(expression, next, (size_t)n + 1);
		bytes = 0;
	}
	return -ENOENT;
}

int pp_btf_offset(struct pp_btf_file *f, const char *type, const char *path, long *ret)
{
	const struct btf_type *t = find(f, type, BTF_KIND_STRUCT);
	const struct btf *btf = f ? f->btf : NULL;
	struct member m;
	struct step step;
	long bytes = 0;

	for (int i = 0; i < DEPTH; i++) {
		if (!t || !btf_is_composite(t) || take_step(&path, &step) || step.pointer ||
		    !find_member(btf, t, step.name, 0, DEPTH, &m))
			return -ENOENT;
		bytes += m.bit / BITS;
		if (step.last) {
			*ret = bytes;
			return 0;
		}
		t = bare(btf, m.type);
	}
	return -ENOENT;
}

int pp_btf_argument(struct pp_btf_file *f, const char *function, const char *name)
{
	const struct btf_type *t = find(f, function, BTF_KIND_FUNC);
	const struct btf *btf = f ? f->btf : NULL;
	const struct btf_param *p;

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (!t || !btf_is_func_proto(t))
		return -ENOENT;
	p = btf_params(t);
	for (int i = 0; i < btf_vlen(t); i++)
		if (!strcmp(name_of(btf, p[i].name_off), name))
			return i + 1;
	return -ENOENT;
}

bool pp_btf_has(struct pp_btf_file *f, const char *function)
{
	return find(f, function, BTF_KIND_FUNC) != NULL;
}

int pp_btf_enumerator(struct pp_btf_file *f, const char *type, const char *name, int64_t *ret)
{
	const struct btf_type *t = find(f, type, BTF_KIND_ENUM);
	const struct btf *btf = f ? f->btf : NULL;
	const struct btf_enum *e = t ? btf_enum(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		if (strcmp(name_of(btf, e[i].name_off), name) != 0)
			continue;
		*ret = e[i].val;
		return 0;
	}
	return -ENOENT;
}

static bool is_struct(const struct btf *btf, const struct btf_type *t, const char *name)
{
	return t && btf_is_struct(t) && !strcmp(name_of(btf, t->name_off), name);
}

/* Fills what of a region's two members is among these, and in members without a name. */
static void look_for(const struct btf *btf, const struct btf_type *t, int depth,
		     struct pp_btf_region *r)
{
	const struct btf_member *m = btf_members(t);

	for (uint32_t i = 0; depth && i < btf_vlen(t); i++) {
		const struct btf_type *inner = bare(btf, m[i].type);
		const char *name = name_of(btf, m[i].name_off);

		if (inner && btf_is_ptr(inner) && *name && !*r->umem &&
		    (is_struct(btf, bare(btf, inner->type), "ib_umem")))
			(void)snprintf(r->umem, sizeof(r->umem), "%s", name);
		else if (is_struct(btf, inner, "ib_mr") && *name && !*r->mr)
			(void)snprintf(r->mr, sizeof(r->mr), "%s", name);
		else if (inner && !*name && btf_is_composite(inner))
			look_for(btf, inner, depth - 1, r);
	}
}

int pp_btf_region(struct pp_btf_file *f, struct pp_btf_region *ret)
{
	const struct btf *module = f ? f->btf : NULL;
	uint32_t n = module ? btf__type_cnt(module) : 0;

	for (uint32_t id = module ? f->first : 0; id < n; id++) {
		const struct btf_type *t = btf__type_by_id(module, id);
		struct pp_btf_region r = {0};

		if (!t || !btf_is_struct(t) || !t->name_off)
			continue;
		look_for(module, t, DEPTH, &r);
		if (!*r.mr || !*r.umem)
			continue;
		(void)snprintf(r.type, sizeof(r.type), "%s", name_of(module, t->name_off));
		*ret = r;
		return 0;
	}
	return -ENOENT;
}
