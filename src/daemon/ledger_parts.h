/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of struct pp_ledger share.
 */
#ifndef PP_DAEMON_LEDGER_PARTS_H
#define PP_DAEMON_LEDGER_PARTS_H

#include "daemon/ledger.h"

size_t pp_ledger_bucket(const struct pp_ledger *k, const char *a, const char *b);
/* In place: control bytes, and what is no UTF-8, become '?'. */
void pp_ledger_clean(char *text);
void pp_ledger_free_events(struct pp_ledger *k);

#endif
