/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/soft_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/compiler.h"
#include "base/banned.h"

bool pp_soft_program_find(const char *program, char *ret, size_t size)
{
	const char *path = getenv("PATH"), *end;

	if (strchr(program, '/') || !path)
		return (size_t)snprintf(ret, size, "%s", program) < size;
	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		if ((size_t)snprintf(ret, size, "%.*s%s%s", (int)(end - path), path,
				     end > path ? "/" : "", program) < size &&
		    !access(ret, X_OK))
			return true;
		if (!*end)
			return false;
	}
}

int pp_soft_program_open(const char *program)
{
	char file[PATH_MAX];

	return pp_soft_program_find(program, file, sizeof(file))
		       ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
		       : -1;
}

/* Then the loader takes nothing from the environment. */
static bool gains_privileges(const char *file, const struct stat *st)
{
	return (st->st_mode & S_ISUID && st->st_uid != getuid()) ||
	       (st->st_mode & S_ISGID && st->st_gid != getgid()) ||
	       (getuid() && getxattr(file, "security.capability", NULL, 0) > 0);
}

const char *pp_soft_program_blind(const char *program)
{
	char file[PATH_MAX];
	struct stat st;

	if (!pp_soft_program_find(program, file, sizeof(file)) || stat(file, &st) ||
	    !S_ISREG(st.st_mode))
		return NULL;
	if (gains_privileges(file, &st))
		return "gains privileges when it starts: the loader then heeds no "
		       "LD_LIBRARY_PATH, and it will not see the device";
	return pp_soft_program_elf(file);
}

const char *pp_soft_program_why(const char *program, int error, char *text, size_t size)
{
	struct stat st;

	if (error == ENOENT && !strchr(program, '/'))
		(void)snprintf(text, size, "there is no such command in PATH");
	else if (error == ENOENT && !stat(program, &st))
		(void)snprintf(text, size,
			       "what it is to be started by (the \"#!\" line's "
			       "program, or the loader) is not there");
	else if (error == EACCES && !stat(program, &st) && S_ISDIR(st.st_mode))
		(void)snprintf(text, size, "a directory, not a command");
	else if (error == EACCES && !stat(program, &st) && !(st.st_mode & 0111))
		(void)snprintf(text, size, "a file without the right to be executed (chmod +x)");
	else
		(void)snprintf(text, size, "%s", strerror(error));
	return text;
}
