/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening a foreign library inside a helper process (node/ask.h), by name, from where the loader
 * of this machine finds it. Nothing is closed: the helper ends.
 */
#ifndef PP_NODE_DL_H
#define PP_NODE_DL_H

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"

/* How a driver's library is asked. */
struct pp_dl_options {
	bool module_absent; /* its kernel module is known not to be loaded */
	const char *loader; /* what would load the module; NULL = nvidia-modprobe */
	pp_ns deadline;	    /* per call; 0 = the usual one */
};

/*
 * Refuses (-ENODEV) where opening @name would change the machine: NVIDIA's libraries start a
 * setuid program that loads a missing kernel module.
 */
int pp_dl_permit(const struct pp_dl_options *options, const char *name, struct pp_error *err);

/*
 * Writes the member "library", the path that was loaded, to @data. -ENOENT with
 * "<name> not found"; -ELIBACC with the loader's own words when it exists but does not load.
 */
int pp_dl_open(const char *name, struct pp_json *data, void **ret, struct pp_error *err);

/*
 * Writes "<member>_error": the reason why @member is absent from an answer.
 */
void pp_dl_missing(struct pp_json *data, const char *member, const char *why_fmt, ...)
	PP_PRINTF(3, 4);

#endif
