/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "trace/kprobe_parts.h"
#include "base/banned.h"

enum { ARGUMENTS = 6 };

const struct pp_kprobe *pp_kprobe_find(const struct pp_kprobes *k, const char *event, size_t len)
{
	for (unsigned int i = 0; i < k->n; i++)
		if (strlen(k->item[i].event) == len && !memcmp(k->item[i].event, event, len))
			return &k->item[i];
	return NULL;
}

const char *pp_kprobe_argument(const struct pp_tracefs *t, bool user, int n)
{
	static const char *const by_number[ARGUMENTS] = {"$arg1", "$arg2", "$arg3",
							 "$arg4", "$arg5", "$arg6"};
#if defined(__x86_64__)
	static const char *const registers[ARGUMENTS] = {"%di", "%si", "%dx", "%cx", "%r8", "%r9"};
#elif defined(__aarch64__)
	static const char *const registers[ARGUMENTS] = {"%x0", "%x1", "%x2", "%x3", "%x4", "%x5"};
#else
	static const char *const registers[ARGUMENTS] = {NULL};
#endif
	if (n < 1 || n > ARGUMENTS)
		return NULL;
	return t->arguments && !user ? by_number[n - 1] : registers[n - 1];
}

/* The entry's number is given inside rdma_restrack_add(): it is not there yet. */
const struct pp_kprobe_field pp_kprobe_entry[] = {
	{"obj", "res", NULL, NULL, NULL},
	{"rtype", "res", "rdma_restrack_entry", NULL, "type"},
	{"tgid", "res", "rdma_restrack_entry", NULL, "task->tgid"},
	{"lkey", "res", "ib_mr", "res", "lkey"},
	{"len", "res", "ib_mr", "res", "length"},
	{"hca", "res", "ib_mr", "res", "device->name"},
	{NULL},
};

/* Where the functions' and structures' BTF is; the module of a function first. */
static const char *const layouts[] = {"ib_core", "ib_uverbs", "vmlinux"};

void pp_kprobe_write(struct pp_kprobe_writer *w, const char *fmt, ...)
{
	size_t len = strlen(w->probe->text);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(w->probe->text + len, sizeof(w->probe->text) - len, fmt, ap);
	va_end(ap);
	w->full = w->full || n < 0 || (size_t)n >= sizeof(w->probe->text) - len;
}

struct pp_kprobe *pp_kprobe_add(struct pp_kprobes *k, struct pp_kprobe_writer *w, char suffix,
				bool returns, const char *function, const char *module)
{
	struct pp_kprobe *p = k->n < PP_KPROBES ? &k->item[k->n] : NULL;
	bool kernel = !strcmp(module, "vmlinux");

	if (!p)
		return NULL;
	*p = (struct pp_kprobe){.suffix = suffix, .returns = returns};
	(void)snprintf(p->event, sizeof(p->event), "%c%u%s", suffix, k->n, returns ? "r" : "e");
	(void)snprintf(p->symbol, sizeof(p->symbol), "%.47s", function);
	w->probe = p;
	w->function = function;
	w->module = module;
	w->full = false;
	pp_kprobe_write(w, "%c:%s/%s %s%s%s", returns ? 'r' : 'p', w->tracefs->group, p->event,
			kernel ? "" : module, kernel ? "" : ":", function);
	return p;
}

/* The expression of a member, in whichever BTF knows the structure. */
static int fetch(struct pp_kprobe_writer *w, const struct pp_kprobe_field *f, const char *base,
		 char *ret, size_t size)
{
	int r = -ENOENT;

	for (size_t i = 0; i < PP_ARRAY_LEN(layouts) && r; i++) {
		struct pp_btf_file *btf = pp_btf_of(w->btf, layouts[i]);
		long inner = 0;

		if (f->inner && pp_btf_offset(btf, f->type, f->inner, &inner))
			continue;
		r = pp_btf_fetch(btf, f->type, -inner, f->path, base, ret, size);
	}
	return r;
}

const char *pp_kprobe_named(const struct pp_kprobe_writer *w, const char *name)
{
	struct pp_btf_file *btf = w->btf ? pp_btf_of(w->btf, w->module) : NULL;

	return btf ? pp_kprobe_argument(w->tracefs, false, pp_btf_argument(btf, w->function, name))
		   : NULL;
}

void pp_kprobe_fields(struct pp_kprobe_writer *w, const struct pp_kprobe_field *fields)
{
	char expression[512];

	for (const struct pp_kprobe_field *f = fields; f->name; f++) {
		const char *base = pp_kprobe_named(w, f->param);

		if (!base)
			continue;
		if (!f->type)
			pp_kprobe_write(w, " %s=%s:%s", f->name, base,
					strcmp(f->name, "fd") ? "x64" : "s32");
		else if (!fetch(w, f, base, expression, sizeof(expression)))
			pp_kprobe_write(w, " %s=%s", f->name, expression);
	}
}

void pp_kprobe_filter(struct pp_kprobe *p, struct pp_btf *btf)
{
	int64_t type;

	if (btf && strstr(p->text, " rtype=") &&
	    !pp_btf_enumerator(pp_btf_of(btf, "ib_core"), "rdma_restrack_type", "RDMA_RESTRACK_MR",
			       &type))
		(void)snprintf(p->filter, sizeof(p->filter), "rtype == %lld", (long long)type);
}
