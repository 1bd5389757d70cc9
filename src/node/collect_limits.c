/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this process may do: locked memory, capabilities, namespaces, cgroup, device nodes.
 * In a replay "this process" is the one that recorded.
 */
#include "node/collect_limits.h"

#include <errno.h>
#include <string.h>

#include "base/compiler.h"
#include "base/parse.h"
#include "node/limits.h"
#include "base/banned.h"

enum { TEXT = 16 << 10 };

static void collect_memlock(struct pp_node *n)
{
	static const char PATH[] = "/proc/self/limits";
	char text[TEXT];
	int64_t soft, hard;
	int r = pp_source_text(n->src, PATH, text, sizeof(text));

	if (!r)
		r = pp_limits_memlock(text, &soft, &hard);
	if (!r) {
		pp_fact_int(&n->facts, n->self, PP_F_LIMIT_MEMLOCK, soft, PATH);
		pp_fact_int(&n->facts, n->self, PP_F_LIMIT_MEMLOCK_HARD, hard, PATH);
		return;
	}
	pp_fact_unknown(&n->facts, n->self, PP_F_LIMIT_MEMLOCK, PATH, "%s: %s", PATH,
			pp_source_why(r));
	pp_fact_unknown(&n->facts, n->self, PP_F_LIMIT_MEMLOCK_HARD, PATH, "%s: %s", PATH,
			pp_source_why(r));
}

/* Capability numbers are the kernel's ABI (linux/capability.h). */
static const struct {
	enum pp_fact_id id;
	unsigned int bit;
} capabilities[] = {
	{PP_F_CAP_NET_ADMIN, 12},
	{PP_F_CAP_IPC_LOCK, 14},
	{PP_F_CAP_SYS_ADMIN, 21},
};

static void collect_status(struct pp_node *n)
{
	static const char PATH[] = "/proc/self/status";
	char text[TEXT], word[32];
	uint64_t caps = 0, uid = 0;
	int r = pp_source_text(n->src, PATH, text, sizeof(text)), uid_r = r;

	if (!r)
		r = pp_limits_status_word(text, "CapEff", 0, word, sizeof(word));
	if (!r)
		r = pp_parse_hex(word, UINT64_MAX, &caps);
	for (size_t i = 0; i < PP_ARRAY_LEN(capabilities); i++) {
		if (r)
			pp_fact_unknown(&n->facts, n->self, capabilities[i].id, PATH,
					"CapEff in %s: %s", PATH, pp_source_why(r));
		else
			pp_fact_bool(&n->facts, n->self, capabilities[i].id,
				     caps >> capabilities[i].bit & 1, PATH);
	}
	if (!uid_r) /* real, effective, saved, file system */
		uid_r = pp_limits_status_word(text, "Uid", 1, word, sizeof(word));
	if (!uid_r)
		uid_r = pp_parse_u64(word, 0, UINT32_MAX, &uid);
	if (uid_r)
		pp_fact_unknown(&n->facts, n->self, PP_F_UID, PATH, "Uid in %s: %s", PATH,
				pp_source_why(uid_r));
	else
		pp_fact_int(&n->facts, n->self, PP_F_UID, (int64_t)uid, PATH);
}

/* The first user namespace maps all ids to themselves; a map of another has to leave some out. */
static void collect_user_namespace(struct pp_node *n)
{
	static const char MAP[] = "/proc/self/uid_map", NS[] = "/proc/self/ns/user";
	char text[1024], link[64], *p = text;
	int r = pp_source_text(n->src, MAP, text, sizeof(text));
	bool other;

	if (r) {
		pp_fact_unknown(&n->facts, n->self, PP_F_USER_NS, MAP, "%s: %s", MAP,
				pp_source_why(r));
		return;
	}
	other = strncmp(p, "0", 1) != 0;
	p += strspn(p, "0");
	p += strspn(p, " \t");
	other = other || strncmp(p, "0", 1) != 0;
	p += strspn(p, "0");
	p += strspn(p, " \t");
	other = other || strcmp(p, "4294967295") != 0;
	if (!pp_source_link(n->src, NS, link, sizeof(link)))
		other = other || strcmp(link, "user:[4026531837]") != 0;
	pp_fact_bool(&n->facts, n->self, PP_F_USER_NS, other, MAP);
}

/* Absence is known where /dev shows what every /dev has. */
static void collect_device(struct pp_node *n, enum pp_fact_id id, const char *path)
{
	int r = pp_source_probe(n->src, path);

	if (r < 0)
		pp_fact_unknown(&n->facts, n->self, id, path, "%s: %s", path, pp_source_why(r));
	else if (r || (!pp_source_cut(n->src) && pp_source_probe(n->src, "/dev/null") > 0))
		pp_fact_bool(&n->facts, n->self, id, r, path);
	else
		pp_fact_unknown(&n->facts, n->self, id, path, "/dev cannot be seen here");
}

void pp_collect_limits(struct pp_node *n)
{
	char cgroup[PP_CGROUP_TEXT];
	int r = pp_source_text(n->src, "/proc/self/cgroup", cgroup, sizeof(cgroup));

	collect_memlock(n);
	collect_status(n);
	collect_user_namespace(n);
	pp_container_collect(n, r ? NULL : cgroup);
	pp_cgroup_collect(n, cgroup, r);
	collect_device(n, PP_F_DEV_INFINIBAND, "/dev/infiniband");
	collect_device(n, PP_F_DEV_NVIDIA, "/dev/nvidiactl");
}
