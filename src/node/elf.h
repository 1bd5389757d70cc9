/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a section of a 64-bit little-endian ELF file, without loading it.
 */
#ifndef PP_NODE_ELF_H
#define PP_NODE_ELF_H

#include <stdint.h>

/*
 * File offset and size of the first section called @name. The file position is left where it
 * was. -ENOEXEC (no such ELF file, or its tables lie outside the file), -ENOENT (no such section).
 */
int pp_elf_section(int fd, const char *name, uint64_t *ret_offset, uint64_t *ret_size);

#endif
