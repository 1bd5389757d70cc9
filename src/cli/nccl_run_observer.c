/* SPDX-License-Identifier: Apache-2.0 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/nccl_run.h"
#include "cli/soft_program.h"
#include "node/elf.h"
#include "base/banned.h"

static const char NAME[] = "libpeerpath-observe.so";

/* Beside this program, in a build tree or below any prefix, else where it is installed. */
static void find(struct pp_nccl_running *c)
{
	static const char *const beside[] = {"../plugin", PEERPATH_PLUGINS_FROM_BIN};
	char self[PATH_MAX], file[PATH_MAX + 128], *slash;
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < PP_ARRAY_LEN(beside); i++) {
		(void)snprintf(file, sizeof(file), "%.*s/%s/%s", (int)(slash - self), self,
			       beside[i], NAME);
		if (!access(file, R_OK) && realpath(file, c->observer))
			return;
	}
	(void)snprintf(c->observer, sizeof(c->observer), "%s/%s", PEERPATH_PLUGINDIR, NAME);
	if (access(c->observer, R_OK))
		c->observer[0] = '\0';
}

/* Does the section hold the name of a library that begins so? */
static bool needs(int fd, const char *library)
{
	char *PP_AUTO_FREE text = NULL;
	uint64_t at, size;
	bool found;

	if (pp_elf_section(fd, ".dynstr", &at, &size) || size > (16 << 20))
		return false;
	text = malloc(size + 1);
	found = text && pread(fd, text, size, (off_t)at) == (ssize_t)size &&
		memmem(text, size, library, strlen(library));
	return found;
}

static bool is_static(int fd)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
		return false;
	for (unsigned int i = 0; i < head.e_phnum && i < 256; i++)
		if (pread(fd, &p, sizeof(p), (off_t)(head.e_phoff + i * sizeof(p))) ==
			    (ssize_t)sizeof(p) &&
		    p.p_type == PT_INTERP)
			return false;
	return true;
}

/* NULL: nothing is known against it. What it starts may be another program. */
static const char *blind(const char *program)
{
	char file[PATH_MAX];
	struct stat st;
	int PP_AUTO_CLOSE fd = pp_soft_program_open(program);

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	if ((st.st_mode & S_ISUID && st.st_uid != getuid()) ||
	    (st.st_mode & S_ISGID && st.st_gid != getgid()) ||
	    (getuid() && pp_soft_program_find(program, file, sizeof(file)) &&
	     getxattr(file, "security.capability", NULL, 0) > 0))
		return "the command gains privileges when it starts: the loader then starts no "
		       "auditor";
	if (is_static(fd))
		return "the command is linked statically: no loader starts an auditor";
	if (needs(fd, "libasan.so"))
		return "the command has AddressSanitizer, which wants "
		       "ASAN_OPTIONS=verify_asan_link_order=0 beside an auditor: it runs without";
	if (needs(fd, "libtsan.so"))
		return "the command has ThreadSanitizer, which does not start beside an auditor";
	return NULL;
}

void pp_nccl_running_observer(struct pp_nccl_running *c)
{
	find(c);
	if (pp_args_has(c->args, "no-observer"))
		c->blind = "--no-observer";
	else if (!c->observer[0])
		c->blind = "libpeerpath-observe.so is not installed";
	else
		c->blind = blind(c->argv[0]);
}
