/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two witnesses of the flavour: the words of the version file, and the taint of the module (P only
 * for the proprietary one; O, out of tree, for both; E depends on who signed it). Where they
 * contradict each other nothing is known.
 */
#include "node/nvidia.h"

#include <string.h>

#include "base/parse.h"
#include "base/version.h"
#include "base/banned.h"

enum { FILE_BYTES = 16384, WORD_BYTES = 64 };

static const char VERSION_FILE[] = PP_NVIDIA_VERSION_FILE;
static const char PARAMS_FILE[] = "/proc/driver/nvidia/params";
static const char SYS_VERSION[] = "/sys/module/nvidia/version";
static const char SYS_TAINT[] = "/sys/module/nvidia/taint";

enum flavour { NOT_SAID, OPEN, PROPRIETARY };

static const char *const flavours[] = {"", "open", "proprietary"};

static const struct {
	enum pp_fact_id id;
	const char *key;
} params[] = {
	{PP_F_NVIDIA_PARAM_TOPO, "GrdmaPciTopoCheckOverride"},
	{PP_F_NVIDIA_PARAM_REMAP, "DmaRemapPeerMmio"},
	{PP_F_NVIDIA_PARAM_COHERENT, "CoherentGPUMemoryMode"},
};

/* The first word that is a version: digits and dots, with one dot at least. False if none. */
static bool version_word(const char *line, char ret[WORD_BYTES])
{
	size_t len;

	for (; *line; line += len) {
		line += strspn(line, " \t");
		len = strcspn(line, " \t");
		if (len < WORD_BYTES && strspn(line, "0123456789.") == len &&
		    memchr(line, '.', len) && *line != '.') {
			memcpy(ret, line, len);
			ret[len] = '\0';
			return true;
		}
	}
	return false;
}

static void set_version(struct pp_node *n, const char *line, int error)
{
	char word[WORD_BYTES];

	if (!error && version_word(line, word))
		return pp_fact_str(&n->facts, n->self, PP_F_NVIDIA_VERSION, word, VERSION_FILE);
	if (!pp_node_file(n, n->self, PP_F_NVIDIA_VERSION, SYS_VERSION) &&
	    pp_fact_get(n->self, PP_F_NVIDIA_VERSION)->known)
		return;
	pp_fact_unknown(&n->facts, n->self, PP_F_NVIDIA_VERSION, VERSION_FILE, "%s: %s",
			VERSION_FILE,
			error ? pp_source_why(error) : "no version in its first line");
}

static enum flavour flavour_of(const char *line)
{
	if (!strstr(line, "NVRM version:") || !strstr(line, "Kernel Module"))
		return NOT_SAID;
	return strstr(line, "Open Kernel Module") ? OPEN : PROPRIETARY;
}

static void set_flavour(struct pp_node *n, const char *line, int error)
{
	enum flavour said = error ? NOT_SAID : flavour_of(line), tainted = NOT_SAID;
	struct pp_facts *f = &n->facts;
	char taint[WORD_BYTES];
	int r = pp_source_text(n->src, SYS_TAINT, taint, sizeof(taint));

	if (!r && strchr(taint, 'O'))
		tainted = strchr(taint, 'P') ? PROPRIETARY : OPEN;
	if (said && tainted && said != tainted)
		pp_fact_unknown(f, n->self, PP_F_NVIDIA_FLAVOUR, VERSION_FILE,
				"%s says %s, %s ('%s') says %s", VERSION_FILE, flavours[said],
				SYS_TAINT, taint, flavours[tainted]);
	else if (said)
		pp_fact_str(f, n->self, PP_F_NVIDIA_FLAVOUR, flavours[said], VERSION_FILE);
	else if (tainted)
		pp_fact_str(f, n->self, PP_F_NVIDIA_FLAVOUR, flavours[tainted], SYS_TAINT);
	else
		pp_fact_unknown(f, n->self, PP_F_NVIDIA_FLAVOUR, VERSION_FILE, "%s: %s; %s: %s",
				VERSION_FILE,
				error ? pp_source_why(error) : "words that are not known",
				SYS_TAINT, r ? pp_source_why(r) : "words that are not known");
}

/* The value in "Key: value" lines, unquoted, in place; NULL when no line has the key. */
static char *param_value(char *text, const char *key)
{
	size_t len = strlen(key);
	char *value, *end;

	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		if (strncmp(p, key, len) != 0 || p[len] != ':')
			continue;
		value = p + len + 1;
		end = value + strcspn(value, "\n");
		*end = '\0';
		value = pp_trim(value);
		len = strlen(value);
		if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
			value[len - 1] = '\0';
			value++;
		}
		return value;
	}
	return NULL;
}

static void set_param(struct pp_node *n, enum pp_fact_id id, const char *key)
{
	struct pp_facts *f = &n->facts;
	char text[FILE_BYTES];
	const char *value;
	int64_t number;
	int r = pp_source_text(n->src, PARAMS_FILE, text, sizeof(text));

	value = r ? NULL : param_value(text, key);
	if (r)
		pp_fact_unknown(f, n->self, id, PARAMS_FILE, "%s: %s", PARAMS_FILE,
				pp_source_why(r));
	else if (!value)
		pp_fact_unknown(f, n->self, id, PARAMS_FILE, "%s: this driver has no %s",
				PARAMS_FILE, key);
	else if (pp_fact_table[id].type == PP_STR)
		pp_fact_str(f, n->self, id, value, PARAMS_FILE);
	else if (pp_parse_i64(value, INT64_MIN, INT64_MAX, &number))
		pp_fact_unknown(f, n->self, id, PARAMS_FILE, "%s: %s is no number: '%.40s'",
				PARAMS_FILE, key, value);
	else
		pp_fact_int(f, n->self, id, number, PARAMS_FILE);
}

bool pp_nvidia_speaks(struct pp_source *s)
{
	char text[FILE_BYTES];

	return !pp_source_text(s, VERSION_FILE, text, sizeof(text)) && flavour_of(text);
}

static void set_absent(struct pp_node *n, enum pp_fact_id id)
{
	pp_fact_unknown(&n->facts, n->self, id, VERSION_FILE, "nvidia is not loaded");
}

void pp_nvidia_read(struct pp_node *n, bool not_loaded)
{
	char text[FILE_BYTES] = "";
	int r;

	if (not_loaded) {
		set_absent(n, PP_F_NVIDIA_VERSION);
		set_absent(n, PP_F_NVIDIA_FLAVOUR);
		for (size_t i = 0; i < PP_ARRAY_LEN(params); i++)
			set_absent(n, params[i].id);
		return;
	}
	r = pp_source_text(n->src, VERSION_FILE, text, sizeof(text));
	if (!r)
		text[strcspn(text, "\n")] = '\0';
	set_version(n, text, r);
	set_flavour(n, text, r);
	for (size_t i = 0; i < PP_ARRAY_LEN(params); i++)
		set_param(n, params[i].id, params[i].key);
}
