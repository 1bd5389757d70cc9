/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people paste of a shell: a command and its answer, of which the empty one says most. A line
 * is a command when a prompt (or nothing) stands before it; an answer ends at the next prompt. What
 * is the last line of a text may be cut, so that nothing is concluded from silence there.
 */
#include "judge/derived_measured.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/find.h"
#include "base/banned.h"

enum { PROMPT_WITHIN = 64, ANSWER_LINES = 64, LOCKED_ENOUGH_KB = 1048576 };
enum { ASKS_NOTHING, ASKS_WORD, ASKS_DEVICES, ASKS_NODES, ASKS_LOCKED, ASKS_TABLE };

static const char *const watched[] = {"lsmod",
				      "ucx_info -d",
				      "ompi_info",
				      "lspci",
				      "fi_info",
				      "node guid",
				      "/sys/class/infiniband",
				      "/dev/infiniband",
				      "ulimit -l",
				      "port_init",
				      "port_armed",
				      "port_active",
				      ": initializing",
				      ": armed",
				      "state: active",
				      "2: init",
				      "3: armed",
				      "4: active",
				      "port_lid",
				      "base lid",
				      "link_layer",
				      "link layer:",
				      "fe80:",
				      "n_gids_found",
				      "crw-",
				      "cannot access"};

const char *pp_derived_shell_word(unsigned int i)
{
	return i < PP_ARRAY_LEN(watched) ? watched[i] : NULL;
}

static bool has(const char *text, size_t len, const char *word)
{
	return pp_find(text, len, word, strlen(word)) != NULL;
}

static bool begins(const char *p, const char *end, const char *word)
{
	return (size_t)(end - p) >= strlen(word) && !memcmp(p, word, strlen(word));
}

static bool is_prompt(const char *text, size_t len)
{
	/* ucx_info sets each row behind such a sign, far in. */
	if (begins(text, text + len, "#  "))
		return false;
	if (strchr("#$%>", *text) || strchr("#$", text[len - 1]))
		return true;
	if (len > PROMPT_WITHIN)
		len = PROMPT_WITHIN;
	return has(text, len, "# ") || has(text, len, "$ ");
}

/* A command that people run next, without a prompt in front of it. */
static bool is_next_command(const char *text, size_t len)
{
	static const char *const names[] = {
		"modinfo ", "modprobe ",  "lsmod",	 "dmesg",      "nvidia-smi", "ibv_", "ls ",
		"cat ",	    "systemctl ", "sudo ",	 "service ",   "uname",	     "dpkg", "rpm ",
		"lspci",    "ofed_info",  "ib_write_bw", "ib_read_bw", "mst status"};

	for (size_t i = 0; i < PP_ARRAY_LEN(names); i++)
		if (begins(text, text + len, names[i]))
			return true;
	return false;
}

/* What stands behind @name when the line runs it; NULL when it only speaks of it. */
static const char *command(const char *text, size_t len, const char *name)
{
	const char *at = pp_find(text, len, name, strlen(name)), *p = at;

	if (!at)
		return NULL;
	if (p - text >= 5 && !memcmp(p - 5, "sudo ", 5))
		p -= 5;
	while (p > text && p[-1] == ' ')
		p--;
	return p == text || strchr("#$%>", p[-1]) ? at + strlen(name) : NULL;
}

/* Programs whose lists people search by "NAME | grep WORD". */
static const char *const listings[] = {"lsmod", "ucx_info -d", "ompi_info", "lspci", "fi_info"};

/* The word of "| grep [-i] WORD"; false for what is no plain word. */
static bool read_pattern(struct pp_derived_shell *s, const char *p, const char *end)
{
	size_t n = 0;
	char quote = 0;

	p = pp_derived_behind(p, (size_t)(end - p), "grep ");
	while (p && begins(p, end, "-")) {
		for (p++; p < end && *p != ' '; p++)
			if (*p == 'v' || *p == 'c')
				return false;
		p += p < end;
	}
	if (!p || p >= end)
		return false;
	if (*p == '"' || *p == '\'')
		quote = *p++;
	while (p < end && n + 1 < sizeof(s->word) &&
	       (isalnum((unsigned char)*p) || *p == '_' || *p == '-')) {
		s->word[n++] = *p == '-' ? '_' : *p;
		p++;
	}
	s->word[n] = '\0';
	p += quote && p < end && *p == quote;
	return n >= 3 && p == end;
}

