/* SPDX-License-Identifier: Apache-2.0 */
/* What a verb of ours, started as a process of its own, answers on its standard output. */
#ifndef PP_CLI_CHILD_ANSWER_H
#define PP_CLI_CHILD_ANSWER_H

#include <sys/types.h>

#include "base/buf.h"

/* Reads all. Interrupted, we tell the child so by SIGTERM, once. */
void pp_child_answer(int fd, pid_t pid, struct pp_buf *text);
/* Its exit status; -1: it was killed, or cannot be waited for. */
int pp_child_answer_status(pid_t pid);

#endif
