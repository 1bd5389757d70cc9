/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's word: uprobes on the registering calls of one libibverbs. Every version of a symbol
 * is another function in the file, so each address is probed once.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "trace/kprobe_parts.h"
#include "base/banned.h"

enum { ADDRESSES = 16, SEGMENTS = 64 };

/* Arguments by number, as <infiniband/verbs.h> declares them. */
static const struct call {
	const char *symbol;
	struct {
		const char *name;
		int number;
		const char *type;
	} argument[4];
} calls[] = {
	{"ibv_reg_mr", {{"addr", 2, "x64"}, {"len", 3, "u64"}}},
	{"ibv_reg_mr_iova", {{"addr", 2, "x64"}, {"len", 3, "u64"}}},
	{"ibv_reg_mr_iova2", {{"addr", 2, "x64"}, {"len", 3, "u64"}}},
	{"ibv_reg_dmabuf_mr", {{"len", 3, "u64"}, {"addr", 4, "x64"}, {"fd", 5, "s32"}}},
	{"mlx5dv_reg_dmabuf_mr", {{"len", 3, "u64"}, {"addr", 4, "x64"}, {"fd", 5, "s32"}}},
};

/* lkey of struct ibv_mr: two pointers, address, length, handle before it (stable ABI, 64 bit). */
static const char LKEY[] = "+36($retval):u32";

struct place {
	const struct call *call;
	uint64_t offset; /* in the file */
};

struct places {
	struct place item[ADDRESSES];
	unsigned int n;
};

/* An address of the loaded object as an offset in its file. */
static bool in_file(Elf *elf, uint64_t address, uint64_t *ret)
{
	GElf_Phdr segment;
	size_t n = 0;

	(void)elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n && i < SEGMENTS; i++) {
		if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD ||
		    address < segment.p_vaddr || address - segment.p_vaddr >= segment.p_filesz)
			continue;
		*ret = address - segment.p_vaddr + segment.p_offset;
		return true;
	}
	return false;
}

static void take(struct places *p, const struct call *call, uint64_t offset)
{
	for (unsigned int i = 0; i < p->n; i++)
		if (p->item[i].offset == offset)
			return;
	if (p->n < ADDRESSES)
		p->item[p->n++] = (struct place){call, offset};
}

static void look_in(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, struct places *ret)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t n = header->sh_entsize ? header->sh_size / header->sh_entsize : 0;
	uint64_t offset;
	GElf_Sym symbol;

	for (size_t i = 0; data && i < n; i++) {
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || symbol.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		name = elf_strptr(elf, header->sh_link, symbol.st_name);
		for (size_t c = 0; name && c < PP_ARRAY_LEN(calls); c++)
			if (!strcmp(calls[c].symbol, name) &&
			    in_file(elf, symbol.st_value, &offset))
				take(ret, &calls[c], offset);
	}
}

static int find(const char *path, struct places *ret, struct pp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	Elf *elf;

	if (fd < 0)
		return pp_error_set(err, -errno, "%s: %s", path, pp_errno_name(errno));
	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && (section = elf_nextscn(elf, section)))
		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			look_in(elf, section, &header, ret);
	(void)elf_end(elf);
	(void)close(fd);
	return ret->n ? 0 : pp_error_set(err, -ENOENT, "%s: no call that registers memory", path);
}

static struct pp_kprobe *begin(struct pp_kprobes *k, const struct pp_tracefs *t,
			       const struct place *at, const char *path, bool returns)
{
	struct pp_kprobe *p = k->n < PP_KPROBES ? &k->item[k->n] : NULL;
	char event[sizeof(p->event)];

	if (!p)
		return NULL;
	*p = (struct pp_kprobe){.suffix = 'a',
				.user = true,
				.returns = returns,
				.kind = PP_EVENT_REGISTER,
				.by = PP_SURFACE_LIBRARY};
	(void)snprintf(event, sizeof(event), "u%u%s", k->n, returns ? "r" : "e");
	memcpy(p->event, event, sizeof(event));
	(void)snprintf(p->symbol, sizeof(p->symbol), "%s", at->call->symbol);
	(void)snprintf(p->text, sizeof(p->text), "%c:%s/%s %s:0x%llx", returns ? 'r' : 'p',
		       t->group, event, path, (unsigned long long)at->offset);
	return p;
}

static void add(struct pp_kprobes *k, const struct pp_tracefs *t, const struct place *at,
		const char *path)
{
	struct pp_kprobe_writer w = {.tracefs = t, .probe = begin(k, t, at, path, false)};

	if (!w.probe)
		return;
	for (size_t i = 0; at->call->argument[i].name; i++) {
		const char *from = pp_kprobe_argument(t, true, at->call->argument[i].number);

		if (from)
			pp_kprobe_write(&w, " %s=%s:%s", at->call->argument[i].name, from,
					at->call->argument[i].type);
	}
	k->n += !w.full;
	w.probe = begin(k, t, at, path, true);
	if (!w.probe)
		return;
	pp_kprobe_write(&w, " ret=$retval:x64 lkey=%s", LKEY);
	k->n += !w.full;
}

int pp_kprobes_library(struct pp_kprobes *k, const struct pp_tracefs *t, const char *path,
		       struct pp_error *err)
{
	struct places places = {.n = 0};
	int r;

	/* tracefs splits definitions at blanks */
	if (strpbrk(path, " \t\n:"))
		return pp_error_set(err, -EINVAL, "%s: a path that tracefs cannot take", path);
	r = find(path, &places, err);
	for (unsigned int i = 0; i < places.n; i++)
		add(k, t, &places.item[i], path);
	return r;
}
