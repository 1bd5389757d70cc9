/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Versions of NCCL as numbers, and the range that a format of a line belongs to.
 */
#ifndef PP_NCCL_VERSION_H
#define PP_NCCL_VERSION_H

/* 2.28.9 is 22809. */
#define PP_NCCL_V(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
enum { PP_NCCL_OLDEST = 0, PP_NCCL_NEWEST = 999999 };

#endif
