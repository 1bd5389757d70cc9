/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number of the file is checked against the file's size before it is used as an offset;
 * the tables read are bounded, so a hostile file costs at most their maxima.
 */
#include "node/elf.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/banned.h"

enum { MAX_SECTIONS = 4096, MAX_NAMES = 1 << 20 };

static bool inside(uint64_t offset, uint64_t size, uint64_t file)
{
	uint64_t end;

	return !__builtin_add_overflow(offset, size, &end) && end <= file;
}

/* A malloc'ed copy of a part of the file; NULL when it is not there. */
static void *part(int fd, uint64_t offset, size_t size, uint64_t file)
{
	char *bytes;

	if (!size || !inside(offset, size, file))
		return NULL;
	bytes = malloc(size);
	if (bytes && pread(fd, bytes, size, (off_t)offset) == (ssize_t)size)
		return bytes;
	free(bytes);
	return NULL;
}

static bool usable(const Elf64_Ehdr *h)
{
	return !memcmp(h->e_ident, ELFMAG, SELFMAG) && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_shentsize == sizeof(Elf64_Shdr) &&
	       h->e_shnum && h->e_shnum <= MAX_SECTIONS && h->e_shstrndx < h->e_shnum;
}

int pp_elf_section(int fd, const char *name, uint64_t *ret_offset, uint64_t *ret_size)
{
	Elf64_Shdr *PP_AUTO_FREE section = NULL;
	char *PP_AUTO_FREE names = NULL;
	size_t len = strlen(name) + 1;
	const Elf64_Shdr *strings;
	struct stat st;
	Elf64_Ehdr h;
	uint64_t file;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(h) ||
	    pread(fd, &h, sizeof(h), 0) != (ssize_t)sizeof(h) || !usable(&h))
		return -ENOEXEC;
	file = (uint64_t)st.st_size;
	section = part(fd, h.e_shoff, h.e_shnum * sizeof(*section), file);
	if (!section)
		return -ENOEXEC;
	strings = &section[h.e_shstrndx];
	if (strings->sh_size > MAX_NAMES)
		return -ENOEXEC;
	names = part(fd, strings->sh_offset, (size_t)strings->sh_size, file);
	if (!names)
		return -ENOEXEC;
	for (const Elf64_Shdr *s = section; s < section + h.e_shnum; s++) {
		if (s->sh_type == SHT_NOBITS || !inside(s->sh_name, len, strings->sh_size) ||
		    memcmp(names + s->sh_name, name, len) != 0)
			continue;
		if (!inside(s->sh_offset, s->sh_size, file))
			return -ENOEXEC;
		*ret_offset = s->sh_offset;
		*ret_size = s->sh_size;
		return 0;
	}
	return -ENOENT;
}
