/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA toolkits, middleware, and this process's environment. Nothing is loaded or run: libraries
 * are looked for where the loader would, and say their version by name or by their strings.
 */
#include "node/collect_software.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "node/os_release.h"
#include "base/banned.h"

enum {
	MAX_TOOLKITS = 32,
	MAX_LIST = 512,
	VERSION = 64,
	MAX_JSON = 256 << 10,
	MAX_HEADER = 4 << 20
};

static const char PODMAN[] = "/run/.containerenv";

static int json_version(struct pp_node *n, const char *path, char version[VERSION])
{
	char *PP_AUTO_FREE text = malloc(MAX_JSON);
	size_t len = 0;
	int r = text ? pp_source_read(n->src, path, text, MAX_JSON, &len) : -ENOMEM;
	const char *word;
	json_t *doc;

	if (r)
		return r;
	doc = json_loadb(text, len, 0, NULL);
	word = pp_answer_str(json_object_get(doc, "cuda"), "version");
	r = word && *word && strlen(word) < VERSION && pp_is_text(word, strlen(word)) ? 0 : -ENOENT;
	if (!r)
		(void)snprintf(version, VERSION, "%s", word);
	json_decref(doc);
	return r;
}

/* "#define CUDART_VERSION  13000" */
static enum pp_scan_step keep_define(void *arg, const char *line, size_t len)
{
	static const char HEAD[] = "#define CUDART_VERSION";
	char word[16];
	int64_t *number = arg;
	const char *p;

	if (len < strlen(HEAD) || memcmp(line, HEAD, strlen(HEAD)) != 0)
		return PP_SCAN_DROP;
	p = line + strlen(HEAD);
	p += strspn(p, " \t");
	(void)snprintf(word, sizeof(word), "%.*s", (int)strspn(p, "0123456789"), p);
	return pp_parse_i64(word, 1000, 1000000, number) ? PP_SCAN_DROP : PP_SCAN_LAST;
}

static int header_version(struct pp_node *n, const char *path, char version[VERSION])
{
	int64_t number = 0;
	const struct pp_scan scan = {
		.separator = '\n', .max = MAX_HEADER, .filter = keep_define, .arg = &number};
	int r = pp_source_scan(n->src, path, &scan);

	if (r || !number)
		return r ? r : -ENOENT;
	(void)snprintf(version, VERSION, "%d.%d", (int)(number / 1000), (int)(number % 1000 / 10));
	return 0;
}

static const char *toolkit(struct pp_node *n, const char *dir)
{
	char path[PP_PATH_MAX], version[VERSION];
	int r = pp_path_join(dir, "version.json", path);

	if (!r)
		r = json_version(n, path, version);
	if (r)
		r = pp_path_join(dir, "include/cuda_runtime_api.h", path);
	else
		return pp_arena_printf(&n->arena, "%s %s", dir, version);
	if (!r)
		r = header_version(n, path, version);
	return pp_arena_printf(&n->arena, "%s %s", dir, r ? "(version unknown)" : version);
}

static void collect_toolkits(struct pp_node *n)
{
	static const char PLACE[] = "/usr/local";
	const char *dirs[MAX_TOOLKITS], *lines[MAX_TOOLKITS];
	char path[PP_PATH_MAX], real[PP_PATH_MAX];
	struct pp_names names;
	size_t found = 0, i;
	int r = pp_source_list(n->src, PLACE, &names);

	if (r) {
		pp_fact_unknown(&n->facts, n->self, PP_F_CUDA_TOOLKITS, PLACE, "%s: %s", PLACE,
				pp_source_why(r));
		return;
	}
	for (size_t name = 0; name < names.n && found < MAX_TOOLKITS; name++) {
		if (strncmp(names.name[name], "cuda", 4) != 0 ||
		    pp_path_join(PLACE, names.name[name], path) ||
		    pp_library_real(n->src, path, real))
			continue;
		for (i = 0; i < found && strcmp(dirs[i], real) != 0; i++)
			;
		if (i < found)
			continue;
		dirs[found] = pp_arena_str(&n->arena, real);
		lines[found++] = toolkit(n, real);
	}
	pp_names_done(&names);
	pp_fact_list(&n->facts, n->self, PP_F_CUDA_TOOLKITS, lines, found, PLACE);
}

/* The version of a library that the loader finds first; its file name has only an ABI's number. */
static void collect_library(struct pp_software *sw, enum pp_fact_id id, const char *soname)
{
	struct pp_node *n = sw->node;
	char path[PP_PATH_MAX], version[VERSION];
	size_t at = 0;
	int r;

	if (!sw->env.known) {
		pp_fact_unknown(&n->facts, n->self, id, NULL, "LD_LIBRARY_PATH is not known: %s",
				sw->env.why);
		return;
	}
	if (pp_library_find(n->src, &sw->libraries, soname, &at, path)) {
		pp_fact_unknown(&n->facts, n->self, id, NULL,
				"%s is in none of the %zu directories that the loader searches",
				soname, sw->libraries.n);
		return;
	}
	r = pp_library_version_inside(n->src, path, /* marker= */ NULL, version, sizeof(version));
	if (r)
		pp_fact_unknown(&n->facts, n->self, id, path, "%s: %s", path,
				r == -ENOENT   ? "no version in it"
				: r == -EEXIST ? "several numbers in it look like its version"
					       : pp_source_why(r));
	else
		pp_fact_str(&n->facts, n->self, id, version, path);
}

