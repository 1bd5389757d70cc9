/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_dcb: what the kernel says of data center bridging on one interface (answer to
 * RTM_GETDCB, DCB_CMD_IEEE_GET; linux/dcbnl.h). The parser is pure and takes any bytes.
 */
#ifndef PP_NODE_DCB_H
#define PP_NODE_DCB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/ask.h"

enum { PP_DCB_PRIORITIES = 8, PP_DCB_SELECTORS = 16 };

struct pp_dcb {
	bool has_ets, has_pfc, has_apps, has_trust;
	uint8_t prio_tc[PP_DCB_PRIORITIES]; /* ets: traffic class of each priority */
	uint8_t pfc_enabled;		    /* pfc: bit mask of priorities */
	unsigned int dscp_apps;		    /* apps: entries that map a DSCP to a priority */
	uint8_t trust[PP_DCB_SELECTORS];    /* trusted selectors, most preferred first */
	unsigned int n_trust;
};

/* Attributes that follow struct dcbmsg. -EBADMSG when they are not well-formed. */
int pp_dcb_parse(const void *attributes, size_t len, struct pp_dcb *ret);

struct pp_netdevs {
	const char *const *name;
	size_t n;
};

/*
 * "dcb": {"<interface>": {"errno"} or {"errno": 0, "pfc_mask", "priority_tc": [8], "dscp_apps",
 * "trust": [selectors]}, ...}; what the driver does not report is absent. -ENOMEM only.
 */
int pp_ask_dcb(struct pp_source *s, const struct pp_netdevs *netdevs, struct pp_answer *ret);

#endif
