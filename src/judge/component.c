/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/component.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/near.h"
#include "base/version.h"
#include "base/banned.h"

enum { WORDS = 5 };

/* A component: the words in front of its version in logs, and the fact that states it on a node. */
static const struct {
	const char *name, *fact;
	const char *words[WORDS];
	bool of_process; /* the fact is of the library path here, not of the whole node */
} components[] = {
	{"nccl", "nccl.version", {"NCCL version ", "NCCL Version: ", "nvidia-nccl-cu12=="}, true},
	{"aws-ofi-nccl", NULL, {"aws-ofi-nccl ", "OFI-NCCL version ", "AWS OFI NCCL Version: "}},
	{"libfabric",
	 "libfabric.version",
	 {"Libfabric version ", "libfabric version: ", "libfabric: ", "Libfabric-", "libfabric "},
	 true},
	{"efa-installer",
	 NULL,
	 {"EFA installer version: ", "EFA installer ", "EFA_INSTALLER_VERSION=", "efa_installer-"}},
	{"ucx",
	 "ucx.version",
	 {"UCT version=", "UCX version ", "Library version: ", "UCX INFO Version ", "ucx-"},
	 true},
	{"nvidia",
	 "nvidia.version",
	 {"Kernel Module ", "Driver Version: ", "NVIDIA driver ", "module nvidia/", "nvidia/"}},
	{"kernel",
	 "kernel.release",
	 {"Linux version ", "for kernel ", "on kernel: ", "Linux kernel ", "kernel release "}},
	{"cuda", NULL, {"CUDA Version: ", "CUDA version ", "+cuda", "cuda toolkit "}},
	{"rdma-core", "libibverbs.rdma_core", {"rdma-core-", "rdma-core "}, true},
	{"ofed", "rdma.stack_version", {"MLNX_OFED_LINUX-", "OFED-internal-", "MLNX_OFED "}},
	{"perftest", NULL, {"perftest-", "perftest version ", "perftest "}},
	{"nvshmem", NULL, {"NVSHMEM v", "NVSHMEM version: ", "nvshmem "}},
};

_Static_assert(PP_ARRAY_LEN(components) <= PP_COMPONENTS_MAX, "versions of all components");
_Static_assert(PP_ARRAY_LEN(components) * WORDS <= 64, "a bit for every word");

const char *pp_component_word(unsigned int i)
{
	for (size_t c = 0; c < PP_ARRAY_LEN(components); c++)
		for (unsigned int w = 0; w < WORDS && components[c].words[w]; w++)
			if (!i--)
				return components[c].words[w];
	return NULL;
}

const char *pp_component_name(unsigned int component)
{
	return components[component].name;
}

/* "2.19.3+cuda12", "v1.22.0", " 6.8.0-54-generic": digits and dots; two parts at least. */
static bool read_version(const char *at, const char *end, char ret[PP_COMPONENT_VERSION])
{
	unsigned int dots = 0;
	size_t n = 0;

	for (int skip = 0; skip < 12 && at < end && !isdigit((unsigned char)*at); skip++) {
		if (*at != ' ' && *at != ':' && *at != '=' && *at != 'v')
			return false;
		at++;
	}
	for (; at < end && n + 1 < PP_COMPONENT_VERSION &&
	       (isdigit((unsigned char)*at) || *at == '.');
	     at++) {
		dots += *at == '.';
		ret[n++] = *at;
	}
	while (n && ret[n - 1] == '.')
		n--;
	ret[n] = '\0';
	return n >= 3 && dots && isdigit((unsigned char)ret[0]);
}

static const char *find_fold(const char *text, const char *end, const char *word)
{
	const char low = (char)tolower((unsigned char)*word),
		   high = (char)toupper((unsigned char)*word);
	size_t n = strlen(word);

	for (; (size_t)(end - text) >= n; text++) {
		size_t i = 1;

		if (*text != low && *text != high)
			continue;
		while (i < n && tolower((unsigned char)text[i]) == tolower((unsigned char)word[i]))
			i++;
		if (i == n)
			return text;
	}
	return NULL;
}

static void note(struct pp_components *c, unsigned int component, const char *version,
		 uint64_t line)
{
	char(*seen)[PP_COMPONENT_VERSION] = c->version[component];
	unsigned int i = 0;

	while (i < PP_COMPONENT_SEEN && seen[i][0] && strcmp(seen[i], version) != 0)
		i++;
	if (i == PP_COMPONENT_SEEN || seen[i][0])
		return;
	memcpy(seen[i], version, PP_COMPONENT_VERSION);
	if (!i)
		c->line[component] = line;
}

/* The driver's banner names its release behind the architecture: "Kernel Module for x86_64 570.1"
 */
static const char *behind_arch(const char *at, const char *end)
{
	static const char *const arches[] = {" for x86_64 ", "for x86_64 ", " for aarch64 ",
					     "for aarch64 "};
	size_t n;

	for (size_t i = 0; i < PP_ARRAY_LEN(arches); i++) {
		n = strlen(arches[i]);
		if ((size_t)(end - at) > n && !memcmp(at, arches[i], n))
			return at + n;
	}
	return at;
}

