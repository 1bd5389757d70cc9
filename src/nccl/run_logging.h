/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NCCL has to be told so that a job's log holds the lines that a judgement needs. Pure.
 */
#ifndef PP_NCCL_RUN_LOGGING_H
#define PP_NCCL_RUN_LOGGING_H

#include <stdbool.h>
#include <stddef.h>

/* Does NCCL_DEBUG=@value print informational lines? NULL: not set. */
bool pp_nccl_logs_enough(const char *value);

/*
 * NCCL_DEBUG_SUBSYS that has all that @value has, and INIT, ENV, NET, GRAPH and REG; @value NULL:
 * not set. A list that begins with ^ is of what is left out: what is needed is taken off it.
 * False: @value is enough as it is, and *ret is a copy. Cut where @size is too small.
 */
bool pp_nccl_log_subsystems(const char *value, char *ret, size_t size);

/*
 * A name of a log as NCCL makes it of NCCL_DEBUG_FILE: %h is @host, %p is @pid, any other % stands
 * for itself. False: it does not fit.
 */
bool pp_nccl_log_name(const char *pattern, const char *host, const char *pid, char *ret,
		      size_t size);

#endif
