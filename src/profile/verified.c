/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/verified.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/ini.h"
#include "base/banned.h"

#define TEXT(key, member)                                            \
	{                                                            \
		key, offsetof(struct pp_verified, member),           \
			sizeof(((struct pp_verified *)NULL)->member) \
	}

static const struct {
	const char *key;
	size_t offset, size;
} texts[] = {TEXT("profile", profile),	 TEXT("profile-sha256", sha256), TEXT("boot", boot_id),
	     TEXT("software", software), TEXT("topology", topology),	 TEXT("time", time)};

static const char *const gates[] = {"gate-0", "gate-1"};

void pp_verified_write(const struct pp_verified *v, struct pp_buf *ret)
{
	pp_buf_str(ret,
		   "# Written by 'peerpath profile verify', for --after-reboot.\n[verified]\n");
	for (size_t i = 0; i < PP_ARRAY_LEN(texts); i++)
		pp_buf_printf(ret, "%s = %s\n", texts[i].key, (const char *)v + texts[i].offset);
	for (size_t i = 0; i < PP_ARRAY_LEN(gates); i++)
		pp_buf_printf(ret, "%s = %s\n", gates[i], pp_verdict_name(v->gate[i]));
}

struct reader {
	struct pp_verified v;
	unsigned int seen;
};

static int on_key(void *arg, const char *section, const char *key, const char *value,
		  unsigned int line, struct pp_error *err)
{
	struct reader *t = arg;
	size_t i = 0, k = 0;

	(void)line;
	if (strcmp(section, "verified") != 0)
		return pp_error_set(err, -EINVAL, "unknown section '%.60s'", section);
	if (!key)
		return 0;
	while (i < PP_ARRAY_LEN(texts) && strcmp(texts[i].key, key) != 0)
		i++;
	while (k < PP_ARRAY_LEN(gates) && strcmp(gates[k], key) != 0)
		k++;
	if (i < PP_ARRAY_LEN(texts) && strlen(value) < texts[i].size)
		memcpy((char *)&t->v + texts[i].offset, value, strlen(value) + 1);
	else if (k == PP_ARRAY_LEN(gates) || pp_verdict_parse(value, &t->v.gate[k]))
		return pp_error_set(err, -EINVAL, "'%.60s = %.60s' cannot be", key, value);
	t->seen |= 1u << (i < PP_ARRAY_LEN(texts) ? i : i + k);
	return 0;
}

int pp_verified_parse(const char *name, const char *text, size_t len, struct pp_verified *ret,
		      struct pp_error *err)
{
	struct reader t = {.seen = 0};
	int r = pp_ini_parse(name, text, len, on_key, &t, err);

	if (r)
		return r;
	if (t.seen != (1u << (PP_ARRAY_LEN(texts) + PP_ARRAY_LEN(gates))) - 1)
		return pp_error_set(err, -EINVAL, "%s: is not whole", name);
	*ret = t.v;
	return 0;
}

static struct pp_verified_row same(const char *what, const char *before, const char *after,
				   const char *why)
{
	struct pp_verified_row row = {what, PP_PASS, before, after, NULL};

	if (!*before || !*after) {
		row.verdict = PP_UNKNOWN;
		row.why = "not known on both sides";
	} else if (strcmp(before, after) != 0) {
		row.verdict = PP_FAIL;
		row.why = why;
	}
	return row;
}

static struct pp_verified_row booted(const struct pp_verified *a, const struct pp_verified *b)
{
	struct pp_verified_row row = same("boot", a->boot_id, b->boot_id, NULL);

	if (row.verdict == PP_PASS) {
		row.verdict = PP_UNKNOWN;
		row.why = "this node has not been rebooted since";
	} else if (row.verdict == PP_FAIL) {
		row.verdict = PP_PASS;
	}
	return row;
}

void pp_verified_compare(const struct pp_verified *a, const struct pp_verified *b,
			 struct pp_verified_row ret[PP_VERIFIED_ROWS])
{
	static const char *const names[] = {"gate 0 identity", "gate 1 prerequisites"};

	ret[0] = booted(a, b);
	ret[1] = same("profile", a->sha256, b->sha256, "another profile, or another text of it");
	ret[2] = same("software", a->software, b->software, "the software tuple changed");
	ret[3] = same("topology class", a->topology, b->topology, "the wiring changed");
	for (size_t i = 0; i < 2; i++) {
		bool worse = b->gate[i] > a->gate[i];

		ret[4 + i] = (struct pp_verified_row){
			names[i], worse ? b->gate[i] : PP_PASS, pp_verdict_name(a->gate[i]),
			pp_verdict_name(b->gate[i]), worse ? "worse than before" : NULL};
	}
}
