/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of numbers that two compilation units make from soft_abi_fields.def, one with each
 * header. SLOT: distance from the end of struct verbs_context, since its new slots come at the
 * front.
 */
#ifndef PP_TESTS_SOFT_ABI_FIELDS_H
#define PP_TESTS_SOFT_ABI_FIELDS_H

#include <stddef.h>

struct soft_abi_field {
	const char *what;
	long number;
};

#define SOFT_ABI_TABLE(name) const struct soft_abi_field name[] = {

#define SIZE(type)	    {"sizeof " #type, (long)sizeof(type)},
#define FIELD(type, member) {#type "." #member, (long)offsetof(type, member)},
#define SLOT(member)               \
	{"verbs_context." #member, \
	 (long)(sizeof(struct verbs_context) - offsetof(struct verbs_context, member))},
#define VALUE(name) {#name, (long)(name)},

extern const struct soft_abi_field soft_abi_ours[], soft_abi_installed[];

#endif
