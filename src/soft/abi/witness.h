/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that runs others learns here that one of them moved its bytes through this device: an
 * empty file, which is made when the device is opened. Nothing without the variable.
 */
#ifndef SOFT_ABI_WITNESS_H
#define SOFT_ABI_WITNESS_H

/* Name of the variable with the file's path. */
#define SOFT_WITNESS "PEERPATH_SOFT_WITNESS"

void soft_witness_leave(void);

#endif
