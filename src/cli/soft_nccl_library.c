/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which libnccl.so.2 a program would load, and its version, without loading it: where Python keeps
 * its own, LD_PRELOAD, LD_LIBRARY_PATH, the loader's cache. NCCL has its version as text among its
 * constants; where that cannot be read the name of the file may tell.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/soft_nccl.h"
#include "cli/soft_program.h"
#include "node/elf.h"
#include "base/banned.h"

enum { CONSTANTS_MAX = 1 << 30, CACHE_MAX = 64 << 20, LINE_MAX_BYTES = 512, WORDS_MAX = 64 };

static const char name[] = "libnccl.so.2";

/* "2.28.9" and whatever follows; @end: behind the last byte that may be read. */
static bool parse(const char *at, const char *end, struct pp_soft_nccl_library *ret)
{
	unsigned int n[3] = {0};

	for (unsigned int i = 0; i < 3; i++) {
		const char *from = at;

		while (at < end && *at >= '0' && *at <= '9' && n[i] < 10000)
			n[i] = n[i] * 10 + (unsigned int)(*at++ - '0');
		if (at == from || (i < 2 && (at == end || *at++ != '.')))
			return false;
	}
	ret->major = n[0];
	ret->minor = n[1];
	ret->patch = n[2];
	return true;
}

/* A section of a file, mapped. */
struct constants {
	void *map;
	size_t mapped;
	const char *from;
	size_t size;
};

static bool map_section(int fd, const char *section, struct constants *ret)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t offset, size, before;
	struct stat st;
	void *at;

	if (pp_elf_section(fd, section, &offset, &size) || !size || size > CONSTANTS_MAX ||
	    fstat(fd, &st) || offset > (uint64_t)st.st_size || size > (uint64_t)st.st_size - offset)
		return false;
	before = offset % page;
	at = mmap(NULL, size + before, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - before));
	if (at == MAP_FAILED)
		return false;
	*ret = (struct constants){at, size + before, (const char *)at + before, size};
	return true;
}

static void unmap_section(const struct constants *c)
{
	(void)munmap(c->map, c->mapped);
}

static bool in_constants(int fd, struct pp_soft_nccl_library *ret)
{
	static const char words[] = "NCCL version ";
	struct constants c;
	const char *from, *end, *found;
	bool ok = false;

	if (!map_section(fd, ".rodata", &c))
		return false;
	end = c.from + c.size;
	for (from = c.from; !ok && from < end; from = found + 1) {
		found = memmem(from, (size_t)(end - from), words, sizeof(words) - 1);
		if (!found)
			break;
		ok = parse(found + sizeof(words) - 1, end, ret);
	}
	unmap_section(&c);
	return ok;
}

static void read_version(struct pp_soft_nccl_library *l)
{
	PP_AUTO_CLOSE int fd = open(l->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char real[PATH_MAX], *file;

	l->major = l->minor = l->patch = 0;
	if (fd >= 0 && in_constants(fd, l))
		return;
	if (!realpath(l->path, real))
		return;
	file = strstr(strrchr(real, '/'), "libnccl.so.");
	if (file)
		(void)parse(file + strlen("libnccl.so."), file + strlen(file), l);
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, R_OK);
}