void pp_components_read(struct pp_components *c, const char *text, size_t len, uint64_t line,
			uint64_t words)
{
	const char *end = text + (len < 1024 ? len : 1024), *at;
	char version[PP_COMPONENT_VERSION];
	unsigned int bit = 0;

	for (unsigned int i = 0; i < PP_ARRAY_LEN(components); i++) {
		bool found = false;

		for (unsigned int w = 0; w < WORDS && components[i].words[w]; w++, bit++) {
			if (found || !(words >> bit & 1))
				continue;
			at = find_fold(text, end, components[i].words[w]);
			if (!at)
				continue;
			at = behind_arch(at + strlen(components[i].words[w]), end);
			if (!read_version(at, end, version))
				continue;
			note(c, i, version, line);
			found = true;
		}
	}
}

static const struct {
	const char *word;
	enum pp_op op;
} operators[] = {{"==", PP_OP_EQ}, {"!=", PP_OP_NE}, {"<=", PP_OP_LE},
		 {">=", PP_OP_GE}, {"<", PP_OP_LT},  {">", PP_OP_GT}};

const char *pp_range_op(const struct pp_range *r)
{
	for (size_t i = 0; i < PP_ARRAY_LEN(operators); i++)
		if (operators[i].op == r->op)
			return operators[i].word;
	return "?";
}

static int parse_component(const char *name, unsigned int *ret, struct pp_error *err)
{
	struct pp_near near = PP_NEAR(name);

	for (unsigned int i = 0; i < PP_ARRAY_LEN(components); i++) {
		pp_near_offer(&near, components[i].name);
		if (strcmp(components[i].name, name) != 0)
			continue;
		*ret = i;
		return 0;
	}
	return pp_error_set(err, -EINVAL, "unknown component '%s'%s%s%s", name,
			    near.best ? "; did you mean '" : "", near.best ? near.best : "",
			    near.best ? "'?" : "");
}

/* "nccl >= 2.19" in a text that may be changed */
static int parse_range(char *text, struct pp_range *ret, struct pp_error *err)
{
	char *name = text + strspn(text, " \t"), *op = name + strcspn(name, " \t"), *version;
	size_t n;

	if (*op)
		*op++ = '\0';
	op += strspn(op, " \t");
	for (size_t i = 0; i < PP_ARRAY_LEN(operators); i++) {
		n = strlen(operators[i].word);
		if (strncmp(op, operators[i].word, n) != 0)
			continue;
		ret->op = operators[i].op;
		version = op + n + strspn(op + n, " \t");
		version[strcspn(version, " \t")] = '\0';
		if (strlen(version) >= sizeof(ret->version) || !pp_version_valid(version))
			return pp_error_set(err, -EINVAL, "'%s' is no version", version);
		memcpy(ret->version, version, strlen(version) + 1);
		return parse_component(name, &ret->component, err);
	}
	return pp_error_set(err, -EINVAL, "expected 'component >= version' at '%s'", name);
}

int pp_ranges_parse(const char *text, struct pp_range ret[PP_RANGES], unsigned int *ret_n,
		    struct pp_error *err)
{
	char copy[512], *at = copy, *comma;
	unsigned int n = 0;
	int r = 0;

	if (strlen(text) >= sizeof(copy))
		return pp_error_set(err, -EINVAL, "'versions' is longer than %zu bytes",
				    sizeof(copy) - 1);
	memcpy(copy, text, strlen(text) + 1);
	while (!r && at) {
		comma = strchr(at, ',');
		if (comma)
			*comma++ = '\0';
		if (n == PP_RANGES)
			return pp_error_set(err, -EINVAL, "more than %d ranges", PP_RANGES);
		r = parse_range(at, &ret[n++], err);
		at = comma;
	}
	*ret_n = n;
	return r;
}

const char *pp_component_version(const struct pp_components *c, const struct pp_facts *facts,
				 unsigned int component, const char **ret_version)
{
	const struct pp_object *node = facts ? pp_object_next(facts, PP_NODE, NULL) : NULL;
	const struct pp_fact *fact;
	enum pp_fact_id id;

	if (c->version[component][0][0]) {
		*ret_version = c->version[component][0];
		return "text";
	}
	if (!node || !components[component].fact || pp_fact_find(components[component].fact, &id))
		return NULL;
	fact = pp_fact_get(node, id);
	if (!fact || !fact->known || !fact->str || !pp_version_valid(fact->str))
		return NULL;
	*ret_version = fact->str;
	return "node";
}

static bool lies_in(const struct pp_range *r, const char *version)
{
	int c = pp_version_compare(version, r->version);

	switch (r->op) {
	case PP_OP_EQ:
		return c == 0;
	case PP_OP_NE:
		return c != 0;
	case PP_OP_LT:
		return c < 0;
	case PP_OP_LE:
		return c <= 0;
	case PP_OP_GT:
		return c > 0;
	default:
		return c >= 0;
	}
}

enum pp_truth pp_range_test(const struct pp_range *r, const struct pp_components *c,
			    const struct pp_facts *facts, bool here)
{
	const char *version = NULL, *other = c->version[r->component][1];
	const char *from = pp_component_version(c, facts, r->component, &version);
	bool in;

	if (!from)
		return PP_OPEN;
	in = lies_in(r, version);
	if (!in && !here && components[r->component].of_process && !strcmp(from, "node"))
		return PP_OPEN;
	if (*other && version == c->version[r->component][0] && lies_in(r, other) != in)
		return PP_OPEN;
	return in ? PP_TRUE : PP_FALSE;
}
