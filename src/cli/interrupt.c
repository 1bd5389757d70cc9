/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/interrupt.h"

#include <signal.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/banned.h"

/* What one who ends us sends to our process, to our group and through our parent is one signal. */
#define MOMENT (PP_SECOND / 2)

static const int numbers[] = {SIGINT, SIGTERM};

/* A signal handler can reach nothing else: the mutable globals of the program. */
static volatile sig_atomic_t caught;
static pp_ns first[PP_ARRAY_LEN(numbers)]; /* when; 0: not yet */
static struct sigaction pipe_before;

static void on_signal(int number)
{
	pp_ns now = pp_clock_monotonic(), *since = &first[number == SIGTERM];

	caught = 1;
	if (!*since)
		*since = now;
	if (now - *since < MOMENT)
		return;
	/* It is blocked as long as we are here. */
	(void)signal(number, SIG_DFL);
	(void)raise(number);
}

void pp_interrupt_catch(void)
{
	struct sigaction act = {.sa_handler = on_signal};

	for (unsigned int i = 0; i < PP_ARRAY_LEN(numbers); i++)
		(void)sigaction(numbers[i], &act, NULL);
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
