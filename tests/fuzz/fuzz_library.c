/* SPDX-License-Identifier: Apache-2.0 */
/* The input as ld.so.conf, as LD_LIBRARY_PATH, and as a library's strings; and as an ELF file. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/elf.h"
#include "node/library.h"

static void as_elf(const uint8_t *data, size_t size)
{
	uint64_t offset = 0, length = 0, end;
	int fd = memfd_create("fuzz", MFD_CLOEXEC), r;

	if (fd < 0)
		abort();
	if (write(fd, data, size) != (ssize_t)size)
		abort();
	r = pp_elf_section(fd, ".rodata", &offset, &length);
	assert(!r || r == -ENOEXEC || r == -ENOENT);
	if (!r)
		assert(!__builtin_add_overflow(offset, length, &end) && end <= size);
	(void)close(fd);
}

static struct pp_source *recording(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"/etc/ld.so.conf", "/opt/lib/libnccl.so.2",
					    "/etc/ld.so.conf.d/a.conf"};
	struct pp_record *record;
	struct pp_source *s;
	struct pp_error err;

	if (pp_record_new((size_t)4 << 20, &record))
		abort();
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (pp_record_put(record, PP_ENTRY_FILE, paths[i], data, size, 0))
			abort();
	if (pp_source_replay_record(record, &s, &err))
		abort();
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const markers[] = {"NCCL version ", NULL};
	struct pp_arena arena = PP_ARENA((size_t)4 << 20);
	struct pp_source *s = recording(data, size);
	char *text = pp_fuzz_text(data, size), file[PP_PATH_MAX], version[32];
	struct pp_library_path path;
	size_t at = 0;

	as_elf(data, size);
	pp_library_path_init(s, &arena, text, "x86_64", &path);
	assert(path.n <= PP_LIBRARY_DIRS && !arena.failed);
	for (size_t i = 0; i < path.n; i++)
		assert(path.dir[i][0] == '/');
	while (!pp_library_find(s, &path, "libnccl.so.2", &at, file))
		assert(at <= path.n && !strcmp(file, "/opt/lib/libnccl.so.2"));
	for (size_t i = 0; i < 2; i++)
		if (!pp_library_version_inside(s, "/opt/lib/libnccl.so.2", markers[i], version,
					       sizeof(version)))
			assert(version[0] >= '0' && version[0] <= '9');
	if (!pp_library_version_of_name(text, version, sizeof(version)))
		assert(version[0] >= '0' && version[0] <= '9');
	free(text);
	pp_source_free(s);
	pp_arena_done(&arena);
	return 0;
}
