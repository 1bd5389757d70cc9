/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One block of a tar archive: private to ustar*.c.
 */
#ifndef PP_BUNDLE_USTAR_HEADER_H
#define PP_BUNDLE_USTAR_HEADER_H

#include <stdbool.h>
#include <stdint.h>

enum { PP_TAR_BLOCK = 512 };

static const uint64_t PP_TAR_OCTAL_MAX = 077777777777; /* eleven digits */

enum {
	PP_TAR_FILE = '0',
	PP_TAR_FILE_OLD = '\0',
	PP_TAR_LINK = '2',
	PP_TAR_DIR = '5',
	PP_TAR_PAX = 'x',
	PP_TAR_PAX_GLOBAL = 'g',
	PP_TAR_GNU_NAME = 'L',
	PP_TAR_GNU_TARGET = 'K',
};

struct pp_tar_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char type;
	char target[100];
	char magic[6], version[2]; /* "ustar\0" "00", or GNU's "ustar " " \0" */
	char owner[32], group[32];
	char major[8], minor[8];
	char prefix[155];
	char unused[12];
};

_Static_assert(sizeof(struct pp_tar_header) == PP_TAR_BLOCK, "a header is one block");

/* Sum of all bytes with the checksum field taken as blanks. */
unsigned int pp_tar_checksum(const struct pp_tar_header *h);

#endif
