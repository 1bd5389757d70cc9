/* SPDX-License-Identifier: Apache-2.0 */
/* What the nodes of a party are called, by what they said of themselves: hostile text. */
#include "rdma/party_state.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/json.h"
#include "base/parse.h"
#include "rdma/channel_state.h"
#include "base/banned.h"

static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

enum { SHORT = 48 };

void pp_party_host(char *ret, size_t size)
{
	struct utsname name;

	(void)snprintf(ret, size, "%s",
		       uname(&name) == 0 && name.nodename[0] ? name.nodename : "host");
}

void pp_party_introduce(const struct pp_party_introduction *i, struct pp_buf *ret)
{
	struct pp_json j = PP_JSON(ret, false);
	char host[256];

	pp_party_host(host, sizeof(host));
	pp_json_object(&j, NULL);
	pp_json_str(&j, "for", i->what);
	pp_json_str(&j, "run", i->run);
	pp_json_u64(&j, "number", i->number);
	pp_json_u64(&j, "rank", i->rank);
	pp_json_u64(&j, "size", i->size);
	pp_json_str(&j, "host", host);
	pp_json_str(&j, "version", PEERPATH_VERSION);
	pp_json_end_object(&j);
}

static void take(const json_t *from, const char *key, char *ret, size_t size)
{
	const char *s = json_string_value(json_object_get(from, key));

	(void)snprintf(ret, size, "%s", s && *s ? s : "unknown");
	pp_sanitize(ret, false);
}

void pp_party_meet(struct pp_party_member *m)
{
	const json_t *introduction = pp_channel_introduction(m->control);

	take(introduction, "host", m->node.host, sizeof(m->node.host));
	take(introduction, "version", m->node.version, sizeof(m->node.version));
	(void)snprintf(m->node.address, sizeof(m->node.address), "%s", pp_channel_peer(m->control));
}

/* The host's short name, fit to name a directory. */
static void short_name(const char *host, char ret[SHORT + 1])
{
	size_t n = 0;

	while (n < SHORT && host[n] && host[n] != '.') {
		ret[n] = strchr(plain, host[n]) ? host[n] : '_';
		n++;
	}
	ret[n] = '\0';
	if (!n)
		(void)snprintf(ret, SHORT + 1, "node");
}

static bool is_taken(const struct pp_party *p, unsigned int before, const char *id)
{
	for (unsigned int i = 0; i < before; i++)
		if (strcmp(p->member[i].node.id, id) == 0)
			return true;
	return false;
}

void pp_party_name(struct pp_party *p)
{
	char name[SHORT + 1];

	for (unsigned int i = 0; i < p->n; i++) {
		char *id = p->member[i].node.id;
		size_t size = sizeof(p->member[i].node.id);

		short_name(p->member[i].node.host, name);
		(void)snprintf(id, size, "%s", name);
		for (unsigned int k = 2; is_taken(p, i, id); k++)
			(void)snprintf(id, size, "%s-%u", name, k);
	}
}
