/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct pp_gid_table: the GIDs of one port that are not empty, and the choice of one of them.
 *
 * Reading asks the provider (an agent process only); choosing is pure.
 */
#ifndef PP_RDMA_GID_TABLE_H
#define PP_RDMA_GID_TABLE_H

#include "node/gid.h"
#include "node/verbs.h"

enum { PP_GID_ROWS = 256 };

enum pp_gid_type { PP_GID_IB, PP_GID_ROCE_V1, PP_GID_ROCE_V2, PP_GID_TYPE_UNKNOWN };

struct pp_gid_row {
	struct pp_gid gid;
	uint32_t index;
	enum pp_gid_type type; /* UNKNOWN: the library is too old to say */
};

struct pp_gid_table {
	struct pp_gid_row row[PP_GID_ROWS];
	unsigned int n;
	unsigned int left; /* places beyond PP_GID_ROWS that were not looked at */
};

/* @length: of the port's table. 0, or the errno of the first read that failed, negative. */
int pp_gid_table_read(const struct pp_verbs *v, struct ibv_context *context, uint8_t port,
		      unsigned int length, struct pp_gid_table *ret);

/*
 * InfiniBand: the first. Ethernet: RoCE v2 with an IPv4 address, else RoCE v2 that is not
 * link-local, else the first; of those whose type is unknown the last with an IPv4 address (the
 * kernel puts an address's v2 entry behind its v1 entry). NULL: the table is empty.
 */
const struct pp_gid_row *pp_gid_table_choose(const struct pp_gid_table *t, bool ethernet);
/* The one at @index; NULL: empty. */
const struct pp_gid_row *pp_gid_table_at(const struct pp_gid_table *t, uint32_t index);

/* "0 (fe80::1, RoCE v1), 3 (::ffff:10.0.0.1, RoCE v2)", as many as fit; returns @text. */
const char *pp_gid_table_text(const struct pp_gid_table *t, char *text, size_t size);
const char *pp_gid_type_name(enum pp_gid_type type);

#endif
