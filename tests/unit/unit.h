/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every unit test includes: cmocka and its prerequisites.
 */
#ifndef PP_TESTS_UNIT_H
#define PP_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
