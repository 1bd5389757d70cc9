/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/fleet.h"
#include "base/banned.h"

int pp_fleet_cmd_serve(struct pp_session *s)
{
	return pp_complain(s->args, PP_EXIT_INTERNAL, "not yet");
}
