/* SPDX-License-Identifier: Apache-2.0 */
#include "bundle/scrub_context.h"

#include <fnmatch.h>
#include <string.h>
#include <strings.h>

#include "base/compiler.h"
#include "bundle/scrub_program.h"
#include "base/banned.h"

struct rule {
	const char *pattern; /* of fnmatch(), case ignored; the first that fits counts */
	enum pp_scrub_context context;
};

static const struct rule path_rules[] = {
	{"/proc/sys/kernel/hostname", PP_SCRUB_AS_HOST},
	{"/etc/hostname", PP_SCRUB_AS_HOST},
	{"/proc/sys/kernel/domainname", PP_SCRUB_AS_DOMAIN},
	{"/proc/net/if_inet6", PP_SCRUB_AS_IPV6},
	{"*/node_desc", PP_SCRUB_AS_FREE},
	{"*/ifalias", PP_SCRUB_AS_FREE},
	{"*/*asset_tag", PP_SCRUB_AS_SERIAL},
	{"*/*serial", PP_SCRUB_AS_SERIAL},
	{"*/serial_number", PP_SCRUB_AS_SERIAL},
	{"*/phys_port_id", PP_SCRUB_AS_OPAQUE},
	{"*/phys_switch_id", PP_SCRUB_AS_OPAQUE},
	{"*version*", PP_SCRUB_AS_VERSION},
	{"*/fw_ver", PP_SCRUB_AS_VERSION},
	{"*/os-release", PP_SCRUB_AS_VERSION},
	{"/proc/modules", PP_SCRUB_AS_VERSION},
	{"/proc/kallsyms", PP_SCRUB_AS_VERSION},
};

static const struct rule name_rules[] = {
	{"*passw*", PP_SCRUB_AS_SECRET},     {"*secret*", PP_SCRUB_AS_SECRET},
	{"*token*", PP_SCRUB_AS_SECRET},     {"*credential*", PP_SCRUB_AS_SECRET},
	{"*api_key*", PP_SCRUB_AS_SECRET},   {"*private_key*", PP_SCRUB_AS_SECRET},
	{"*serial*", PP_SCRUB_AS_SERIAL},    {"*asset_tag*", PP_SCRUB_AS_SERIAL},
	{"*nodelist*", PP_SCRUB_AS_HOSTS},   {"*hostlist*", PP_SCRUB_AS_HOSTS},
	{"*hostfile*", PP_SCRUB_AS_TEXT},    {"*hostname*", PP_SCRUB_AS_HOST},
	{"*nodename*", PP_SCRUB_AS_HOST},    {"*master_addr", PP_SCRUB_AS_HOST},
	{"host", PP_SCRUB_AS_HOST},	     {"domainname", PP_SCRUB_AS_DOMAIN},
	{"user", PP_SCRUB_AS_USER},	     {"logname", PP_SCRUB_AS_USER},
	{"home", PP_SCRUB_AS_HOME},	     {"username", PP_SCRUB_AS_USER},
	{"sudo_user", PP_SCRUB_AS_USER},     {"slurm_job_user", PP_SCRUB_AS_USER},
	{"*version*", PP_SCRUB_AS_VERSION},  {"*vbios*", PP_SCRUB_AS_VERSION},
	{"*firmware*", PP_SCRUB_AS_VERSION}, {"fw*", PP_SCRUB_AS_VERSION},
	{"*release*", PP_SCRUB_AS_VERSION},  {"*driver*", PP_SCRUB_AS_VERSION},
	{"*inforom*", PP_SCRUB_AS_VERSION},  {"comm", PP_SCRUB_AS_PROGRAM},
	{"program", PP_SCRUB_AS_PROGRAM},    {"cgroup", PP_SCRUB_AS_PARTS},
	{"exe", PP_SCRUB_AS_PARTS},
};

static enum pp_scrub_context look_up(const struct rule *rules, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (!fnmatch(rules[i].pattern, text, FNM_CASEFOLD))
			return rules[i].context;
	return PP_SCRUB_AS_TEXT;
}

enum pp_scrub_context pp_scrub_context_of_path(const char *path)
{
	return look_up(path_rules, PP_ARRAY_LEN(path_rules), path);
}

enum pp_scrub_context pp_scrub_context_of_name(const char *name)
{
	return look_up(name_rules, PP_ARRAY_LEN(name_rules), name);
}

static void put_learned(struct pp_scrub_text *s, enum pp_scrub_class class, const char *value,
			size_t len, struct pp_buf *out)
{
	pp_buf_str(out, pp_scrub_learn(s->map, class, value, len, true));
	s->replaced++;
}

/* "gpu01.dc.example.org": the whole, the first part, and the domain are learned. */
static void put_host(struct pp_scrub_text *s, const char *value, size_t len, struct pp_buf *out)
{
	const char *dot = memchr(value, '.', len);
	size_t head = dot ? (size_t)(dot - value) : len;
	size_t before = out->len;

	/* An address in the place of a name, or nothing at all, is no name. */
	if ((len == 6 && !memcmp(value, "(none)", len)) || !head) {
		pp_buf_add(out, value, len);
		return;
	}
	if (dot || memchr(value, ':', len)) {
		pp_scrub_text(s, value, len, out);
		if (out->len != before + len || memcmp(out->data + before, value, len) != 0 || !dot)
			return;
		out->len = before;
	}
	put_learned(s, PP_SCRUB_HOST, value, head, out);
	if (!dot)
		return;
	pp_buf_char(out, '.');
	put_learned(s, PP_SCRUB_DOMAIN, dot + 1, len - head - 1, out);
}

