/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ctrl-C and SIGTERM become a flag, so that a verb that writes can clean up. The second signal of
 * its kind ends the process at once; what comes within half a second of the first is the first.
 */
#ifndef PP_CLI_INTERRUPT_H
#define PP_CLI_INTERRUPT_H

#include <stdbool.h>

void pp_interrupt_catch(void);
/* Before an exec: what a program inherits is as it was; handlers end with exec by themselves. */
void pp_interrupt_release(void);
bool pp_interrupted(void);

#endif
