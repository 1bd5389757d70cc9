/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_outlet: where what the ledger tells goes: to people, each once in this process, and
 * into the file of events, each until it is there.
 */
#ifndef PP_DAEMON_OUTLET_H
#define PP_DAEMON_OUTLET_H

#include <stdint.h>

#include "daemon/ledger.h"
#include "daemon/monitor.h"
#include "daemon/teller.h"

struct pp_outlet {
	const struct pp_monitor_options *o; /* borrowed */
	struct pp_teller teller;
	uint64_t shown;	  /* tellings that people have seen */
	uint64_t untold;  /* of the ledger's, those that were said */
	int64_t tried_ns; /* the file; monotonic, 0: never */
	char error[512];  /* said once; "": it can be written */
};

/* Without a file of events among the options there is none to fail. -errno as
 * pp_teller_open(). */
int pp_outlet_open(const struct pp_monitor_options *o, struct pp_outlet *ret, struct pp_error *err);
int pp_outlet_reopen(struct pp_outlet *out, struct pp_error *err);
/* Of one that was never opened, too. */
void pp_outlet_close(struct pp_outlet *out);

/* What was not told yet. A file that cannot be written holds it back, which is said. */
void pp_outlet_tell(struct pp_outlet *out, struct pp_ledger *k, int64_t now_ns);

/* Said when it is another than the last one; "" when it is over. */
void pp_say_once(const struct pp_monitor_options *o, char said[512], const char *text);

#endif
