/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --replay PATH: whatever PATH is, a source that reads from it.
 *
 *   a file                           an archive: verified, read into memory
 *   a directory with manifest.json   a bundle: verified, read into memory
 *   another directory                a capture or a bare tree, read from the disk
 */
#ifndef PP_BUNDLE_REPLAY_H
#define PP_BUNDLE_REPLAY_H

#include "base/error.h"
#include "node/source.h"

int pp_replay_open(const char *path, struct pp_source **ret, struct pp_error *err);

#endif
