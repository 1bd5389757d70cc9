/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an ELF program says of how it finds its libraries. Every offset is checked against the
 * file: it may be anything.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/soft_program.h"
#include "base/banned.h"

enum { HEADERS_MAX = 256, DYNAMIC_MAX = 4096 };

struct image {
	const unsigned char *bytes;
	size_t size;
	Elf64_Ehdr head;
};

/* Copies @len bytes at @at; false: not all there. */
static bool take(const struct image *m, uint64_t at, void *ret, size_t len)
{
	if (at > m->size || len > m->size - at)
		return false;
	memcpy(ret, m->bytes + at, len);
	return true;
}

/* The first program header of @type, or, for PT_LOAD, the one that holds @address. */
static bool find(const struct image *m, uint32_t type, uint64_t address, Elf64_Phdr *ret)
{
	for (unsigned int i = 0; i < m->head.e_phnum && i < HEADERS_MAX; i++)
		if (take(m, m->head.e_phoff + (uint64_t)i * sizeof(*ret), ret, sizeof(*ret)) &&
		    ret->p_type == type &&
		    (type != PT_LOAD ||
		     (address >= ret->p_vaddr && address - ret->p_vaddr < ret->p_filesz)))
			return true;
	return false;
}

/* Does one of the folders of @path hold the library? */
static bool leads_to_verbs(char *path, const char *file)
{
	char origin[PATH_MAX], library[2 * PATH_MAX], *folder;

	if (!realpath(file, origin))
		return false;
	*strrchr(origin, '/') = '\0';
	while ((folder = strsep(&path, ":"))) {
		size_t skip = !strncmp(folder, "$ORIGIN", 7)	 ? 7
			      : !strncmp(folder, "${ORIGIN}", 9) ? 9
								 : 0;

		(void)snprintf(library, sizeof(library), "%s%s/libibverbs.so.1", skip ? origin : "",
			       folder + skip);
		if (*folder && !access(library, R_OK))
			return true;
	}
	return false;
}

static bool rpath_leads_to_verbs(const struct image *m, const Elf64_Phdr *dynamic, const char *file)
{
	uint64_t strings = 0, rpath = 0;
	char path[PATH_MAX] = "";
	bool has_rpath = false;
	Elf64_Phdr load;
	Elf64_Dyn d;

	for (uint64_t i = 0; i < DYNAMIC_MAX && (i + 1) * sizeof(d) <= dynamic->p_filesz; i++) {
		if (!take(m, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RUNPATH)
			return false; /* heeded after LD_LIBRARY_PATH, and DT_RPATH not at all */
		if (d.d_tag == DT_STRTAB)
			strings = d.d_un.d_ptr;
		if (d.d_tag == DT_RPATH) {
			rpath = d.d_un.d_val;
			has_rpath = true;
		}
	}
	if (!has_rpath || __builtin_add_overflow(rpath, strings, &rpath) ||
	    !find(m, PT_LOAD, rpath, &load))
		return false;
	rpath = rpath - load.p_vaddr + load.p_offset;
	for (size_t i = 0; i + 1 < sizeof(path) && take(m, rpath + i, &path[i], 1) && path[i]; i++)
		path[i + 1] = '\0';
	return leads_to_verbs(path, file);
}

static const char *judge(struct image *m, const char *file)
{
	Elf64_Phdr h;

	if (!take(m, 0, &m->head, sizeof(m->head)) ||
	    memcmp(m->head.e_ident, ELFMAG, SELFMAG) != 0 ||
	    m->head.e_ident[EI_CLASS] != ELFCLASS64 || m->head.e_phentsize != sizeof(h))
		return NULL;
	if (!find(m, PT_INTERP, 0, &h))
		return "is linked statically: it loads no libibverbs, and will not see the device";
	if (find(m, PT_DYNAMIC, 0, &h) && rpath_leads_to_verbs(m, &h, file))
		return "has a DT_RPATH with a libibverbs.so.1 of its own, which is taken before "
		       "LD_LIBRARY_PATH: it will not see the device";
	return NULL;
}

const char *pp_soft_program_elf(const char *file)
{
	PP_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct image m = {0};
	const char *why;
	struct stat st;
	void *at;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return NULL;
	m.size = (size_t)st.st_size;
	at = mmap(NULL, m.size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return NULL;
	m.bytes = at;
	why = judge(&m, file);
	(void)munmap(at, m.size);
	return why;
}
