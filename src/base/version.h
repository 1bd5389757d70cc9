/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions as rules compare them: "580.65.06", "5.12", "6.1.0-44-amd64", "2.28.9+cuda13".
 *
 * Numbers are compared part by part from the left; what follows the first character that is
 * neither a digit nor a dot is ignored (a distribution's suffix says nothing of upstream's order).
 * A missing part counts as 0: 5.12 == 5.12.0.
 */
#ifndef PP_BASE_VERSION_H
#define PP_BASE_VERSION_H

/* True when the text starts with a number. */
int pp_version_valid(const char *text);
/* <0, 0, >0. Both must be valid. */
int pp_version_compare(const char *a, const char *b);

#endif