/* A list in any notation: only that it was the same list is kept. */
static void put_hosts(struct pp_scrub_text *s, const char *value, size_t len, struct pp_buf *out)
{
	pp_buf_printf(out, "nodes-%06x",
		      (unsigned int)(pp_scrub_hash(s->map, 'l', value, len) & 0xffffff));
	s->replaced++;
}

/* Hexadecimal digits by a hash of the whole; other characters stay. */
static void put_opaque(struct pp_scrub_text *s, const char *value, size_t len, struct pp_buf *out)
{
	uint64_t in[2] = {pp_scrub_hash(s->map, 'o', value, len), 0};

	for (size_t i = 0; i < len; i++) {
		in[1] = i;
		pp_buf_char(
			out,
			pp_scrub_digit(value[i]) < 0
				? value[i]
				: "0123456789abcdef"[pp_scrub_hash(s->map, 'p', in, sizeof(in)) &
						     15]);
	}
	s->replaced++;
}

/* Lines that begin with 32 digits, as in /proc/net/if_inet6. */
static void put_ipv6_lines(struct pp_scrub_text *s, const char *value, size_t len,
			   struct pp_buf *out)
{
	const char *end = value + len, *next;
	uint8_t address[16];
	char hex[33];

	for (; value < end; value = next) {
		next = memchr(value, '\n', (size_t)(end - value));
		next = next ? next + 1 : end;
		memset(address, 0, sizeof(address));
		for (size_t i = 0; i < 32 && next - value >= 32; i++)
			address[i / 2] =
				(uint8_t)(address[i / 2] << 4 | (pp_scrub_digit(value[i]) & 15));
		if (next - value < 32) {
			pp_buf_add(out, value, (size_t)(next - value));
			continue;
		}
		pp_scrub_ipv6(s->map, address);
		for (size_t i = 0; i < 16; i++) {
			hex[2 * i] = "0123456789abcdef"[address[i] >> 4];
			hex[2 * i + 1] = "0123456789abcdef"[address[i] & 15];
		}
		pp_buf_add(out, hex, 32);
		pp_buf_add(out, value + 32, (size_t)(next - value - 32));
		s->replaced++;
	}
}

/* "N/A", "Unknown" and "0" are no serial numbers. */
static bool is_serial(const char *value, size_t len)
{
	for (size_t i = 0; i < len && len > 3; i++)
		if (value[i] >= '0' && value[i] <= '9')
			return true;
	return false;
}

/* The value without blanks around it; what is around it stays. */
static void put_trimmed(struct pp_scrub_text *s, enum pp_scrub_context context, const char *value,
			size_t len, struct pp_buf *out)
{
	size_t lead = 0, tail = 0;

	while (lead < len && pp_scrub_is_one_of(value[lead], " \t\r\n"))
		lead++;
	while (tail < len - lead && pp_scrub_is_one_of(value[len - tail - 1], " \t\r\n"))
		tail++;
	pp_buf_add(out, value, lead);
	value += lead;
	if (len == lead + tail) {
		pp_buf_add(out, value, tail);
		return;
	}
	len -= lead + tail;
	if (context == PP_SCRUB_AS_HOST)
		put_host(s, value, len, out);
	else if (context == PP_SCRUB_AS_DOMAIN && !(len == 6 && !memcmp(value, "(none)", 6)))
		put_learned(s, PP_SCRUB_DOMAIN, value, len, out);
	else if (context == PP_SCRUB_AS_USER && !(len == 4 && !memcmp(value, "root", 4)))
		put_learned(s, PP_SCRUB_USER, value, len, out);
	else if (context == PP_SCRUB_AS_SERIAL && is_serial(value, len))
		put_learned(s, PP_SCRUB_SERIAL, value, len, out);
	else
		pp_buf_add(out, value, len);
	pp_buf_add(out, value + len, tail);
}

static void put_home(struct pp_scrub_text *s, const char *value, size_t len, struct pp_buf *out)
{
	size_t end = len, start;

	while (end && value[end - 1] == '/')
		end--;
	for (start = end; start && value[start - 1] != '/';)
		start--;
	if (start && end > start && !(end - start == 4 && !memcmp(value + start, "root", 4)))
		(void)pp_scrub_learn(s->map, PP_SCRUB_USER, value + start, end - start, true);
	pp_scrub_text(s, value, len, out);
}

void pp_scrub_value(struct pp_scrub_text *s, enum pp_scrub_context context, const char *value,
		    size_t len, struct pp_buf *out)
{
	if (!len)
		return;
	switch (context) {
	case PP_SCRUB_AS_TEXT:
	case PP_SCRUB_AS_VERSION:
		s->versions = context == PP_SCRUB_AS_VERSION;
		pp_scrub_text(s, value, len, out);
		s->versions = false;
		return;
	case PP_SCRUB_AS_HOSTS:
		return put_hosts(s, value, len, out);
	case PP_SCRUB_AS_FREE:
	case PP_SCRUB_AS_SECRET:
		pp_buf_str(out, "scrubbed");
		s->replaced++;
		return;
	case PP_SCRUB_AS_HOME:
		return put_home(s, value, len, out);
	case PP_SCRUB_AS_OPAQUE:
		return put_opaque(s, value, len, out);
	case PP_SCRUB_AS_IPV6:
		return put_ipv6_lines(s, value, len, out);
	case PP_SCRUB_AS_PROGRAM:
		s->replaced += pp_scrub_program(s->map, value, len, out);
		return;
	case PP_SCRUB_AS_PARTS:
		s->replaced += pp_scrub_parts(s->map, value, len, out);
		return;
	default:
		return put_trimmed(s, context, value, len, out);
	}
}
