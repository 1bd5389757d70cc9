/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/soft_preload.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "cli/soft_program.h"
#include "node/elf.h"
#include "base/banned.h"

enum { NAMES_BYTES_MAX = 1 << 24 };

/* Is it linked with a runtime that refuses to come second? The loader's names say. */
static bool brings_sanitizer(const char *program)
{
	static const char *const runtimes[] = {"libasan.so", "libtsan.so", "libclang_rt.asan",
					       "libclang_rt.tsan"};
	PP_AUTO_CLOSE int fd = pp_soft_program_open(program);
	char *PP_AUTO_FREE names = NULL;
	uint64_t offset, size;
	bool found = false;

	if (fd < 0 || pp_elf_section(fd, ".dynstr", &offset, &size) || size > NAMES_BYTES_MAX)
		return false;
	names = malloc(size + 1);
	if (!names || pread(fd, names, size, (off_t)offset) != (ssize_t)size)
		return false;
	for (size_t i = 0; i < PP_ARRAY_LEN(runtimes) && !found; i++)
		found = memmem(names, size, runtimes[i], strlen(runtimes[i]));
	return found;
}

int pp_soft_preload(const char *dir, const struct soft_config *devices, const char *program)
{
	struct pp_buf PP_AUTO_BUF names = PP_BUF(4096);
	struct pp_buf PP_AUTO_BUF library = PP_BUF(PATH_MAX);
	struct pp_buf PP_AUTO_BUF preload = PP_BUF(1 << 16);
	const char *old = getenv("LD_PRELOAD");

	pp_buf_printf(&library, "%s/../preload/libpeerpath-soft-node.so", dir);
	if (library.failed || access(pp_buf_text(&library), R_OK) || brings_sanitizer(program))
		return 0;
	/* The user's list stays in front: a sanitizer's runtime in it must be the first. */
	pp_buf_printf(&preload, "%s%s%s", old ? old : "", old && *old ? ":" : "",
		      pp_buf_text(&library));
	for (unsigned int i = 0; i < devices->num_devices; i++)
		pp_buf_printf(&names, "%s%s:%u", i ? "," : "", devices->devices[i].name,
			      devices->devices[i].num_gids);
	if (names.failed || preload.failed)
		return -ENOMEM;
	return setenv("LD_PRELOAD", pp_buf_text(&preload), 1) ||
			       setenv("PEERPATH_SOFT_DEVICES", pp_buf_text(&names), 1)
		       ? -ENOMEM
		       : 0;
}