static void collect_perftest(struct pp_software *sw)
{
	static const char PROGRAM[] = "ib_write_bw";
	const char *list = pp_environment_get(&sw->env, "PATH");
	struct pp_node *n = sw->node;
	char dir[PP_PATH_MAX], path[PP_PATH_MAX];
	size_t len;

	for (const char *p = list ? list : ""; *p; p += len + (p[len] != '\0')) {
		len = strcspn(p, ":");
		if (p[0] != '/' || len >= sizeof(dir))
			continue;
		memcpy(dir, p, len);
		dir[len] = '\0';
		if (pp_path_join(dir, PROGRAM, path) || !pp_source_exists(n->src, path))
			continue;
		pp_fact_str(&n->facts, n->self, PP_F_PERFTEST_PATH, path, "PATH");
		return;
	}
	pp_fact_unknown(&n->facts, n->self, PP_F_PERFTEST_PATH, "PATH", "%s",
			!sw->env.known ? sw->env.why
			: list	       ? "ib_write_bw is in no directory of PATH"
				       : "PATH is not set");
}

static void set_prefix(struct pp_software *sw, enum pp_fact_id id, const char *prefix)
{
	struct pp_node *n = sw->node;
	const char *lines[MAX_LIST], *key;
	json_t *value;
	size_t found = 0;

	if (!sw->env.known) {
		pp_fact_unknown(&n->facts, n->self, id, NULL, "%s", sw->env.why);
		return;
	}
	json_object_foreach(sw->env.variables, key,
			    value) if (!strncmp(key, prefix, strlen(prefix)) &&
				       json_is_string(value) && found < MAX_LIST) lines[found++] =
		pp_arena_printf(&n->arena, "%s=%s", key, json_string_value(value));
	pp_fact_list(&n->facts, n->self, id, lines, found, "environment");
}

/* The first of two variables that is set, "" when none is. */
static void set_variable(struct pp_software *sw, enum pp_fact_id id, const char *name,
			 const char *other)
{
	const char *value = pp_environment_get(&sw->env, name);
	struct pp_node *n = sw->node;

	if (!value && other)
		value = pp_environment_get(&sw->env, other);
	if (sw->env.known)
		pp_fact_str(&n->facts, n->self, id, value ? value : "", "environment");
	else
		pp_fact_unknown(&n->facts, n->self, id, NULL, "%s", sw->env.why);
}

/* Podman writes what it runs into each container of root's. */
static bool podman_image(struct pp_node *n, char *value, size_t size)
{
	char text[4096];

	return !pp_source_text(n->src, PODMAN, text, sizeof(text)) &&
	       !pp_os_release_value(text, "image", value, size) && value[0];
}

/* Told by whoever starts the program, or by Apptainer or Podman, which name their image. */
static void collect_image(struct pp_software *sw)
{
	static const char *const names[] = {"PEERPATH_IMAGE", "APPTAINER_CONTAINER",
					    "SINGULARITY_CONTAINER"};
	struct pp_node *n = sw->node;
	const char *value = NULL;
	char image[512];
	size_t i = 0;

	while (!value && i < PP_ARRAY_LEN(names))
		value = pp_environment_get(&sw->env, names[i++]);
	if (value && *value)
		pp_fact_str(&n->facts, n->self, PP_F_CONTAINER_IMAGE, value, names[i - 1]);
	else if (podman_image(n, image, sizeof(image)))
		pp_fact_str(&n->facts, n->self, PP_F_CONTAINER_IMAGE, image, PODMAN);
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_CONTAINER_IMAGE, NULL, "%s",
				sw->env.known ? "nobody told" : sw->env.why);
}

static void collect_environment(struct pp_software *sw)
{
	struct pp_node *n = sw->node;

	set_prefix(sw, PP_F_NCCL_ENV, "NCCL_");
	set_prefix(sw, PP_F_UCX_ENV, "UCX_");
	set_variable(sw, PP_F_TORCH_ALLOC, "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF");
	set_variable(sw, PP_F_LD_PRELOAD, "LD_PRELOAD", NULL);
	if (sw->env.known)
		pp_fact_int(&n->facts, n->self, PP_F_ENV_HIDDEN, sw->env.redacted, "environment");
	else
		pp_fact_unknown(&n->facts, n->self, PP_F_ENV_HIDDEN, NULL, "%s", sw->env.why);
	collect_image(sw);
}

void pp_collect_software(struct pp_node *n)
{
	struct pp_software sw = {.node = n};

	if (pp_environment_ask(n->src, &sw.env)) {
		n->arena.failed = true;
		return;
	}
	pp_library_path_init(n->src, &n->arena, pp_environment_get(&sw.env, "LD_LIBRARY_PATH"),
			     pp_fact_str_or(n->self, PP_F_KERNEL_ARCH, NULL), &sw.libraries);
	collect_toolkits(n);
	pp_nccl_libraries_collect(&sw);
	pp_nccl_settings_collect(&sw);
	collect_library(&sw, PP_F_UCX_VERSION, "libucp.so.0");
	collect_library(&sw, PP_F_LIBFABRIC_VERSION, "libfabric.so.1");
	collect_perftest(&sw);
	collect_environment(&sw);
	pp_environment_done(&sw.env);
}
