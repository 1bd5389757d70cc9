/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "base/banned.h"

/* A signal handler can reach nothing else: the one mutable global of the program. */
static volatile sig_atomic_t caught;

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
	(void)sigaction(SIGPIPE, &act, NULL);
}

bool pp_interrupted(void)
{
	return caught != 0;
}