/* In the folders of @list, separated by any of @separators. */
static bool in_folders(const char *list, struct pp_soft_nccl_library *ret)
{
	for (unsigned int i = 0; list && *list && i < WORDS_MAX; i++) {
		size_t len = strcspn(list, ":;");

		if (len &&
		    (size_t)snprintf(ret->path, sizeof(ret->path), "%.*s/%s", (int)len, list,
				     name) < sizeof(ret->path) &&
		    is_file(ret->path))
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

static bool preloaded(struct pp_soft_nccl_library *ret)
{
	const char *list = getenv("LD_PRELOAD");

	for (unsigned int i = 0; list && *list && i < WORDS_MAX; i++) {
		size_t len = strcspn(list, ": ");

		if (memmem(list, len, "libnccl.so", strlen("libnccl.so")) &&
		    (size_t)snprintf(ret->path, sizeof(ret->path), "%.*s", (int)len, list) <
			    sizeof(ret->path) &&
		    is_file(ret->path))
			return true;
		list += len + (list[len] != '\0');
	}
	return false;
}

/* The packages of a Python below @prefix. */
static bool in_prefix(const char *prefix, struct pp_soft_nccl_library *ret)
{
	static const char *const folders[] = {"site-packages", "dist-packages"};
	char pattern[PATH_MAX];
	glob_t found;
	bool ok = false;

	for (size_t i = 0; i < PP_ARRAY_LEN(folders) && !ok; i++) {
		if ((size_t)snprintf(pattern, sizeof(pattern),
				     "%s/lib/python3*/%s/nvidia/nccl/lib/%s", prefix, folders[i],
				     name) >= sizeof(pattern) ||
		    glob(pattern, 0, NULL, &found))
			continue;
		ok = found.gl_pathc && is_file(found.gl_pathv[0]) &&
		     (size_t)snprintf(ret->path, sizeof(ret->path), "%s", found.gl_pathv[0]) <
			     sizeof(ret->path);
		globfree(&found);
	}
	return ok;
}

static bool is_python(const char *file)
{
	const char *slash = strrchr(file, '/');

	return !strncmp(slash ? slash + 1 : file, "python", 6);
}

/* What a script's first line says it is run by, in place. */
static bool interpreter(const char *file, char *ret, size_t size)
{
	PP_AUTO_CLOSE int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char line[LINE_MAX_BYTES], *at, *word;
	ssize_t n = fd < 0 ? -1 : pread(fd, line, sizeof(line) - 1, 0);

	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = '\0';
	line[strcspn(line, "\n")] = '\0';
	at = line + 2;
	at += strspn(at, " \t");
	word = strsep(&at, " \t");
	if (at && !strcmp(word, "/usr/bin/env")) {
		at += strspn(at, " \t");
		word = strsep(&at, " \t");
	}
	return pp_soft_program_find(word, ret, size);
}

static bool of_python(const char *program, struct pp_soft_nccl_library *ret)
{
	char file[PATH_MAX], *slash;

	if (!pp_soft_program_find(program, file, sizeof(file)))
		return false;
	if (!is_python(file) && (!interpreter(file, file, sizeof(file)) || !is_python(file)))
		return false;
	for (unsigned int up = 0; up < 2; up++) {
		slash = strrchr(file, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	return in_prefix(file, ret) || (!strcmp(file, "/usr") && in_prefix("/usr/local", ret));
}

/* The cache holds the paths as text, each with its end. */
static bool in_cache(struct pp_soft_nccl_library *ret)
{
	static const char words[] = "/libnccl.so.2";
	PP_AUTO_CLOSE int fd = open("/etc/ld.so.cache", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const char *at, *found, *from;
	struct stat st;
	bool ok = false;

	if (fd < 0 || fstat(fd, &st) || st.st_size <= 0 || st.st_size > CACHE_MAX)
		return false;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return false;
	found = memmem(at, (size_t)st.st_size, words, sizeof(words));
	if (found) {
		for (from = found; from > at && from[-1]; from--)
			;
		ok = (size_t)snprintf(ret->path, sizeof(ret->path), "%s", from) <
			     sizeof(ret->path) &&
		     is_file(ret->path);
	}
	(void)munmap((void *)(uintptr_t)at, (size_t)st.st_size);
	return ok;
}

/* Has the program the library's name in it: linked, or to be loaded by it? */
static bool names_library(const char *program)
{
	static const char *const sections[] = {".dynstr", ".rodata"};
	PP_AUTO_CLOSE int fd = pp_soft_program_open(program);
	bool found = false;

	for (size_t i = 0; i < PP_ARRAY_LEN(sections) && fd >= 0 && !found; i++) {
		struct constants c;

		if (!map_section(fd, sections[i], &c))
			continue;
		found = memmem(c.from, c.size, "libnccl.so", strlen("libnccl.so"));
		unmap_section(&c);
	}
	return found;
}

bool pp_soft_nccl_find(const char *program, bool meant, struct pp_soft_nccl_library *ret)
{
	const char *venv = getenv("VIRTUAL_ENV"), *conda = getenv("CONDA_PREFIX");
	bool found = preloaded(ret) || of_python(program, ret) ||
		     in_folders(getenv("LD_LIBRARY_PATH"), ret) || (venv && in_prefix(venv, ret)) ||
		     (conda && in_prefix(conda, ret)) ||
		     ((meant || names_library(program)) && in_cache(ret));

	if (found)
		read_version(ret);
	return found;
}