static bool names_word(const struct pp_derived_shell *s, const char *text, size_t len)
{
	size_t n = strlen(s->word), k;

	for (size_t i = 0; i + n <= len; i++) {
		for (k = 0; k < n; k++) {
			char c = text[i + k] == '-' ? '_' : text[i + k];

			if (tolower((unsigned char)c) != tolower((unsigned char)s->word[k]))
				break;
		}
		if (k == n)
			return true;
	}
	return false;
}

static void answer_word(struct pp_derived *d, const char *text, size_t len)
{
	struct pp_derived_shell *s = &d->shell;

	s->asks = ASKS_NOTHING;
	if (is_prompt(text, len) || is_next_command(text, len)) {
		pp_derived_say(d, PP_DERIVED_MODULE, s->line, "peerpath: %s lists no %s",
			       listings[s->listing], s->word);
		return;
	}
	/* Loaded after all: what an earlier answer said is over. */
	if (names_word(s, text, len) && d->line[PP_DERIVED_MODULE] &&
	    names_word(s, d->sentence[PP_DERIVED_MODULE], strlen(d->sentence[PP_DERIVED_MODULE])))
		d->line[PP_DERIVED_MODULE] = 0;
}

static void compare(struct pp_derived *d, uint64_t line)
{
	const struct pp_derived_shell *s = &d->shell;

	if (!s->devices || !s->listed_nodes || s->nodes >= s->devices)
		return;
	pp_derived_say(d, PP_DERIVED_NODES, line,
		       "peerpath: %u RDMA devices in /sys/class/infiniband and %s uverbs nodes in "
		       "/dev/infiniband",
		       s->devices, s->nodes ? "fewer" : "no");
}

/* Names of devices: each ends with its number. A line with other words ends the answer. */
static void answer_devices(struct pp_derived_shell *s, const char *text, size_t len)
{
	const char *end = text + len, *at = text;
	unsigned int n = 0;

	if (begins(text, end, "total "))
		return;
	if (has(text, len, " -> ")) {
		s->devices++;
		return;
	}
	while (at < end) {
		const char *start = at, *last;

		for (; at < end && *at != ' ' && *at != '\t'; at++)
			if (!isalnum((unsigned char)*at) && !strchr("_-@/", *at)) {
				s->asks = ASKS_NOTHING;
				return;
			}
		last = at > start && at[-1] == '@' ? at - 1 : at; /* of a link, by ls -F */
		n += last > start && isdigit((unsigned char)last[-1]);
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
	}
	s->devices += n;
}

static void answer_nodes(struct pp_derived_shell *s, const char *text, size_t len)
{
	const char *at = text;

	while ((at = pp_derived_behind(at, (size_t)(text + len - at), "uverbs")))
		s->nodes += at < text + len && isdigit((unsigned char)*at);
	s->listed_nodes = true;
}

static void answer_locked(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	const char *p = text, *end = text + len;
	int64_t kb = isdigit((unsigned char)*text) ? pp_derived_number(&p, end) : -1;

	d->shell.asks = ASKS_NOTHING;
	if (kb >= 0 && p == end && kb < LOCKED_ENOUGH_KB)
		pp_derived_say(d, PP_DERIVED_LOCKED, line,
			       "peerpath: ulimit -l shows %" PRId64 " KiB of locked memory", kb);
}

static bool ask_listing(struct pp_derived_shell *s, const char *text, size_t len)
{
	for (unsigned int i = 0; i < PP_ARRAY_LEN(listings); i++) {
		const char *at = command(text, len, listings[i]);

		if (!at || !read_pattern(s, at, text + len))
			continue;
		s->listing = i;
		return true;
	}
	return false;
}

static void ask(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	struct pp_derived_shell *s = &d->shell;

	if (ask_listing(s, text, len)) {
		s->asks = ASKS_WORD;
	} else if (command(text, len, "ulimit -l") == text + len) {
		s->asks = ASKS_LOCKED;
	} else if (has(text, len, "node GUID") && !has(text, len, ":")) {
		s->asks = ASKS_TABLE;
	} else if (command(text, len, "ls ") && has(text, len, "/sys/class/infiniband") &&
		   !has(text, len, "/sys/class/infiniband/m")) {
		s->asks = ASKS_DEVICES;
		s->devices = s->nodes = 0;
		s->listed_nodes = false;
	} else if (command(text, len, "ls ") && has(text, len, "/dev/infiniband")) {
		s->asks = ASKS_NODES;
		s->nodes = 0;
	} else {
		return;
	}
	s->line = line;
}

