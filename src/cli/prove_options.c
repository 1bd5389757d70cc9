/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/prove_options.h"

#include "base/compiler.h"
#include "cli/nfd.h"
#include "base/banned.h"

/* What moves, waits, or reads more than this node. */
static int check_quick(const struct pp_args *args, enum pp_gate through)
{
	static const char *const more[] = {"peer", "simulate", "nccl", "after-reboot", "canary"};

	for (size_t i = 0; i < PP_ARRAY_LEN(more); i++)
		if (pp_args_has(args, more[i]))
			return pp_complain(args, PP_EXIT_USAGE, "--quick excludes --%s", more[i]);
	return through > PP_GATE_PREREQUISITES
		       ? pp_complain(args, PP_EXIT_USAGE,
				     "--quick goes through gate 1, not through %s",
				     pp_gate_name(through))
		       : 0;
}

/* Who names a peer and ends before gate 2 would take a verdict without it for one with it. */
static int check_through(const struct pp_args *args, enum pp_gate through)
{
	static const struct {
		const char *option;
		enum pp_gate gate;
	} of[] = {{"peer", PP_GATE_MEMORY},
		  {"simulate", PP_GATE_MEMORY},
		  {"after-reboot", PP_GATE_MEMORY},
		  {"nccl", PP_GATE_LIBRARY},
		  {"canary", PP_GATE_APPLICATION}};

	for (size_t i = 0; i < PP_ARRAY_LEN(of); i++)
		if (through < of[i].gate && pp_args_has(args, of[i].option))
			return pp_complain(args, PP_EXIT_USAGE,
					   "--%s is for gate %d, which --through %s does not reach",
					   of[i].option, of[i].gate, pp_gate_name(through));
	return 0;
}

/* Options that go with gate 2 alone would say nothing without it. */
static int check_memory_options(const struct pp_args *args, bool moves)
{
	static const char *const with_others[] = {"token-file",	  "port",     "device",	 "gpu",
						  "size",	  "duration", "repeats", "busy-ok",
						  "after-reboot", "no-probes"};
	static const char *const live[] = {"root", "replay"};

	for (size_t i = 0; !moves && i < PP_ARRAY_LEN(with_others); i++)
		if (pp_args_has(args, with_others[i]))
			return pp_complain(args, PP_EXIT_USAGE,
					   "--%s goes with --peer or --simulate", with_others[i]);
	for (size_t i = 0; moves && i < PP_ARRAY_LEN(live); i++)
		if (pp_args_has(args, live[i]))
			return pp_complain(args, PP_EXIT_USAGE,
					   "--%s shows files: memory is moved on a live node only",
					   live[i]);
	return 0;
}

int pp_prove_options_check(const struct pp_args *args, enum pp_gate through, bool moves)
{
	int r = pp_args_has(args, "quick") ? check_quick(args, through) : 0;

	r = r ? r : pp_nfd_check(args);
	if (!r && pp_args_has(args, "through"))
		r = check_through(args, through);
	return r ? r : check_memory_options(args, moves);
}
