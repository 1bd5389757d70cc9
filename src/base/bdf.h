/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_bdf: a PCI function's address, domain:bus:device.function.
 *
 * Domains have 32 bits: Intel VMD makes 10000:xx:yy.z, so no fixed width is assumed.
 */
#ifndef PP_BASE_BDF_H
#define PP_BASE_BDF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pp_bdf {
	uint32_t domain;
	uint8_t bus, device, function;
};

enum { PP_BDF_TEXT = 24 }; /* bytes that hold any formatted address */

/* Accepts "0000:3b:00.0", "3b:00.0" (domain 0) and upper case; -EINVAL otherwise. */
int pp_bdf_parse(const char *text, struct pp_bdf *ret);
/* Accepts only the kernel's form with a domain of at least four digits, as in sysfs names. */
int pp_bdf_parse_kernel(const char *text, struct pp_bdf *ret);
/* "0000:3b:00.0"; returns @text. */
const char *pp_bdf_format(const struct pp_bdf *bdf, char text[PP_BDF_TEXT]);
int pp_bdf_compare(const struct pp_bdf *a, const struct pp_bdf *b);

static inline bool pp_bdf_equal(const struct pp_bdf *a, const struct pp_bdf *b)
{
	return pp_bdf_compare(a, b) == 0;
}

#endif
