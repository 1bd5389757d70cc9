/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions that this project does not use: each has a bounded, checked or re-entrant substitute
 * in base/. Include after every system header of a .c file.
 */
#ifndef PP_BASE_BANNED_H
#define PP_BASE_BANNED_H

/* Macros of the C library, sprintf for clang with _FORTIFY_SOURCE: one cannot be poisoned. */
#undef alloca
#undef sprintf
#undef vsprintf
#pragma GCC poison strcpy strcat strncpy strncat sprintf vsprintf strtok atoi atol atoll atof
#pragma GCC poison sscanf gmtime localtime ctime asctime system popen alloca rand srand
#pragma GCC poison strtol strtoul strtoll strtoull

#endif
