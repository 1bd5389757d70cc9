/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "base/banned.h"

/* A signal handler can reach nothing else: the mutable globals of the program. */
static volatile sig_atomic_t caught;
static struct sigaction pipe_before;

static void on_signal(int number)
{
	(void)number;
	caught = 1;
}

void pp_interrupt_catch(void)
{
	struct sigaction act = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	(void)sigaction(SIGINT, &act, NULL);
	(void)sigaction(SIGTERM, &act, NULL);
	/* A closed pipe is an error of writing, not a death: the exit status still says the
	 * verdict. */
	act = (struct sigaction){.sa_handler = SIG_IGN};
	(void)sigaction(SIGPIPE, &act, &pipe_before);
}

void pp_interrupt_release(void)
{
	(void)sigaction(SIGPIPE, &pipe_before, NULL);
}

bool pp_interrupted(void)
{
	return caught != 0;
}