/* The head of ibv_devices, its rule, and then no row. */
static void answer_table(struct pp_derived *d, const char *text, size_t len)
{
	while (len && isspace((unsigned char)*text)) {
		text++;
		len--;
	}
	if (begins(text, text + len, "---"))
		return;
	d->shell.asks = ASKS_NOTHING;
	if (len && is_prompt(text, len))
		pp_derived_say(d, PP_DERIVED_TABLE, d->shell.line,
			       "peerpath: ibv_devices lists no device");
}

static void answer(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	struct pp_derived_shell *s = &d->shell;

	if (s->asks == ASKS_WORD) {
		answer_word(d, text, len);
	} else if (s->asks == ASKS_TABLE) {
		answer_table(d, text, len);
	} else if (s->asks == ASKS_LOCKED) {
		answer_locked(d, text, len, line);
	} else if (is_prompt(text, len) || line - s->line > ANSWER_LINES) {
		s->asks = ASKS_NOTHING;
		compare(d, s->line);
	} else if (s->asks == ASKS_DEVICES) {
		answer_devices(s, text, len);
	} else {
		answer_nodes(s, text, len);
	}
}

/* ibv_devinfo, ibstat, ibstatus: an InfiniBand port that has a link and no address. */
static void read_port(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	static const char *const up[] = {"PORT_INIT",	   "PORT_ARMED", "PORT_ACTIVE",
					 ": Initializing", ": Armed",	 "State: Active",
					 "2: INIT",	   "3: ARMED",	 "4: ACTIVE"};
	static const char *const lids[] = {"port_lid:", "Base lid:", "base lid:"};
	struct pp_derived_shell *s = &d->shell;
	const char *at, *end = text + len;

	for (size_t i = 0; i < PP_ARRAY_LEN(up); i++)
		s->link_up |= has(text, len, up[i]);
	for (size_t i = 0; i < PP_ARRAY_LEN(lids); i++) {
		at = pp_derived_behind(text, len, lids[i]);
		if (at)
			s->lid_zero = pp_derived_number(&at, end) == 0 &&
				      (at == end || (*at == 'x' && at + 2 == end && at[1] == '0'));
	}
	if (!has(text, len, "link_layer:") && !has(text, len, "Link layer:"))
		return;
	if (s->link_up && s->lid_zero && has(text, len, "InfiniBand"))
		pp_derived_say(d, PP_DERIVED_LID, line,
			       "peerpath: an InfiniBand port has a link and no LID");
	s->link_up = s->lid_zero = false;
}

/* show_gids: rows of link-local addresses only, all of Ethernet interfaces. */
static void read_table(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	struct pp_derived_shell *s = &d->shell;
	const char *v2 = pp_derived_behind(text, len, " v2"), *end = text + len,
		   *found = pp_derived_behind(text, len, "n_gids_found=");

	if (v2 && has(text, len, "fe80:")) {
		while (v2 < end && isspace((unsigned char)*v2))
			v2++;
		s->local_gids += v2 < end && !begins(v2, end, "ib");
	}
	if (!found)
		return;
	/* Two rows, v1 and v2, for each address of an interface. */
	if (s->local_gids && pp_derived_number(&found, end) == 2 * (int64_t)s->local_gids)
		pp_derived_say(d, PP_DERIVED_LOCAL, line,
			       "peerpath: show_gids lists link-local GIDs only");
	s->local_gids = 0;
}

void pp_derived_read_shell(struct pp_derived *d, const char *text, size_t len, uint64_t line)
{
	if (!len || d->shell.last == line)
		return;
	d->shell.last = line;
	if (d->shell.asks)
		answer(d, text, len, line);
	ask(d, text, len, line);
	read_port(d, text, len, line);
	read_table(d, text, len, line);
	pp_derived_read_node(d, text, len, line);
}

void pp_derived_end(struct pp_derived *d)
{
	if (d->shell.asks == ASKS_NODES || d->shell.asks == ASKS_DEVICES)
		compare(d, d->shell.line);
	d->shell.asks = ASKS_NOTHING;
}
