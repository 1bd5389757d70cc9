/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of the running kernel by /proc/kallsyms, with the module that each is of: what can be
 * probed at all. Names are readable without privilege, addresses are not needed.
 */
#ifndef PP_TRACE_SYMBOL_H
#define PP_TRACE_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct pp_symbol {
	const char *name;   /* wanted */
	const char *module; /* of this module alone; NULL: any */
	bool found;
	char in[64]; /* the module it is of, "vmlinux" for none */
};

/* Fills @found and @in of all. Negative errno, with one line in @err. */
int pp_symbols_find(struct pp_symbol *symbols, size_t n, struct pp_error *err);

#endif
