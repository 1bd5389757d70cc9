/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file put whole under its name: who opens the name finds what was there before, or all of what
 * is there now, also when this process is killed, and when there is no room.
 *
 * It is written under a hidden name in the same folder (".NAME.XXXXXX"), then renamed; so the
 * folder must be writable, a link of that name is replaced, not followed, and the file is a new
 * one: with the process's owner and the given mode, whatever the old one had. Whether something may
 * be replaced at all is the caller's to say.
 */
#ifndef PP_BASE_FILE_H
#define PP_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

enum pp_replace {
	/*
	 * Nobody else writes this name meanwhile: the hidden name is ".NAME.new" always, and what a
	 * killed process has left there is removed. For what is written over and over.
	 */
	PP_REPLACE_ALONE = 1 << 0,
	/* It is worth nothing after a crash of the machine: nothing waits for the disk. */
	PP_REPLACE_CACHED = 1 << 1,
};

/*
 * @mode: exactly this, whatever the umask is. @how: of enum pp_replace. Without
 * PP_REPLACE_CACHED content and name are on the disk when this returns 0.
 *
 * Errors as mkostemp(3), write(2), fsync(2), rename(2); -EISDIR for a folder and where @file
 * ends with "/"; -ENOTSUP where a device, a pipe or a socket has the name. After an
 * error the old file stands and nothing is left beside it; only where the folder itself could not
 * be put on the disk the new one stands already.
 */
int pp_file_replace(const char *file, const void *bytes, size_t len, mode_t mode, unsigned int how);

/* Could a file be written beside it now? 0, or why not. Nothing is left. */
int pp_file_replaceable(const char *file);

#endif
