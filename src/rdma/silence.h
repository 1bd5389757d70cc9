/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a host that says nothing is gone, and how long what follows may take: every deadline of a
 * host that vanishes, so that both sides end within 5 s of its last sign.
 *
 *   0       the last sign: a byte, or its kernel's answer to a probe, of which one goes each second
 *   3.0     PP_SILENCE_LIMIT: it may be gone; seen by a look, PP_SILENCE_LOOK later at the latest
 *   3.2     still no sign PP_SILENCE_SURE after that look: it is gone; known at the look after it
 *   3.6     PP_SILENCE_WORST
 *   4.6     PP_ENDING_ALL: by now each agent has ended, or took no signal and is left behind
 *
 * The second look is for a machine that was suspended itself: it finds old times, and an answer to
 * a probe a moment later. The kernel alone (keepalive, TCP_USER_TIMEOUT) has no such bound: each
 * byte that is sent into the void begins its time anew.
 */
#ifndef PP_RDMA_SILENCE_H
#define PP_RDMA_SILENCE_H

#include <stdbool.h>

#include "base/clock.h"

#define PP_SILENCE_LIMIT (3 * PP_SECOND)
#define PP_SILENCE_SURE	 (200 * PP_MILLISECOND)
#define PP_SILENCE_LOOK	 (200 * PP_MILLISECOND)
#define PP_SILENCE_WORST (PP_SILENCE_LIMIT + PP_SILENCE_SURE + 2 * PP_SILENCE_LOOK)

/* An agent's end has so many steps: by itself, SIGTERM, SIGKILL. */
enum { PP_ENDING_STEPS = 3 };
#define PP_ENDING_ALL  (4600 * PP_MILLISECOND)
#define PP_ENDING_STEP (1500 * PP_MILLISECOND) /* where there is time enough */

struct pp_silence {
	pp_ns suspected; /* when a look first found it too long; 0: not */
	bool gone;
};

/* One look at @now (monotonic); @silent: time since the last sign. True from when it is gone. */
bool pp_silence_look(struct pp_silence *s, pp_ns now, pp_ns silent);

/* What each step may take when @elapsed of the time is gone. */
pp_ns pp_ending_step(pp_ns elapsed);
/* How long somebody who waits for a node's agents to end waits, with time for it to say so. */
pp_ns pp_ending_wait(pp_ns elapsed);

#endif
