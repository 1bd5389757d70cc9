/* SPDX-License-Identifier: Apache-2.0 */
#include "rdma/gid_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

static enum pp_gid_type type_of(uint32_t verbs_type)
{
	static const enum pp_gid_type types[] = {
		[IBV_GID_TYPE_IB] = PP_GID_IB,
		[IBV_GID_TYPE_ROCE_V1] = PP_GID_ROCE_V1,
		[IBV_GID_TYPE_ROCE_V2] = PP_GID_ROCE_V2,
	};

	return verbs_type < sizeof(types) / sizeof(types[0]) ? types[verbs_type]
							     : PP_GID_TYPE_UNKNOWN;
}

/* An entry that is empty is all zero. */
static int read_row(const struct pp_verbs *v, struct ibv_context *context, uint8_t port,
		    uint32_t index, struct pp_gid_row *ret)
{
	struct ibv_gid_entry entry = {0};
	union ibv_gid gid = {0};
	int r;

	*ret = (struct pp_gid_row){.index = index, .type = PP_GID_TYPE_UNKNOWN};
	errno = 0;
	if (v->query_gid_ex) {
		r = v->query_gid_ex(context, port, index, &entry, 0, sizeof(entry));
		if (!r) {
			memcpy(ret->gid.raw, entry.gid.raw, sizeof(ret->gid.raw));
			ret->type = type_of(entry.gid_type);
		}
		if (!r || r == ENODATA)
			return 0;
		/* A driver of the kernel's that is older than the call. */
		if (r != EOPNOTSUPP && r != ENOSYS)
			return -(r > 0 ? r : EIO);
	}
	errno = 0;
	if (v->query_gid(context, port, (int)index, &gid))
		return errno ? -errno : -EIO;
	memcpy(ret->gid.raw, gid.raw, sizeof(ret->gid.raw));
	return 0;
}

int pp_gid_table_read(const struct pp_verbs *v, struct ibv_context *context, uint8_t port,
		      unsigned int length, struct pp_gid_table *ret)
{
	unsigned int places = length < PP_GID_ROWS ? length : PP_GID_ROWS;
	struct pp_gid_row row;
	int r;

	ret->n = 0;
	ret->left = length - places;
	for (uint32_t i = 0; i < places; i++) {
		r = read_row(v, context, port, i, &row);
		if (r)
			return r;
		if (!pp_gid_is_zero(&row.gid))
			ret->row[ret->n++] = row;
	}
	return 0;
}

/* How well it suits Ethernet; the first of equal ones is taken, of untyped ones the last. */
static int worth(const struct pp_gid_row *row)
{
	bool v4 = pp_gid_is_ipv4(&row->gid);

	if (row->type == PP_GID_ROCE_V2)
		return v4 ? 4 : pp_gid_is_link_local(&row->gid) ? 0 : 3;
	return row->type == PP_GID_TYPE_UNKNOWN && v4 ? 2 : 0;
}

const struct pp_gid_row *pp_gid_table_choose(const struct pp_gid_table *t, bool ethernet)
{
	const struct pp_gid_row *best = t->n ? &t->row[0] : NULL;

	for (unsigned int i = 1; ethernet && i < t->n; i++) {
		const struct pp_gid_row *row = &t->row[i];

		if (worth(row) > worth(best) || (worth(row) == 2 && worth(best) == 2))
			best = row;
	}
	return best;
}

const struct pp_gid_row *pp_gid_table_at(const struct pp_gid_table *t, uint32_t index)
{
	for (unsigned int i = 0; i < t->n; i++)
		if (t->row[i].index == index)
			return &t->row[i];
	return NULL;
}

const char *pp_gid_table_text(const struct pp_gid_table *t, char *text, size_t size)
{
	char gid[PP_GID_TEXT], one[PP_GID_TEXT + 32];
	size_t used = 0, len;

	*text = '\0';
	for (unsigned int i = 0; i < t->n; i++) {
		(void)snprintf(one, sizeof(one), "%s%u (%s, %s)", i ? ", " : "", t->row[i].index,
			       pp_gid_format(&t->row[i].gid, gid),
			       pp_gid_type_name(t->row[i].type));
		len = strlen(one);
		/* Room is kept for the mark that some were left out. */
		if (used + len + sizeof("...") > size) {
			if (used + sizeof("...") <= size)
				memcpy(text + used, "...", sizeof("..."));
			break;
		}
		memcpy(text + used, one, len + 1);
		used += len;
	}
	return text;
}

const char *pp_gid_type_name(enum pp_gid_type type)
{
	static const char *const names[] = {
		[PP_GID_IB] = "IB",
		[PP_GID_ROCE_V1] = "RoCE v1",
		[PP_GID_ROCE_V2] = "RoCE v2",
		[PP_GID_TYPE_UNKNOWN] = "unknown",
	};

	return names[type];
}
