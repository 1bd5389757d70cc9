/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ethtool's ioctl on network interfaces: global pause, and the driver's statistics that tell of
 * loss and of flow control. Both are unprivileged reads.
 */
#ifndef PP_NODE_ETHTOOL_H
#define PP_NODE_ETHTOOL_H

#include "node/ask.h"
#include "node/dcb.h"

/*
 * "ethtool": {"<interface>": {"pause_errno", "pause_rx", "pause_tx", "stats_errno", "stats":
 * {name: value}}}; only statistics that pp_ethtool_wanted() wants. -ENOMEM only.
 */
int pp_ask_ethtool(struct pp_source *s, const struct pp_netdevs *netdevs, struct pp_answer *ret);

/*
 * "rx_prio3_pause" with @pattern "rx_prio#_pause": '#' stands for one or more digits. Pure.
 */
bool pp_ethtool_match(const char *pattern, const char *name);

/*
 * The same statistics of one interface at once, for who reads them before and after traffic: no
 * helper, no record. Negative errno; -EOPNOTSUPP: the driver has none.
 */
typedef void pp_ethtool_each(void *arg, const char *name, int64_t value);
int pp_ethtool_stats(const char *netdev, pp_ethtool_each *each, void *arg);

/* Statistics worth keeping. */
bool pp_ethtool_wanted(const char *name);

#endif
