/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asking the processes on the software device, one by one. What comes back is another process's:
 * only its outermost shape is promised here.
 */
#ifndef PP_CLI_SOFT_ASK_H
#define PP_CLI_SOFT_ASK_H

#include <jansson.h>

/*
 * What the process in @slot says to @request: an object with an array @list. -ENOENT: there is no
 * such process; pp_soft_ask_why() has words for the rest.
 */
int pp_soft_ask(unsigned int slot, const char *request, const char *list, json_t **ret);
const char *pp_soft_ask_why(int error);

/* Member @key of @object as text, "-" if it is none; as a number, 0 if it is none. */
const char *pp_soft_text(const json_t *object, const char *key);
json_int_t pp_soft_number(const json_t *object, const char *key);

#endif
